import type { Address, Network } from '../address.ts';
import type { Origin } from '../place.ts';

/** An element of a named set or map. */
export interface Element {
  readonly key: ElementKey;
  /** What the key maps to; undefined in a set. */
  readonly value?: ElementValue | undefined;
  readonly comment?: string | undefined;
  readonly origin?: Origin | undefined;
}

/** One value for each part of the key type. */
export type ElementKey = readonly Value[];

export type ElementValue = NftVerdict | { readonly kind: 'data'; readonly values: readonly Value[] };

/** A constant in a rule or an element. */
export type Value =
  | { readonly kind: 'address'; readonly address: Address }
  /** A network of one address means the same as the address, and nft prints it as such. */
  | { readonly kind: 'network'; readonly network: Network }
  /** A range of addresses that is not a network. */
  | { readonly kind: 'range'; readonly first: Address; readonly last: Address }
  /** A port, or a mark. */
  | { readonly kind: 'number'; readonly value: number }
  /** A range of ports or marks: `7000-7900`. */
  | { readonly kind: 'numbers'; readonly first: number; readonly last: number }
  /** A name that nft knows (`tcp`, `new`, `local`, `dnat`), or an interface name, which may end in `*`. */
  | { readonly kind: 'word'; readonly text: string };

/** A verdict, or the chain a packet goes on to. */
export type NftVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' | 'continue' }
  /** `goto` does not return. */
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };
