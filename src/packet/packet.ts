import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { NextHop } from '../kernel/route/route.ts';
import type { SocketAddress } from '../kernel/ports-and-marks.ts';
import { lacksAllRoutes, type Reason } from './reason.ts';
import type { AskedSource, Step } from './step.ts';

/** An unknown address of the node. Its text is no address; only a network of all addresses contains it. */
export const unknownOwn: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: 'an IPv4 address of the node', bits: 0 },
  ipv6: { family: 'ipv6', text: 'an IPv6 address of the node', groups: [0, 0, 0, 0, 0, 0, 0, 0] },
};

export function isUnknownOwn(address: Address): boolean {
  return address.text === unknownOwn[address.family].text;
}

/** An unknown address of another host, of which nothing is known but that. */
export const unknownHost: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: 'another host', bits: 0 },
  ipv6: { family: 'ipv6', text: 'another host', groups: [0, 0, 0, 0, 0, 0, 0, 0] },
};

export function isUnknownHost(address: Address): boolean {
  return address === unknownHost[address.family];
}

export const packetProtocols = ['tcp', 'udp', 'sctp', 'icmp'] as const;

/** `icmp` is an echo request of either family. */
export type PacketProtocol = (typeof packetProtocols)[number];

/** Where a packet enters a node. */
interface Entry {
  /** The interface, whatever the routes say; without it, routes decide. */
  readonly interface?: string | undefined;
  /** The interface if the node's routes are not listed. */
  readonly usual?: string | undefined;
}

export function interfaceOf(enters: Entry | undefined, isRouted: boolean): string | undefined {
  return enters?.interface ?? (isRouted ? undefined : enters?.usual);
}

export interface Packet {
  /** Undefined for an own packet bound to no address: the routes choose its source. */
  readonly source: Address | undefined;
  readonly destination: Address;
  readonly protocol: PacketProtocol;
  /** 0 with icmp. */
  readonly port: number;
  /** Whether the destination may be an unshown address of the node. */
  readonly isUnplaced?: boolean | undefined;
  /** Where the packet enters the node; undefined if the node sends it. */
  readonly enters: Entry | undefined;
}

/**
 * - delivered: sent on to an endpoint
 * - refused: a rule or IPVS rejects it, and the sender learns that
 * - dropped: a rule or the kernel throws it away
 * - forwarded: left to routing, no rule changed its destination
 * - local: it reaches the node itself
 * - unknown: what happens depends on something that is not known; each way has its reasons
 */
export const verdicts = ['delivered', 'refused', 'dropped', 'forwarded', 'local', 'unknown'] as const;

export type Verdict = (typeof verdicts)[number];

/** Whether a first packet with this verdict reaches a receiver that may answer. */
export function isArrival(verdict: Verdict): boolean {
  return verdict === 'delivered' || verdict === 'local' || verdict === 'forwarded';
}

export interface Way<End = unknown> {
  readonly probability: number;
  readonly verdict: Verdict;
  readonly endpoint: SocketAddress | undefined;
  readonly source: Address | 'masqueraded';
  /** The address it was masqueraded with, if the routes show it. */
  readonly masqueradedAs?: Address | undefined;
  /** The port on the node that a rule redirected it to, if it ends at the node. */
  readonly redirectedTo?: number | undefined;
  /** The packet at its end; undefined if the way was not simulated. */
  readonly end?: End | undefined;
  /** What conntrack keeps of it, as text; only needed if a doubt makes no other difference. */
  readonly kept?: (() => string) | undefined;
  /** Doubts that do not change how this packet ends, but what conntrack keeps for later ones. */
  readonly doubts?: readonly { readonly reason: Reason; readonly end: End | undefined }[] | undefined;
  readonly loss?: Loss | undefined;
  readonly steps: readonly Step[];
  /** Why the verdict is unknown. The steps end where the first reason came up. */
  readonly reasons: readonly Reason[];
}

/** The assumed link of a packet from another host, if nothing decides it, and the other candidates. */
export interface Arrival {
  readonly link: string;
  readonly others: readonly string[];
}

export interface ReachedEndpoint extends SocketAddress {
  /** Above 0. Those of all endpoints sum to 1 if the packet is always delivered. */
  readonly probability: number;
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
}

/** The source that receivers see: "masqueraded", "node" for an unknown own address, or an address. */
export function sourceText(source: Way['source']): string {
  if (source === 'masqueraded') return source;
  return isUnknownOwn(source) ? 'node' : source.text;
}

/** Why a connection fails although its first packet arrives. */
export type Loss =
  /** An answer, the client's next packet, or later data is dropped or refused on the node. */
  | { readonly kind: 'stopped'; readonly turn: 'answer' | 'later' | 'data'; readonly steps: readonly Step[] }
  /** The answer does not come from the address that the client asked. */
  | {
      readonly kind: 'untranslated';
      readonly source: Address;
      readonly port: number | undefined;
      readonly why: 'bridge' | 'past' | 'untracked' | 'zone';
      readonly link: string | undefined;
    }
  /** The answer leaves by another way than the client's packets came. */
  | {
      readonly kind: 'other-way';
      readonly input: string;
      readonly output: string;
      readonly gateway: Address | undefined;
    }
  /** The node itself takes the answer to a client outside, whose address it has. */
  | { readonly kind: 'kept'; readonly address: Address }
  /** The client's packets after the answer go elsewhere. */
  | { readonly kind: 'elsewhere'; readonly destination: Address }
  /** The endpoint is a cluster IP: connections are translated once. `isHeld`: the node has that address. */
  | {
      readonly kind: 'service-address';
      readonly address: Address;
      readonly service: string;
      readonly isHeld: boolean;
    }
  /** The endpoint is on another node, which has the source of the node's packet as well. It depends if the endpoint may be elsewhere. */
  | { readonly kind: 'shared-source'; readonly address: Address }
  | Beyond;

/** Why a connection may fail beyond the node. */
export type Beyond =
  /** The node forwards a packet to a Service's address untranslated. */
  | { readonly kind: 'left'; readonly address: Address; readonly service: string; readonly isClusterIP: boolean }
  /** The endpoint is on the node's network and sees the client's address, so it may answer past the node. */
  | { readonly kind: 'own-gateway'; readonly endpoint: Address }
  /** Rules give packets a source that is not the node's: answers go there. */
  | { readonly kind: 'foreign-source'; readonly address: Address }
  /** The node sends packets for an address behind its link `inside`, or for its own, to a router, which may return them. */
  | {
      readonly kind: 'own-network';
      readonly destination: Address;
      readonly inside: string | undefined;
      readonly gateway: Address;
      readonly output: string | undefined;
    }
  /** A routing rule leads packets for a pod to a router, though another table has a closer route. */
  | { readonly kind: 'closer-route'; readonly destination: Address; readonly taken: NextHop; readonly closer: NextHop }
  /** What the client sends after the answer leaves by another next hop than its first packet. */
  | {
      readonly kind: 'other-hop';
      readonly destination: Address;
      readonly output: string | undefined;
      readonly gateway: Address | undefined;
    }
  /** A route outside table `local` for an address the node lacks: only transparent sockets answer (__ip_dev_find). */
  | { readonly kind: 'not-held'; readonly address: Address }
  /** A UDP program of the node that is bound to all addresses answers from `source`, by the route to the client. */
  | { readonly kind: 'unbound'; readonly address: Address; readonly source: Address; readonly client: Address }
  /** The node does not answer ARP for the address on the link of the client's packets. */
  | { readonly kind: 'no-arp'; readonly address: Address; readonly link: string; readonly why: ArpSilence }
  /** IPv6 rules drop or refuse neighbour solicitations for the address on that link, and so all that follows. */
  | {
      readonly kind: 'no-neighbour';
      readonly address: Address;
      readonly link: string;
      readonly steps: readonly Step[];
    };

/** Why the kernel ignores an ARP request (arp_process in arp.c): a sysctl or flag of the link, or the address is not on it. */
export type ArpSilence =
  | 'arp_ignore'
  | 'arp_filter'
  | 'rp_filter'
  | 'NOARP'
  /** Another link takes what this one, a port of it, receives. */
  | 'port'
  /** A bridge without any port reaches nobody (br_flood). */
  | 'no-port'
  | 'tentative'
  | 'on-no-link'
  /** Only with IPv6, whose neighbour solicitations each link answers for its own addresses. */
  | 'on-another-link';

/** How a connection ends for one way of its first packet. */
export type Outcome =
  | { readonly kind: 'works' }
  /** Without `loss`, the first packet itself is lost. */
  | { readonly kind: 'fails'; readonly loss?: Loss | undefined }
  | { readonly kind: 'depends'; readonly loss: Loss }
  | { readonly kind: 'unknown'; readonly reasons: readonly Reason[] };

/**
 * Whether something shown leaves open how the connection ends, such as a rule that only the answer meets. A side without
 * routes shows no answer's way at all.
 */
export function isUndecided(outcome: Outcome): boolean {
  return outcome.kind === 'unknown' && !outcome.reasons.some(lacksAllRoutes);
}

/** Whether that, or hosts beyond the node, leave it open. */
export function isOpen(outcome: Outcome): boolean {
  return outcome.kind === 'depends' || isUndecided(outcome);
}

export const connectionKinds = ['works', 'fails', 'partial', 'depends', 'unknown'] as const;

export interface Connection {
  readonly kind: (typeof connectionKinds)[number];
  readonly ways: readonly { readonly way: Way; readonly outcome: Outcome }[];
}

/** How connections end if they end in these ways. */
export function sumOutcomes(outcomes: readonly Outcome[]): Connection['kind'] {
  const [only, ...others] = new Set(outcomes.map(({ kind }) => kind));
  if (only !== undefined && others.length === 0) return only;
  return (['unknown', 'depends'] as const).find((kind) => outcomes.some((each) => each.kind === kind)) ?? 'partial';
}

export interface Fate {
  readonly verdict: Verdict;
  /** Sorted by address, then port. */
  readonly endpoints: readonly ReachedEndpoint[];
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
  readonly redirectedTo?: number | undefined;
  /** Of the likeliest way; undefined if only one link is possible. */
  readonly arrival: () => Arrival | undefined;
  readonly steps: readonly Step[];
  readonly ways: readonly Way[];
  /** How the connection goes on. Answers are followed on the first call. */
  readonly connection: () => Connection;
  readonly sources: ReadonlySet<AskedSource>;
  readonly reasons: readonly Reason[];
  /**
   * How the packet ends if the unshown lets it pass unchanged, an address asked at a node port is the node's, and no
   * rate limit is exceeded. Undefined if known anyway, or unknown even so.
   */
  readonly otherwise: (KnownFate & { readonly assumed: readonly Supposition[] }) | undefined;
}

export type KnownFate = Omit<Fate, 'otherwise' | 'sources' | 'reasons'>;

export interface Supposition {
  readonly reason: Reason;
  readonly isSo: boolean;
}

export function sumChances<T extends { readonly probability: number }>(
  items: readonly T[],
  keyOf: (item: T) => string,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const item of items) sums.set(keyOf(item), (sums.get(keyOf(item)) ?? 0) + item.probability);
  return sums;
}

/** The share of connections that do not end like most. */
export function lostShare({ ways, verdict }: Pick<Fate, 'ways' | 'verdict'>): number {
  return ways.reduce((sum, way) => sum + (way.verdict === verdict ? 0 : way.probability), 0);
}

/** The share of connections that are known to fail: their first packet is lost, or what follows. */
export function failingShare(fate: Pick<Fate, 'connection'>): number {
  return shareOf(fate, (_, { kind }) => kind === 'fails');
}

/** The share of connections that are not known to fail, but whose first packet does not end like most. */
export function otherwiseShare(fate: Pick<Fate, 'verdict' | 'connection'>): number {
  return shareOf(fate, (verdict, { kind }) => kind !== 'fails' && verdict !== fate.verdict);
}

/** Whether it is some of the connections, but not all. */
export function isPart(share: number): boolean {
  return share > 0 && share < 1;
}

export function shareOf(
  { connection }: Pick<Fate, 'connection'>,
  isMeant: (verdict: Verdict, outcome: Outcome) => boolean,
): number {
  const sum = connection().ways.reduce(
    (share, { way, outcome }) => share + (isMeant(way.verdict, outcome) ? way.probability : 0),
    0,
  );
  // Sums of equal shares differ in their last bits.
  return sum > 1 - 1e-9 ? 1 : sum < 1e-9 ? 0 : sum;
}

/** Two shares from 0 to 1: connections that arrive and are not known to fail, and those of them known to work. */
export function workingShare(
  fate: Pick<Fate, 'connection'>,
  arrives: (verdict: Verdict) => boolean,
): { readonly least: number; readonly most: number } {
  return {
    least: shareOf(fate, (verdict, { kind }) => arrives(verdict) && kind === 'works'),
    most: shareOf(fate, (verdict, { kind }) => arrives(verdict) && kind !== 'fails'),
  };
}

/** A packet stops being followed. */
export interface UnknownEnd {
  readonly kind: 'unknown';
  readonly reason: Reason;
}

export function unknown(reason: Reason): UnknownEnd {
  return { kind: 'unknown', reason };
}

/** What a chain did: return to its caller, accept (on to the next table), or end the way. */
export type Decision = 'return' | 'accept' | Extract<Verdict, 'refused' | 'dropped'> | UnknownEnd;
