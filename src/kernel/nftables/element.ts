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
  /** One of a single address means the same as that address, and nft prints it as such. */
  | { readonly kind: 'network'; readonly network: Network }
  /** Addresses from the first to the last, if they are no network. */
  | { readonly kind: 'range'; readonly first: Address; readonly last: Address }
  /** A port, or a mark. */
  | { readonly kind: 'number'; readonly value: number }
  /** Ports or marks from the first to the last: `7000-7900`. */
  | { readonly kind: 'numbers'; readonly first: number; readonly last: number }
  /** A name that nft knows (`tcp`, `new`, `local`, `dnat`), or that of an interface, which may end in `*`. */
  | { readonly kind: 'word'; readonly text: string };

/** What becomes of a packet, or where it goes on. */
export type NftVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' | 'continue' }
  /** `goto` does not come back. */
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };
