import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { NextHop } from '../kernel/route/route.ts';
import type { SocketAddress } from '../kernel/ports-and-marks.ts';
import type { Reason } from './reason.ts';
import type { AskedSource, Step } from './step.ts';

/**
 * Placeholder for an unknown address of the node. Its text is no valid address, and only a network of all addresses contains it.
 * Maps are keyed by text, so each family has its own.
 */
export const unknownOwn: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: 'an IPv4 address of the node', bits: 0 },
  ipv6: { family: 'ipv6', text: 'an IPv6 address of the node', groups: [0, 0, 0, 0, 0, 0, 0, 0] },
};

export function isUnknownOwn(address: Address): boolean {
  return address.text === unknownOwn[address.family].text;
}

export const packetProtocols = ['tcp', 'udp', 'sctp', 'icmp'] as const;

/** `icmp` is an echo request of either family. */
export type PacketProtocol = (typeof packetProtocols)[number];

/** The first packet of a connection. */
export interface Packet {
  /** Undefined for a packet of the node itself that is bound to no address: the routes choose its source. */
  readonly source: Address | undefined;
  readonly destination: Address;
  readonly protocol: PacketProtocol;
  /** 0 with icmp. */
  readonly port: number;
  /** Whether the destination may be an address of the node that the input does not show. */
  readonly isUnplaced?: boolean | undefined;
  /** Where the packet enters the node; undefined if the node itself sends it. If no interface is named, the node's routes decide. */
  readonly enters: { readonly interface?: string | undefined } | undefined;
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

/** One of the ways that a packet may take. */
export interface Way<End = unknown> {
  readonly probability: number;
  readonly verdict: Verdict;
  /** The destination it was rewritten to. */
  readonly endpoint: SocketAddress | undefined;
  /** Its final source. */
  readonly source: Address | 'masqueraded';
  /** The address it was masqueraded with, if the routes show it. */
  readonly masqueradedAs?: Address | undefined;
  /** The port on the node that a rule redirected it to, if it ends at the node. */
  readonly redirectedTo?: number | undefined;
  /** The packet at its end; undefined if the way was not simulated. */
  readonly end?: End | undefined;
  /** What conntrack keeps of it, as text: only where a doubt makes no other difference is it asked. */
  readonly kept?: (() => string) | undefined;
  /** Doubts that do not change how this packet ends, but change what conntrack keeps for later packets. */
  readonly doubts?: readonly { readonly reason: Reason; readonly end: End | undefined }[] | undefined;
  /** Why an answer does not reach the client. */
  readonly loss?: Loss | undefined;
  readonly steps: readonly Step[];
  /** Why the verdict is unknown. The steps end where the first reason came up. */
  readonly reasons: readonly Reason[];
}

/**
 * The link that a packet from another host is assumed to come in by, when neither the question nor the routes decide it, and the
 * other candidates.
 */
export interface Arrival {
  readonly link: string;
  readonly others: readonly string[];
}

/** An endpoint that packets are delivered to. */
export interface ReachedEndpoint extends SocketAddress {
  /** Above 0. Those of all endpoints sum to 1 if the packet is always delivered. */
  readonly probability: number;
  /** The source that the endpoint sees. */
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
}

/** The source that receivers see: "masqueraded", "node" for an unknown address of the node, or an address. */
export function sourceText(source: Way['source']): string {
  if (source === 'masqueraded') return source;
  return isUnknownOwn(source) ? 'node' : source.text;
}

/** Why a connection fails although its first packet arrives. */
export type Loss =
  /** An answer, the client's next packet, or later data is dropped or refused on the node. */
  | { readonly kind: 'stopped'; readonly turn: 'answer' | 'later' | 'data'; readonly steps: readonly Step[] }
  /** The answer comes from another address than the client asked for. */
  | {
      readonly kind: 'untranslated';
      readonly source: Address;
      readonly port: number | undefined;
      readonly why: 'bridge' | 'past' | 'untracked' | 'zone';
      /** The link where it passes unseen. */
      readonly link: string | undefined;
    }
  /** The answer leaves by another way than the client's packets came. */
  | {
      readonly kind: 'other-way';
      readonly input: string;
      readonly output: string;
      readonly gateway: Address | undefined;
    }
  /** The client's packets after the answer go elsewhere. */
  | { readonly kind: 'elsewhere'; readonly destination: Address }
  /** The endpoint is the cluster IP of a Service, and connections are translated only once. `isHeld`: the node has that address. */
  | {
      readonly kind: 'service-address';
      readonly address: Address;
      readonly service: string;
      readonly isHeld: boolean;
    }
  /** The endpoint is on another node, which has the source of the node's packet as well. It depends if the endpoint may be elsewhere. */
  | { readonly kind: 'shared-source'; readonly address: Address }
  /** Losses that depend on other hosts. */
  | Beyond;

/** Why a connection may fail beyond the node. */
export type Beyond =
  /** The node forwards a packet to a Service's address untranslated. */
  | { readonly kind: 'left'; readonly address: Address; readonly service: string }
  /** The endpoint is on a network of the node and sees the client's address, so it may answer without passing the node. */
  | { readonly kind: 'own-gateway'; readonly endpoint: Address }
  /** Rules give packets a source that is not the node's: answers go there. */
  | { readonly kind: 'foreign-source'; readonly address: Address }
  /** The node sends packets for an address behind its link `inside` to a router, which may send them back to the node. */
  | {
      readonly kind: 'own-network';
      readonly destination: Address;
      readonly inside: string;
      readonly gateway: Address;
      readonly output: string | undefined;
    }
  /** A routing rule leads packets for a pod to a router, and another table has a closer route to the pod. */
  | { readonly kind: 'closer-route'; readonly destination: Address; readonly taken: NextHop; readonly closer: NextHop }
  /** What the client sends after the answer leaves by another next hop than its first packet. */
  | {
      readonly kind: 'other-hop';
      readonly destination: Address;
      readonly output: string | undefined;
      readonly gateway: Address | undefined;
    }
  /** A route of another table than `local` brings packets for the address to the node, which does not have it and so answers from no socket that is not transparent (__ip_dev_find in ip_route_output_key). */
  | { readonly kind: 'not-held'; readonly address: Address }
  /** The node does not answer ARP requests for the address on the link where the client's packets come in. */
  | { readonly kind: 'no-arp'; readonly address: Address; readonly link: string; readonly sysctl: ArpSysctl }
  /** Rules of IPv6 drop the neighbour solicitations for the address on that link, and with them what would follow. */
  | {
      readonly kind: 'no-neighbour';
      readonly address: Address;
      readonly link: string;
      readonly steps: readonly Step[];
    };

/** The sysctl of the link that makes the kernel ignore an ARP request (arp_process in arp.c). */
export type ArpSysctl = 'arp_ignore' | 'arp_filter' | 'rp_filter';

/** How a connection ends for one way of its first packet. */
export type Outcome =
  | { readonly kind: 'works' }
  /** Without `loss`, the first packet itself is lost. */
  | { readonly kind: 'fails'; readonly loss?: Loss | undefined }
  /** It depends on hosts beyond the node. */
  | { readonly kind: 'depends'; readonly loss: Loss }
  | { readonly kind: 'unknown'; readonly reasons: readonly Reason[] };

export const connectionKinds = ['works', 'fails', 'partial', 'depends', 'unknown'] as const;

export interface Connection {
  readonly kind: (typeof connectionKinds)[number];
  readonly ways: readonly { readonly way: Way; readonly outcome: Outcome }[];
}

export interface Fate {
  readonly verdict: Verdict;
  /** Sorted by address, then port. */
  readonly endpoints: readonly ReachedEndpoint[];
  /** The source on the likeliest way. */
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
  readonly redirectedTo?: number | undefined;
  /** Of the likeliest way; undefined where only one link is possible. */
  readonly arrival: () => Arrival | undefined;
  /** The steps of the likeliest way. */
  readonly steps: readonly Step[];
  readonly ways: readonly Way[];
  /** How the connection goes on. Answers are followed on the first call. */
  readonly connection: () => Connection;
  /** The sources that rules on these ways match. */
  readonly sources: ReadonlySet<AskedSource>;
  /** Why the verdict is unknown, without repetition. */
  readonly reasons: readonly Reason[];
  /**
   * How the packet ends under three assumptions: what is not shown lets it pass unchanged, an address asked at a node port is the
   * node's, and no rate limit is exceeded. Undefined if the verdict is known, or unknown even so.
   */
  readonly otherwise: (KnownFate & { readonly assumed: readonly Assumption[] }) | undefined;
}

/** The fate of a packet whose end is known. */
export type KnownFate = Omit<Fate, 'otherwise' | 'sources' | 'reasons'>;

/** What is assumed about an open question. */
export interface Assumption {
  readonly reason: Reason;
  readonly isSo: boolean;
}

/** Sums the probabilities of items with the same key. */
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

/**
 * Two shares from 0 to 1: the connections whose first packet arrives and that are not known to fail, and among these the ones
 * known to work.
 */
export function workingShare(
  { connection }: Pick<Fate, 'connection'>,
  arrives: (verdict: Verdict) => boolean,
): { readonly least: number; readonly most: number } {
  const sum = (isSo: (outcome: Outcome) => boolean): number =>
    connection().ways.reduce(
      (share, { way, outcome }) => share + (arrives(way.verdict) && isSo(outcome) ? way.probability : 0),
      0,
    );
  return { least: sum(({ kind }) => kind === 'works'), most: sum(({ kind }) => kind !== 'fails') };
}

/** A packet stops being followed. */
export interface Unknown {
  readonly kind: 'unknown';
  readonly reason: Reason;
}

export function unknown(reason: Reason): Unknown {
  return { kind: 'unknown', reason };
}

/** What a chain did: return to the calling chain, accept (on to the next table), or end the packet's way. */
export type Decision = 'return' | 'accept' | Extract<Verdict, 'refused' | 'dropped'> | Unknown;
