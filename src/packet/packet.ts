import type { AddressRange } from '../kernel/address-range.ts';
import type { Address } from '../kernel/address.ts';
import type { Rule } from '../kernel/iptables/iptables.ts';
import type { SetEntry } from '../kernel/ipset/set-entry.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Element, Value, Verdict as NftVerdict } from '../kernel/nftables/element.ts';
import type { NftRule } from '../kernel/nftables/table.ts';
import type { Origin } from '../kernel/place.ts';
import type { SocketAddress } from '../kernel/socket-address.ts';
import { isUnknownOwn } from './routing.ts';

/** The points of the kernel's network stack where rules see packets. */
export const hooks = ['prerouting', 'input', 'forward', 'output', 'postrouting'] as const;

/** A place where the kernel asks rules about a packet. */
export type Hook = (typeof hooks)[number];

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
  /** Where the packet enters the node. Undefined for one of the node itself; without a name, the node's routes name it. */
  readonly enters: { readonly interface?: string | undefined } | undefined;
}

/**
 * - delivered: sent on to an endpoint
 * - refused: a rule or IPVS rejects it, and the sender learns that
 * - dropped: a rule or the kernel throws it away
 * - forwarded: left to routing, no rule changed its destination
 * - local: it reaches the node itself
 * - unknown: what happens depends on a rule that kpc does not understand
 */
export const verdicts = ['delivered', 'refused', 'dropped', 'forwarded', 'local', 'unknown'] as const;

/** How a packet ends. */
export type Verdict = (typeof verdicts)[number];

/** Where rules are. */
interface InChain {
  readonly hook: Hook;
  readonly table: string;
  readonly chain: string;
}

/** Addresses that a rule asks whether the source is among them; of a set, all its entries. */
export type AskedSource = AddressRange | Value | readonly SetEntry[];

/** What a rule of either tool does with a packet. Without a port, `dnat` leaves the packet's own. */
export type Action =
  | NftVerdict
  | { readonly kind: 'reject' | 'masquerade' }
  /** One of them, each with an equal chance. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  | { readonly kind: 'dnat'; readonly target: { readonly address: Address; readonly port: number | undefined } }
  | { readonly kind: 'dnat-random'; readonly targets: readonly SocketAddress[] }
  | { readonly kind: 'snat'; readonly address: Address }
  /** `mask`: the bits that `set` clears first, all if there is none. */
  | {
      readonly kind: 'set-mark';
      readonly operation: 'or' | 'xor' | 'set';
      readonly value: number;
      readonly mask?: number;
    }
  /** Something that kpc does not understand, in the tool's words. */
  | { readonly kind: 'unknown'; readonly text: string };

/** A rule that matched. */
export type RuleStep = InChain & {
  readonly kind: 'rule';
  /** Counts from 1. */
  readonly position: number;
  readonly origin: Origin | undefined;
  readonly action: Action;
} & (
    | { readonly tool: 'iptables'; readonly rule: Rule }
    /** With the element of the map that decided. */
    | { readonly tool: 'nftables'; readonly rule: NftRule; readonly element: Element | undefined }
  );

/** One thing that happens to a packet on its way. */
export type Step =
  | RuleStep
  /** No rule of a chain of the kernel decided, and its policy drops. */
  | (InChain & { readonly kind: 'policy'; readonly tool: RuleStep['tool'] })
  /** IPVS has a virtual server at the packet's destination, and chose a real server, or has none. */
  | {
      readonly kind: 'virtual-server';
      readonly hook: Hook;
      readonly server: VirtualServer;
      readonly chosen: RealServer | undefined;
    }
  /** What routing decided. */
  | { readonly kind: 'route'; readonly decision: RouteDecision; readonly destination: Address };

/**
 * - local: the address is the node's own
 * - out: it leaves by an interface; undefined if the routes are not known
 * - not-forwarding, loopback-outside: the kernel throws it away
 * - own-address: the endpoint gets a packet that has its own address for source, and cannot answer
 */
export type RouteDecision =
  | { readonly kind: 'local' | 'not-forwarding' | 'loopback-outside' | 'own-address' }
  | { readonly kind: 'out'; readonly interface: string | undefined };

/** One of the ways that a packet may take. */
export interface Way {
  readonly probability: number;
  readonly verdict: Verdict;
  /** Where its destination was rewritten to. */
  readonly endpoint: SocketAddress | undefined;
  /** Its source in the end. */
  readonly source: Address | 'masqueraded';
  readonly steps: readonly Step[];
}

/** An endpoint that packets are delivered to. */
export interface ReachedEndpoint extends SocketAddress {
  /** Above 0; those of all endpoints sum to 1 where the packet is delivered in all cases. */
  readonly probability: number;
  /** The source that it sees. */
  readonly source: Address | 'masqueraded';
}

/** The source that receivers see, as a word: "masqueraded", "node" for an unknown address of the node, or an address. */
export function sourceText(source: Way['source']): string {
  if (source === 'masqueraded') return source;
  return isUnknownOwn(source) ? 'node' : source.text;
}

/** How a packet ends. */
export interface Fate {
  readonly verdict: Verdict;
  /** Sorted by address, then port. */
  readonly endpoints: readonly ReachedEndpoint[];
  /** The source of the likeliest way. */
  readonly source: Address | 'masqueraded';
  /** The likeliest way. */
  readonly steps: readonly Step[];
  readonly ways: readonly Way[];
  /** The sources that rules on these ways ask for. */
  readonly sources: ReadonlySet<AskedSource>;
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

/** What a chain did: the packet goes back to the chain before, or on to the next table, or no further. */
export type Decision = 'return' | 'accept' | Extract<Verdict, 'refused' | 'dropped' | 'unknown'>;
