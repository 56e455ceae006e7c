import type { Address } from '../address.ts';
import type { Value, NftVerdict } from './element.ts';

/** What a rule matches: one field of the packet, or several as in the key of a set or map. */
export type Selector = readonly Field[];

/**
 * A property of a packet, under the name that kube-proxy writes: `ip saddr`, `th dport` (the port of TCP, UDP or SCTP), `meta
 * l4proto`, `mark`, `iifname`, `ct state`, `fib daddr type`.
 */
export interface Field {
  readonly name: string;
  /** The bits that count, if not all: `mark and 0x4000`. */
  readonly mask?: number | undefined;
}

export type Right =
  | { readonly kind: 'value'; readonly value: Value }
  /** `{ 10.0.0.0/8, 192.0.2.1 }`: any of these. Order and overlaps do not matter. */
  | { readonly kind: 'any-of'; readonly values: readonly Value[] }
  /** `@name`: the elements of a named set. */
  | { readonly kind: 'set'; readonly set: string };

export interface DnatTarget {
  readonly address: Address;
  readonly port: number;
}

/** One part of a rule. A rule runs its expressions from left to right until a match fails or a verdict is reached. */
export type Expression =
  | { readonly kind: 'match'; readonly left: Selector; readonly negated?: true | undefined; readonly right: Right }
  | { readonly kind: 'verdict'; readonly verdict: NftVerdict }
  /** `… vmap @map`: the verdict for the key; without an element, the next rule follows. */
  | { readonly kind: 'verdict-map'; readonly key: Selector; readonly map: string }
  /** `numgen random mod N vmap { 0 : goto …, … }`: one of these chains, with equal probability. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  /** `dnat to ADDRESS:PORT`. */
  | { readonly kind: 'dnat'; readonly target: DnatTarget }
  /** `dnat ip addr . port to numgen random mod N map { 0 : ADDRESS . PORT, … }`: one of these, with equal probability. */
  | { readonly kind: 'dnat-random'; readonly targets: readonly DnatTarget[] }
  /** `meta mark set meta mark | VALUE`, or `^`, or VALUE alone. */
  | { readonly kind: 'set-mark'; readonly operation: 'or' | 'xor' | 'set'; readonly value: number }
  | { readonly kind: 'masquerade'; readonly fullyRandom: boolean }
  /** `with` is undefined for "port unreachable", nft's default. */
  | { readonly kind: 'reject'; readonly with?: string | undefined }
  /** `update @set { … }`: stores the packet's key for the set's timeout. */
  | {
      readonly kind: 'write-set';
      readonly operation: 'add' | 'update' | 'delete';
      readonly set: string;
      readonly key: Selector;
    }
  /** `counter name "NAME"`: counts the packet in one of the table's counters. */
  | { readonly kind: 'counter'; readonly counter: string }
  /** What kpc does not read, in nft's words; equal only to the same words. */
  | { readonly kind: 'unknown'; readonly text: string };
