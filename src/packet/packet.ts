import type { Address } from '../kernel/address.ts';
import type { SocketAddress } from '../kernel/socket-address.ts';
import { isUnknownOwn } from './own-address.ts';
import type { Reason } from './reason.ts';
import type { AskedSource, Step } from './step.ts';

/** The protocols of packets that kpc traces. */
export const packetProtocols = ['tcp', 'udp', 'sctp', 'icmp'] as const;

/** `icmp` is an echo request of either family. */
export type PacketProtocol = (typeof packetProtocols)[number];

/** The first packet of a connection. */
export interface Packet {
  /** Undefined for a packet of the node itself that is bound to no address: the node's routes choose its source. */
  readonly source: Address | undefined;
  readonly destination: Address;
  readonly protocol: PacketProtocol;
  /** 0 with icmp. */
  readonly port: number;
  /** Whether the destination may be an address of the node that the input does not show. */
  readonly isUnplaced?: boolean | undefined;
  /** Where the packet enters the node. Undefined for one of the node itself; without a name, the node's routes name it. */
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

/** How a packet ends. */
export type Verdict = (typeof verdicts)[number];

/** Whether the first packet of a connection comes to some end that may answer. */
export function isArrival(verdict: Verdict): boolean {
  return verdict === 'delivered' || verdict === 'local' || verdict === 'forwarded';
}

/** One of the ways that a packet may take. */
export interface Way<End = unknown> {
  readonly probability: number;
  readonly verdict: Verdict;
  /** Where its destination was rewritten to. */
  readonly endpoint: SocketAddress | undefined;
  /** Its source in the end. */
  readonly source: Address | 'masqueraded';
  /** The address that it was masqueraded with, where the routes show it. */
  readonly masqueradedAs?: Address | undefined;
  /** The port of the node that a rule redirected it to, if it reaches the node there. */
  readonly redirectedTo?: number | undefined;
  readonly arrival?: Arrival | undefined;
  /** The packet at its end; undefined if no simulation made the way. */
  readonly end?: End | undefined;
  /** A text of what connection tracking keeps of it. */
  readonly kept?: string | undefined;
  /** What makes no difference to this packet, and ends where connection tracking keeps something else for those that follow. */
  readonly doubts?: readonly { readonly reason: Reason; readonly end: End | undefined }[] | undefined;
  /** Of an answer: why it does not come to the client. */
  readonly loss?: Loss | undefined;
  readonly steps: readonly Step[];
  /** Why the verdict is unknown. The steps end where the first of them came up. */
  readonly reasons: readonly Reason[];
}

/** By which link a packet of another host is taken to come in, where neither the question nor the routes settle it; and what other links there are. */
export interface Arrival {
  readonly link: string;
  readonly others: readonly string[];
}

/** An endpoint that packets are delivered to. */
export interface ReachedEndpoint extends SocketAddress {
  /** Above 0; those of all endpoints sum to 1 where the packet is delivered in all cases. */
  readonly probability: number;
  /** The source that it sees. */
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
}

/** The source that receivers see, as a word: "masqueraded", "node" for an unknown address of the node, or an address. */
export function sourceText(source: Way['source']): string {
  if (source === 'masqueraded') return source;
  return isUnknownOwn(source) ? 'node' : source.text;
}

/** Why a connection fails whose first packet arrives. */
export type Loss =
  /** An answer, or what the client sends after it, or data of either, is dropped or refused on the node. */
  | { readonly kind: 'stopped'; readonly turn: 'answer' | 'later' | 'data'; readonly steps: readonly Step[] }
  /** The answer comes from another address than the client asked. */
  | {
      readonly kind: 'untranslated';
      readonly source: Address;
      readonly port: number | undefined;
      readonly why: 'bridge' | 'past' | 'untracked' | 'zone';
      /** Where it passes without being seen. */
      readonly link: string | undefined;
    }
  /** The answer leaves by another way than the client's packets came. */
  | {
      readonly kind: 'other-way';
      readonly input: string;
      readonly output: string;
      readonly gateway: Address | undefined;
    }
  /** What the client sends after the answer goes elsewhere. */
  | { readonly kind: 'elsewhere'; readonly destination: Address }
  /** The endpoint is the cluster IP of a Service, and connections are translated once. `isHeld`: the node has that address. */
  | {
      readonly kind: 'service-address';
      readonly address: Address;
      readonly service: string;
      readonly isHeld: boolean;
    }
  /** What only others can tell. */
  | Beyond;

/** Why a connection may fail beyond the node. */
export type Beyond =
  /** The node sends on to others what it does not translate, though the address is a Service's. */
  | { readonly kind: 'left'; readonly address: Address; readonly service: string }
  /** The endpoint, on a network of the node, sees the client, and may answer past the node. */
  | { readonly kind: 'own-gateway'; readonly endpoint: Address }
  /** Rules give packets a source that the node does not have: answers go there. */
  | { readonly kind: 'foreign-source'; readonly address: Address }
  /** The node sends packets to an address behind its link `inside` to a router, which may send them back to the node. */
  | {
      readonly kind: 'own-network';
      readonly destination: Address;
      readonly inside: string;
      readonly gateway: Address;
      readonly output: string | undefined;
    }
  /** The node answers no ARP request for the address by which it is asked, on the link where the client's packets come in. */
  | { readonly kind: 'no-arp'; readonly address: Address; readonly link: string; readonly sysctl: ArpSysctl };

/** By which of a link's sysctls the kernel leaves an ARP request unanswered (arp_process in arp.c). */
export type ArpSysctl = 'arp_ignore' | 'arp_filter' | 'rp_filter';

/** What becomes of a connection by one way of its first packet. */
export type Outcome =
  | { readonly kind: 'works' }
  /** Without a loss, the first packet is lost. */
  | { readonly kind: 'fails'; readonly loss?: Loss | undefined }
  /** It depends on what is beyond the node. */
  | { readonly kind: 'depends'; readonly loss: Loss }
  | { readonly kind: 'unknown'; readonly reasons: readonly Reason[] };

export const connectionKinds = ['works', 'fails', 'partial', 'depends', 'unknown'] as const;

/** What becomes of the connections of one kind. */
export interface Connection {
  readonly kind: (typeof connectionKinds)[number];
  readonly ways: readonly { readonly way: Way; readonly outcome: Outcome }[];
}

/** How a packet ends. */
export interface Fate {
  readonly verdict: Verdict;
  /** Sorted by address, then port. */
  readonly endpoints: readonly ReachedEndpoint[];
  /** The source of the likeliest way. */
  readonly source: Address | 'masqueraded';
  readonly masqueradedAs?: Address | undefined;
  readonly redirectedTo?: number | undefined;
  readonly arrival?: Arrival | undefined;
  /** The likeliest way. */
  readonly steps: readonly Step[];
  readonly ways: readonly Way[];
  /** What becomes of the connection: answers are followed when it is first asked. */
  readonly connection: () => Connection;
  /** The sources that rules on these ways ask for. */
  readonly sources: ReadonlySet<AskedSource>;
  /** Why the verdict is unknown; each once. */
  readonly reasons: readonly Reason[];
  /**
   * How it ends otherwise: if what is not shown lets it pass unchanged, an address that is asked at a node port is the node's, and no
   * rule has seen too many packets. Undefined if the verdict is known, or still is not then.
   */
  readonly otherwise: (KnownFate & { readonly assumed: readonly Assumption[] }) | undefined;
}

/** How a packet ends where that is known. */
export type KnownFate = Omit<Fate, 'otherwise' | 'sources' | 'reasons'>;

/** What is taken for true, or false, of a question that is open. */
export interface Assumption {
  readonly reason: Reason;
  readonly isSo: boolean;
}

/** The probabilities of what has the same key, added up. */
export function sumChances<T extends { readonly probability: number }>(
  items: readonly T[],
  keyOf: (item: T) => string,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const item of items) sums.set(keyOf(item), (sums.get(keyOf(item)) ?? 0) + item.probability);
  return sums;
}

/** The share of connections that end otherwise than most. */
export function lostShare({ ways, verdict }: Pick<Fate, 'ways' | 'verdict'>): number {
  return ways.reduce((sum, way) => sum + (way.verdict === verdict ? 0 : way.probability), 0);
}

/**
 * The share of connections whose first packet arrives and that are not known to fail, and of these the share that is known to work:
 * both from 0 to 1.
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

/** What a chain did: the packet goes back to the chain before, or on to the next table, or no further. */
export type Decision = 'return' | 'accept' | Extract<Verdict, 'refused' | 'dropped'> | Unknown;
