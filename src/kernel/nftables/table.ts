// The types of nftables: elements of sets and maps, the expressions of rules, and the tables that hold both.
import type { PlainAction, OtherAction, RuleVerdict, SocketAddress } from '../ports-and-marks.ts';
import type { Address, Network } from '../address.ts';
import type { Origin } from '../place.ts';
import type { Family } from '../family.ts';

export interface Element {
  readonly key: ElementKey;
  readonly value?: ElementValue | undefined;
  readonly comment?: string | undefined;
  readonly origin?: Origin | undefined;
}

/** One value for each part of the key type. */
export type ElementKey = readonly Value[];

export type ElementValue = RuleVerdict | { readonly kind: 'data'; readonly values: readonly Value[] };

export type Value =
  | { readonly kind: 'address'; readonly address: Address }
  /** A network of one address means the same as the address, and nft prints it as such. */
  | { readonly kind: 'network'; readonly network: Network }
  | { readonly kind: 'range'; readonly first: Address; readonly last: Address }
  | { readonly kind: 'number'; readonly value: number }
  /** A range of ports or marks: `7000-7900`. */
  | { readonly kind: 'numbers'; readonly first: number; readonly last: number }
  /** A name that nft knows (`tcp`, `new`, `local`, `dnat`), or an interface name, which may end in `*`. */
  | { readonly kind: 'word'; readonly text: string };

export type Selector = readonly Field[];

/** As kube-proxy writes it: `ip saddr`, `th dport` (any protocol), `mark`, `iifname`, `ct state`, `fib daddr type`. */
export interface Field {
  readonly name: string;
  /** The bits that count, if not all: `mark and 0x4000`. */
  readonly mask?: number | undefined;
}

/** The value that a match compares with. Order and overlaps do not matter. */
export type Right =
  /** `10.0.0.1`, `{ 10.0.0.0/8, 192.0.2.1 }`, or `established, related`, which is not braced. */
  | { readonly elements: readonly Element[]; readonly isBraced?: true }
  /** `@name`. */
  | { readonly set: string };

type Look =
  | Match
  /** `… vmap @map`: the verdict for the key; without an element, the next rule follows. */
  | {
      readonly kind: 'verdict-map';
      readonly left: Selector;
      readonly right: Right;
    };

export interface Match {
  readonly kind: 'match';
  readonly left: Selector;
  /** Undefined for equality, which looks for one bit of a connection's status; `==` compares it as a whole. */
  readonly operator?: '==' | '!=' | '<' | '>' | '<=' | '>=' | undefined;
  readonly right: Right;
}

/** Without a key, kpc cannot read what it writes. */
export interface SetWrite {
  readonly kind: 'write-set';
  readonly operation: 'add' | 'update' | 'delete';
  readonly set: string;
  readonly key: Selector | undefined;
}

/** A part of a rule. A rule runs its expressions from left to right until a match fails or a verdict is reached. */
export type Expression =
  | Look
  | PlainAction
  /** `numgen random mod N vmap { 0 : goto …, … }`: one of these chains, with equal probability. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  /** `dnat ip addr . port to numgen random mod N map { 0 : ADDRESS . PORT, … }`: one of these, with equal probability. */
  | { readonly kind: 'dnat-random'; readonly targets: readonly SocketAddress[] }
  /** `update @set { … }`: stores the packet's key for the set's timeout. */
  | (SetWrite & { readonly key: Selector })
  /** `counter name "NAME"`: counts the packet in one of the table's counters. */
  | { readonly kind: 'counter'; readonly counter: string }
  | (OtherExpression & { readonly text: string });

/** Expressions that kpc never writes. It is kept in nft's words, and equal only to the same words. */
export type OtherExpression =
  | OtherAction
  /** For fields whose constants kpc cannot write. */
  | Look
  /** With a time or a value. */
  | SetWrite
  | { readonly kind: 'random-verdict'; readonly verdicts: readonly RuleVerdict[] }
  | { readonly kind: 'chance'; readonly probability: number }
  /** Matches packets up to a rate or an amount, or packets above it. */
  | { readonly kind: 'limit'; readonly isOver: boolean }
  | TcpFlags
  /** No effect on the first packet's rules, routes or receiver. */
  | { readonly kind: 'idle' };

export interface TcpFlags {
  readonly kind: 'tcp-flags';
  /** The flags that count; undefined for all. */
  readonly mask: readonly string[] | undefined;
  /** `any`, `none`: any or none of these flags. */
  readonly operator: '==' | '!=' | 'any' | 'none';
  readonly flags: readonly string[];
}

/** The named set that an expression looks in or writes to. */
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

/** The chain that an element of a verdict map leads to. */
export function chainsOfElement({ value }: Element): readonly string[] {
  return value && 'chain' in value ? [value.chain] : [];
}

/**
 * One nftables table of family ip or ip6; kube-proxy's are named `kube-proxy`. Equality compares rules in order, all
 * else by name in any order. It ignores parts that no tool can change or print back: origins, and comments except those
 * of rules, which some versions of nft omit; see elementMeaning.
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
  /** Parts that kpc does not model: a quota, a flowtable, the flag dormant. Such a table can only be replaced as a whole. */
  readonly strange?:
    | {
        /** The first line of each: "counter hits", "flags dormant". */
        readonly heads: readonly string[];
        /** The whole table as nft lists it. nft can create it again from this text. */
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
  /** The hook where the kernel enters the chain; undefined if only rules and maps lead to it. */
  readonly base?: BaseChain | undefined;
  readonly comment?: string | undefined;
  readonly rules: readonly NftRule[];
  readonly origin?: Origin | undefined;
}

/** The chain's place in the kernel. Only the policy can change while the chain exists. */
export interface BaseChain {
  /** `filter`, `nat` or `route`. */
  readonly type: string;
  /** `prerouting`, `input`, `forward`, `output` or `postrouting`; or `ingress`, with `devices`. */
  readonly hook: string;
  /** The links whose incoming packets it sees; a trailing `*` matches any further characters. */
  readonly devices?: readonly string[] | undefined;
  /** Always a number: `dstnat - 10` is -110. Versions of nft differ in the names they accept and print for each hook. */
  readonly priority: number;
  /** The verdict if no rule decides; undefined means `accept`. */
  readonly policy?: 'drop' | undefined;
}

export interface NftRule {
  readonly expressions: readonly Expression[];
  readonly comment?: string | undefined;
  readonly origin?: Origin | undefined;
}

interface Container {
  readonly name: string;
  /** The types of a key's parts: ['ipv4_addr', 'inet_proto', 'inet_service']. */
  readonly keyType: readonly string[];
  /** `dynamic`, `timeout`, `interval`, `constant`; sorted. */
  readonly flags: readonly string[];
  readonly timeoutSeconds?: number | undefined;
  /** Most elements it can hold. The kernel gives sets that rules write to 65535 by default. */
  readonly size?: number | undefined;
  readonly comment?: string | undefined;
  readonly elements: readonly Element[];
  /** Whether a listing shows only some of its elements. */
  readonly isPart?: true | undefined;
  readonly origin?: Origin | undefined;
}

export interface NftSet extends Container {
  readonly kind: 'set';
}

export interface NftMap extends Container {
  readonly kind: 'map';
  /** `['verdict']` if its elements are verdicts. */
  readonly valueType: readonly string[];
}

export function findTable(tables: readonly NftTable[], family: Family, name: string): NftTable | undefined {
  return tables.find((table) => table.family === family && table.name === name);
}

/** Whether a running program owns the table (flag owner): only that program can change the table, and the table ends with the program. */
export function isOwnedByProgram({ strange }: NftTable): boolean {
  return strange?.heads.some((head) => /^flags\b.*\bowner\b/.test(head)) === true;
}

/**
 * Whether rules write the set's elements (`update @affinity-… { ip saddr }`), which equality ignores and changes keep.
 * Some versions of `nft -j` do not print the flag `dynamic`.
 */
export function isLearned(set: NftSet | NftMap): boolean {
  return set.flags.includes('dynamic') || set.flags.includes('timeout');
}
