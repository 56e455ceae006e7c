import type { PlainAction, OtherAction, RuleVerdict, SocketAddress } from '../ports-and-marks.ts';
import type { Address, Family, Network } from '../address.ts';
import type { Origin } from '../place.ts';

export interface Element {
  readonly key: ElementKey;
  readonly value?: ElementValue | undefined;
  readonly comment?: string | undefined;
  readonly origin?: Origin | undefined;
}

export type ElementKey = readonly Value[];

export type ElementValue = RuleVerdict | { readonly kind: 'data'; readonly values: readonly Value[] };

export type Value =
  | { readonly kind: 'address'; readonly address: Address }
  /** A network of one address means the same as the address, and nft prints it as such. */
  | { readonly kind: 'network'; readonly network: Network }
  | { readonly kind: 'range'; readonly first: Address; readonly last: Address }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'numbers'; readonly first: number; readonly last: number }
  /** A word that nft knows (`tcp`, `new`, `local`, `dnat`), or an interface name, which may end in `*`. */
  | { readonly kind: 'word'; readonly text: string };

export type Selector = readonly Field[];

/** A field as kube-proxy writes it: `ip saddr`, `th dport` (any protocol), `mark`, `iifname`, `ct state`, `fib daddr type`. */
export interface Field {
  readonly name: string;
  /** The bits to compare, if not all: `mark and 0x4000`. */
  readonly mask?: number | undefined;
}

/** The values that a match compares with. Order and overlaps do not matter. */
export type Right =
  /** `10.0.0.1`, `{ 10.0.0.0/8, 192.0.2.1 }`, or `established, related`, which has no braces. */
  | { readonly elements: readonly Element[]; readonly isBraced?: true }
  /** A named set, written `@name`. */
  | { readonly set: string };

type Look =
  | Match
  /** `… vmap @map` gives the verdict for the key. If the map has no element for the key, the kernel goes on with the next rule. */
  | {
      readonly kind: 'verdict-map';
      readonly left: Selector;
      readonly right: Right;
    };

export interface Match {
  readonly kind: 'match';
  readonly left: Selector;
  /** Undefined without an operator. A connection's status is then tested for one bit, whereas `==` compares the whole status. */
  readonly operator?: '==' | '!=' | '<' | '>' | '<=' | '>=' | undefined;
  readonly right: Right;
}

/** An expression that writes to a set. `key` is undefined if kpc cannot read it. */
export interface SetWrite {
  readonly kind: 'write-set';
  readonly operation: 'add' | 'update' | 'delete';
  readonly set: string;
  readonly key: Selector | undefined;
}

/** A part of a rule. Expressions run from left to right until a match fails or a verdict is reached. */
export type Expression =
  | Look
  | PlainAction
  /** `numgen random mod N vmap { 0 : goto …, … }` goes to one of the chains, with equal probability. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  /** `dnat ip addr . port to numgen random mod N map { 0 : ADDRESS . PORT, … }` chooses a target, with equal probability. */
  | { readonly kind: 'dnat-random'; readonly targets: readonly SocketAddress[] }
  /** `update @set { … }` stores the packet's key for the set's timeout. */
  | (SetWrite & { readonly key: Selector })
  /** `counter name "NAME"` counts the packet in one of the table's counters. */
  | { readonly kind: 'counter'; readonly counter: string }
  | (OtherExpression & { readonly text: string });

/** An expression that kpc never writes. kpc keeps nft's words. Two such expressions are equal only if their words are the same. */
export type OtherExpression =
  | OtherAction
  /** A comparison with constants that kpc cannot write. */
  | Look
  | SetWrite
  | { readonly kind: 'random-verdict'; readonly verdicts: readonly RuleVerdict[] }
  | { readonly kind: 'chance'; readonly probability: number }
  /** Matches packets up to a rate or an amount; with `isOver`, packets above it. */
  | { readonly kind: 'limit'; readonly isOver: boolean }
  | TcpFlags
  /** Changes neither the rules that a first packet meets nor its route or receiver. */
  | { readonly kind: 'idle' };

export interface TcpFlags {
  readonly kind: 'tcp-flags';
  /** The flags that count; undefined for all. */
  readonly mask: readonly string[] | undefined;
  /** `any` and `none` ask whether any or none of `flags` is set. */
  readonly operator: '==' | '!=' | 'any' | 'none';
  readonly flags: readonly string[];
}

export function setOf(expression: Expression): string | undefined {
  const named = 'right' in expression ? expression.right : expression;
  return 'set' in named ? named.set : undefined;
}

export function expressionsIn({ chains }: NftTable): readonly Expression[] {
  return [...chains.values()].flatMap(({ rules }) => rules.flatMap((rule) => rule.expressions));
}

export function chainsOf(expression: Expression): readonly string[] {
  switch (expression.kind) {
    case 'jump':
    case 'goto':
      return [expression.chain];
    case 'goto-random':
      return expression.chains;
    case 'random-verdict':
      return expression.verdicts.flatMap(chainsOf);
    case 'verdict-map':
      return 'set' in expression.right ? [] : expression.right.elements.flatMap(chainsOfElement);
    default:
      return [];
  }
}

export function chainsOfElement({ value }: Element): readonly string[] {
  return value && 'chain' in value ? [value.chain] : [];
}

/**
 * A table of family ip or ip6; kube-proxy's are named `kube-proxy`. Equality compares the rules of a chain in order, and all other parts by
 * name. Equality ignores origins. It also ignores all comments but those of rules, because no tool can change such comments and not every
 * nft prints them (see canonicalElement).
 */
export interface NftTable {
  readonly family: Family;
  readonly name: string;
  readonly comment?: string | undefined;
  readonly chains: ReadonlyMap<string, NftChain>;
  /** Sets and maps share one namespace. */
  readonly sets: ReadonlyMap<string, NftSet | NftMap>;
  /** Counts are not part of the state. */
  readonly counters: ReadonlyMap<string, NftCounter>;
  /** Parts that kpc does not model: a quota, a flowtable, the flag dormant. A table with such parts can only be replaced as a whole. */
  readonly strange?:
    | {
        readonly heads: readonly string[];
        /** The whole table as nft lists it, which nft can read again. */
        readonly text: string;
      }
    | undefined;
}

export interface NftCounter {
  readonly name: string;
  readonly comment?: string | undefined;
}

export interface NftChain {
  readonly name: string;
  /** The hook at which packets enter the chain; undefined if only rules and maps lead to it. */
  readonly base?: BaseChain | undefined;
  readonly comment?: string | undefined;
  readonly rules: readonly NftRule[];
  readonly origin?: Origin | undefined;
}

/** The chain's place in the kernel. Only the policy can change while the chain exists. */
export interface BaseChain {
  readonly type: string;
  /** `prerouting`, `input`, `forward`, `output` or `postrouting`; or `ingress`, with `devices`. */
  readonly hook: string;
  /** The links whose incoming packets the chain sees; a final `*` stands for any characters. */
  readonly devices?: readonly string[] | undefined;
  /** Always a number, so `dstnat - 10` is -110, because the names that nft accepts and prints differ by version and hook. */
  readonly priority: number;
  /** The verdict for packets that no rule decides; undefined means `accept`. */
  readonly policy?: 'drop' | undefined;
}

export interface NftRule {
  readonly expressions: readonly Expression[];
  readonly comment?: string | undefined;
  readonly origin?: Origin | undefined;
}

interface Container {
  readonly name: string;
  readonly keyType: readonly string[];
  /** Sorted: `constant`, `dynamic`, `interval`, `timeout`. */
  readonly flags: readonly string[];
  readonly timeoutSeconds?: number | undefined;
  /** The maximum number of elements. The kernel's default for a set that rules write to is 65535. */
  readonly size?: number | undefined;
  readonly comment?: string | undefined;
  readonly elements: readonly Element[];
  /** Set if a listing shows only some of the elements. */
  readonly isPart?: true | undefined;
  readonly origin?: Origin | undefined;
}

export interface NftSet extends Container {
  readonly kind: 'set';
}

export interface NftMap extends Container {
  readonly kind: 'map';
  readonly valueType: readonly string[];
}

export function findTable(tables: readonly NftTable[], family: Family, name: string): NftTable | undefined {
  return tables.find((table) => table.family === family && table.name === name);
}

/** Reports whether a running program owns the table (flag owner). Only that program can change it, and the table ends with the program. */
export function isOwnedByProgram({ strange }: NftTable): boolean {
  return strange?.heads.some((head) => /^flags\b.*\bowner\b/.test(head)) === true;
}

/**
 * Reports whether rules write the set's elements. Equality ignores these elements, and changes keep them. Tests two flags, because some
 * versions of `nft -j` do not print `dynamic`.
 */
export function isLearned(set: NftSet | NftMap): boolean {
  return set.flags.includes('dynamic') || set.flags.includes('timeout');
}
