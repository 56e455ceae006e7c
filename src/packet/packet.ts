import type { Address, Family } from '../kernel/address.ts';
import type { NextHop } from '../kernel/route/route.ts';
import type { SocketAddress } from '../kernel/ports-and-marks.ts';
import { lacksAllRoutes, type Reason } from './reason.ts';
import type { AskedSource, Step } from './step.ts';

/** Stands for an unknown address of the node. The text is not an address, and only a network of all addresses contains it. */
export const unknownOwn: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: 'the node (IPv4)', bits: 0 },
  ipv6: { family: 'ipv6', text: 'the node (IPv6)', groups: [0, 0, 0, 0, 0, 0, 0, 0] },
};

export function isUnknownOwn(address: Address): boolean {
  return address.text === unknownOwn[address.family].text;
}

export const unknownHost: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: 'another host', bits: 0 },
  ipv6: { family: 'ipv6', text: 'another host', groups: [0, 0, 0, 0, 0, 0, 0, 0] },
};

export function isUnknownHost(address: Address): boolean {
  return address === unknownHost[address.family];
}

export const packetProtocols = ['tcp', 'udp', 'sctp', 'icmp'] as const;

/** `icmp` is an echo request in either family. */
export type PacketProtocol = (typeof packetProtocols)[number];

interface Entry {
  /** The input interface, whatever the routes say; if undefined, the routes decide. */
  readonly interface?: string | undefined;
  /** The interface to assume if the node's routes are not listed. */
  readonly usual?: string | undefined;
}

export function interfaceOf(enters: Entry | undefined, isRouted: boolean): string | undefined {
  return enters?.interface ?? (isRouted ? undefined : enters?.usual);
}

export interface Packet {
  /** Undefined for a packet from the node that is bound to no address, because the routes choose its source. */
  readonly source: Address | undefined;
  readonly destination: Address;
  readonly protocol: PacketProtocol;
  readonly port: number;
  readonly isUnplaced?: boolean | undefined;
  readonly enters: Entry | undefined;
}

/**
 * How a first packet ends:
 *
 * - delivered: sent on to an endpoint
 * - refused: a rule or IPVS rejects the packet, and the sender learns of this
 * - dropped: a rule or the kernel drops the packet
 * - forwarded: left to routing; no rule changed the destination
 * - local: the packet reaches the node itself
 * - unknown: the end depends on something unknown; each way has its reasons
 */
export const verdicts = ['delivered', 'refused', 'dropped', 'forwarded', 'local', 'unknown'] as const;

export type Verdict = (typeof verdicts)[number];

export function isArrival(verdict: Verdict): boolean {
  return verdict === 'delivered' || verdict === 'local' || verdict === 'forwarded';
}

export interface Way<End = unknown> {
  readonly probability: number;
  readonly verdict: Verdict;
  readonly endpoint: SocketAddress | undefined;
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
  readonly redirectedTo?: number | undefined;
  readonly end?: End | undefined;
  /** What conntrack stores about the packet, as text, for a doubt that makes no other difference. */
  readonly kept?: (() => string) | undefined;
  /** Doubts that do not change how this packet ends, only what conntrack stores for later packets. */
  readonly doubts?: readonly { readonly reason: Reason; readonly end: End | undefined }[] | undefined;
  readonly loss?: Loss | undefined;
  readonly steps: readonly Step[];
  /** Why the verdict is unknown. The steps end where the first reason arose. */
  readonly reasons: readonly Reason[];
}

/** The link where a packet from another host is assumed to come in, and the other candidates. */
export interface Arrival {
  readonly link: string;
  readonly others: readonly string[];
}

export interface ReachedEndpoint extends SocketAddress {
  /** Above 0. If the packet is always delivered, the probabilities of all endpoints sum to 1. */
  readonly probability: number;
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
}

/** Returns the source that receivers see: "masqueraded", "node" for an unknown own address, or an address. */
export function sourceText(source: Way['source']): string {
  if (source === 'masqueraded') return source;
  return isUnknownOwn(source) ? 'node' : source.text;
}

export type Loss =
  /** The connection's first packet is dropped or refused. `endpoint`: where the packet was going, if rules chose one. */
  | { readonly kind: 'first-lost'; readonly endpoint: SocketAddress | undefined; readonly steps: readonly Step[] }
  /** An answer, the client's next packet or later data is dropped or refused on the node. */
  | { readonly kind: 'stopped'; readonly turn: 'answer' | 'later' | 'data'; readonly steps: readonly Step[] }
  /** The answer does not come from the address that the client asked. */
  | {
      readonly kind: 'untranslated';
      readonly source: Address;
      readonly port: number | undefined;
      readonly why: 'bridge' | 'past' | 'untracked' | 'zone';
      readonly link: string | undefined;
    }
  /** The answer takes another path than the client's packets. */
  | {
      readonly kind: 'other-way';
      readonly input: string;
      readonly output: string;
      readonly gateway: Address | undefined;
    }
  | { readonly kind: 'kept'; readonly address: Address }
  /** After the answer, the client's packets go to another destination. */
  | { readonly kind: 'elsewhere'; readonly destination: Address }
  /** The endpoint is a cluster IP, but connections are translated only once. `isHeld`: the node has that address. */
  | {
      readonly kind: 'service-address';
      readonly address: Address;
      readonly service: string;
      readonly isHeld: boolean;
    }
  /** The endpoint is on another node, which also has the packet's source address. `depends` if the endpoint may be elsewhere. */
  | { readonly kind: 'shared-source'; readonly address: Address }
  | Beyond;

/** Why a connection may fail beyond the node. */
export type Beyond =
  /** No rule translates the connection's first packet, although other connections to the same address reach endpoints. */
  | { readonly kind: 'untaken'; readonly end: 'local' | 'forwarded'; readonly steps: readonly Step[] }
  /** The node forwards a packet to a Service's address without translating it. */
  | { readonly kind: 'left'; readonly address: Address; readonly service: string; readonly isClusterIP: boolean }
  /** The endpoint is on the node's network and sees the client's address, so its answer may bypass the node. */
  | { readonly kind: 'own-gateway'; readonly endpoint: Address }
  /** Rules give packets a source address that is not the node's, so answers do not return to the node. */
  | { readonly kind: 'foreign-source'; readonly address: Address }
  /** The node sends packets for itself, or for an address behind its link `inside`, to a router, which may return them. */
  | {
      readonly kind: 'own-network';
      readonly destination: Address;
      readonly inside: string | undefined;
      readonly gateway: Address;
      readonly output: string | undefined;
    }
  /** The node sends the packet back to the router that it came from. */
  | {
      readonly kind: 'sent-back';
      readonly destination: Address;
      readonly gateway: Address;
      readonly output: string | undefined;
    }
  /** A routing rule sends packets for a pod to a router, although another table has a closer route. */
  | { readonly kind: 'closer-route'; readonly destination: Address; readonly taken: NextHop; readonly closer: NextHop }
  /** After an answer, the client's packets leave by another next hop than the client's first packet. */
  | {
      readonly kind: 'other-hop';
      readonly destination: Address;
      readonly output: string | undefined;
      readonly gateway: Address | undefined;
    }
  /** The node lacks an address that a route outside table `local` leads to, so only transparent sockets answer (__ip_dev_find). */
  | { readonly kind: 'not-held'; readonly address: Address }
  /** A UDP program on the node is bound to all addresses, so it answers from `source`, which the route to the client chooses. */
  | { readonly kind: 'unbound'; readonly address: Address; readonly source: Address; readonly client: Address }
  /** Nobody answers ARP for the address on this link. */
  | { readonly kind: 'no-arp'; readonly address: Address; readonly link: string; readonly why: ArpSilence }
  /** The node's IPv6 rules drop or refuse neighbour messages for the address on this link, and so stop all later packets. */
  | {
      readonly kind: 'no-neighbour';
      readonly address: Address;
      readonly link: string;
      readonly steps: readonly Step[];
    };

/** Why the kernel ignores an ARP request (arp_process in arp.c): a sysctl, a flag of the link, or an address that is not on the link. */
export type ArpSilence =
  | 'arp_ignore'
  | 'arp_filter'
  | 'rp_filter'
  | 'NOARP'
  /** The link is a port of another link, which takes all packets that the port receives. */
  | 'port'
  /** A bridge without ports reaches nobody (br_flood). */
  | 'no-port'
  | 'tentative'
  | 'on-no-link'
  /** IPv6 only: a link answers neighbour solicitations only for its own addresses. */
  | 'on-another-link';

export type Outcome =
  | { readonly kind: 'works' }
  | { readonly kind: 'fails'; readonly loss: Loss }
  | { readonly kind: 'depends'; readonly loss: Loss }
  | { readonly kind: 'unknown'; readonly reasons: readonly Reason[] };

/**
 * Reports whether something shown leaves the outcome unknown, such as a rule that only answers meet. False if no routes are shown, because
 * nothing is known about answers without routes.
 */
export function isUndecided(outcome: Outcome): boolean {
  return outcome.kind === 'unknown' && !outcome.reasons.some(lacksAllRoutes);
}

export function isOpen(outcome: Outcome): boolean {
  return outcome.kind === 'depends' || isUndecided(outcome);
}

export const connectionKinds = ['works', 'fails', 'partial', 'depends', 'unknown'] as const;

export interface Connection {
  readonly kind: (typeof connectionKinds)[number];
  readonly ways: readonly { readonly way: Way; readonly outcome: Outcome }[];
}

export function sumOutcomes(outcomes: readonly Outcome[]): Connection['kind'] {
  const [only, ...others] = new Set(outcomes.map(({ kind }) => kind));
  if (only !== undefined && others.length === 0) return only;
  return (['unknown', 'depends'] as const).find((kind) => outcomes.some((each) => each.kind === kind)) ?? 'partial';
}

export interface Fate {
  readonly verdict: Verdict;
  readonly endpoints: readonly ReachedEndpoint[];
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
  readonly redirectedTo?: number | undefined;
  readonly arrival: () => Arrival | undefined;
  readonly steps: readonly Step[];
  readonly ways: readonly Way[];
  /** How the connection continues after its first packet, computed at the first call. */
  readonly connection: () => Connection;
  readonly sources: ReadonlySet<AskedSource>;
  readonly reasons: readonly Reason[];
  /**
   * How the packet ends under three assumptions: everything that is not shown lets it pass unchanged, an address asked at a node port is
   * the node's, and no rate limit is exceeded. Undefined if the end is known anyway, or is unknown even then.
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

/** Returns the share of connections whose first packet does not get the fate's verdict. */
export function lostShare({ ways, verdict }: Pick<Fate, 'ways' | 'verdict'>): number {
  return ways.reduce((sum, way) => sum + (way.verdict === verdict ? 0 : way.probability), 0);
}

/** Returns the share of connections that are known to fail, at the first packet or later. */
export function failingShare(fate: Pick<Fate, 'connection'>): number {
  return shareOf(fate, (_, { kind }) => kind === 'fails');
}

/** Returns the share of connections that are not known to fail, but whose first packet does not get the fate's verdict. */
export function otherwiseShare(fate: Pick<Fate, 'verdict' | 'connection'>): number {
  return shareOf(fate, (verdict, { kind }) => kind !== 'fails' && verdict !== fate.verdict);
}

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
  // Equal shares, added in floating point, differ from the exact sum in the last bits.
  return sum > 1 - 1e-9 ? 1 : sum < 1e-9 ? 0 : sum;
}

/** Returns the shares of connections that arrive and are not known to fail: those that depend on what no listing shows, and the others. */
export function workingShares(fate: Pick<Fate, 'connection'>, arrives: (verdict: Verdict) => boolean) {
  const share = (isMeant: (outcome: Outcome) => boolean): number =>
    shareOf(fate, (verdict, outcome) => arrives(verdict) && isMeant(outcome));
  return {
    working: share(({ kind }) => kind === 'works'),
    depending: share(({ kind }) => kind === 'depends'),
    unknown: share(({ kind }) => kind === 'unknown'),
  };
}

export interface UnknownEnd {
  readonly kind: 'unknown';
  readonly reason: Reason;
}

export function unknown(reason: Reason): UnknownEnd {
  return { kind: 'unknown', reason };
}

/** What a chain decides: return to its caller, accept (continue to the next table), or end the packet's path. */
export type Decision = 'return' | 'accept' | Extract<Verdict, 'refused' | 'dropped'> | UnknownEnd;
