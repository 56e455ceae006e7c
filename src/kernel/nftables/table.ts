import type { Family } from '../family.ts';
import type { Origin } from '../place.ts';
import type { Element } from './element.ts';
import type { Expression } from './expression.ts';

/**
 * One nftables table of family ip or ip6; kube-proxy's are named `kube-proxy`. Chains, sets, maps and counters compare by name, rules in
 * order, elements in any order. Equality ignores what no tool can change or print back: origins; comments of tables, chains, sets, maps and
 * counters, which some versions of nft omit; and comments of elements, see elementMeaning. Comments of rules count.
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
  readonly strange?: StrangeParts | undefined;
}

/** Parts of a table that kpc only knows as text. */
interface StrangeParts {
  /** The first line of each: "counter hits", "flags dormant". */
  readonly heads: readonly string[];
  /** The whole table as nft lists it. nft can create it again from this text. */
  readonly text: string;
}

/** A named counter for the packets of rules that name it. */
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

/** A map from keys to verdicts, or to data of other types. */
export interface NftMap extends Container {
  readonly kind: 'map';
  /** `['verdict']` if its elements are verdicts. */
  readonly valueType: readonly string[];
}

export function findTable(tables: readonly NftTable[], family: Family, name: string): NftTable | undefined {
  return tables.find((table) => table.family === family && table.name === name);
}

/**
 * Whether a running program owns the table (flag owner): the kernel lets no other program change it, and removes it when that program ends.
 */
export function isOwnedByProgram({ strange }: NftTable): boolean {
  return strange?.heads.some((head) => /^flags\b.*\bowner\b/.test(head)) === true;
}

/**
 * Whether rules write the set's elements (`update @affinity-… { ip saddr }`). Such elements come from traffic: equality ignores them, and a
 * change of anything else keeps them. Some versions of `nft -j` do not print the flag `dynamic`.
 */
export function isLearned(set: NftSet | NftMap): boolean {
  return set.flags.includes('dynamic') || set.flags.includes('timeout');
}
