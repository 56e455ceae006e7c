import type { Address } from '../address.ts';
import type { Value, NftVerdict } from './element.ts';

/** What a rule looks at: one field of the packet, or several, as a key of a set or map has them. */
export type Selector = readonly Field[];

/**
 * A property of a packet, by the name that kube-proxy writes: `ip saddr`, `th dport` (the port of TCP, UDP and SCTP
 * alike), `meta l4proto`, `mark`, `iifname`, `ct state`, `fib daddr type`.
 */
export interface Field {
  readonly name: string;
  /** The bits that count, if not all of them do: `mark and 0x4000`. */
  readonly mask?: number | undefined;
}

export type Right =
  | { readonly kind: 'value'; readonly value: Value }
  /** `{ 10.0.0.0/8, 192.0.2.1 }`: any of them. Their order means nothing, nor do overlaps. */
  | { readonly kind: 'any-of'; readonly values: readonly Value[] }
  /** `@name`: the elements of a named set. */
  | { readonly kind: 'set'; readonly set: string };

/** An address and port that packets are sent on to. */
export interface DnatTarget {
  readonly address: Address;
  readonly port: number;
}

/**
 * One part of a rule. A rule goes through its expressions from left to right and ends at the first match that fails, or
 * at a verdict.
 */
export type Expression =
  | { readonly kind: 'match'; readonly left: Selector; readonly negated?: true | undefined; readonly right: Right }
  | { readonly kind: 'verdict'; readonly verdict: NftVerdict }
  /** `… vmap @map`: the verdict of the key's element, and on to the next rule if there is none. */
  | { readonly kind: 'verdict-map'; readonly key: Selector; readonly map: string }
  /** `numgen random mod N vmap { 0 : goto …, … }`: one of the chains, each with an equal chance. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  /** `dnat to ADDRESS:PORT`. */
  | { readonly kind: 'dnat'; readonly target: DnatTarget }
  /** `dnat ip addr . port to numgen random mod N map { 0 : ADDRESS . PORT, … }`: one of them, with an equal chance. */
  | { readonly kind: 'dnat-random'; readonly targets: readonly DnatTarget[] }
  /** `meta mark set meta mark | VALUE`, or `^`, or VALUE alone. */
  | { readonly kind: 'set-mark'; readonly operation: 'or' | 'xor' | 'set'; readonly value: number }
  | { readonly kind: 'masquerade'; readonly fullyRandom: boolean }
  /** `with` is undefined for "port unreachable", nft's default. */
  | { readonly kind: 'reject'; readonly with?: string | undefined }
  /** `update @set { … }`: remembers the key of the packet, for as long as the set's timeout. */
  | {
      readonly kind: 'write-set';
      readonly operation: 'add' | 'update' | 'delete';
      readonly set: string;
      readonly key: Selector;
    }
  /** `counter name "NAME"`: counts the packet in a counter of the table. */
  | { readonly kind: 'counter'; readonly counter: string }
  /** What kpc does not read: its words as nft prints them. Only the same words are equal. */
  | { readonly kind: 'unknown'; readonly text: string };
