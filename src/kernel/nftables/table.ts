import type { Family } from '../family.ts';
import type { Origin } from '../place.ts';
import type { Element } from './element.ts';
import type { Expression } from './expression.ts';

/**
 * One nftables table of the family ip or ip6; kube-proxy's are named `kube-proxy`. Chains, sets, maps and counters
 * compare by name, rules in their order, elements in none. Equality ignores what no tool can change or print back:
 * origins, and the comments of tables, chains, sets, maps and counters, which some versions of nft leave out; and those of
 * elements, see elementMeaning. The comments of rules count.
 */
export interface NftTable {
  readonly family: Family;
  readonly name: string;
  readonly comment?: string | undefined;
  readonly chains: ReadonlyMap<string, NftChain>;
  /** Sets and maps share one space of names. */
  readonly sets: ReadonlyMap<string, NftSet | NftMap>;
  /** Their counts are no part of a state. */
  readonly counters: ReadonlyMap<string, NftCounter>;
  /**
   * Parts that kpc does not model: a quota, a flowtable, the flag that makes the table dormant. Such a table can only
   * be replaced as a whole.
   */
  readonly strange?: StrangeParts | undefined;
}

/** Parts of a table of which kpc knows only the text. */
interface StrangeParts {
  /** The first line of each: "counter hits", "flags dormant". */
  readonly heads: readonly string[];
  /** The whole table as nft lists it. nft can make it again from this text. */
  readonly text: string;
}

/** A named counter: rules that name it count their packets in it. */
export interface NftCounter {
  readonly name: string;
  readonly comment?: string | undefined;
}

/** A chain with its rules in order. */
export interface NftChain {
  readonly name: string;
  /** The hook where the kernel enters it; undefined for a chain that only rules and maps lead to. */
  readonly base?: BaseChain | undefined;
  readonly comment?: string | undefined;
  readonly rules: readonly NftRule[];
  readonly origin?: Origin | undefined;
}

/** What ties a chain to a hook of the kernel. Only the policy can change while the chain exists. */
export interface BaseChain {
  /** `filter`, `nat` or `route`. */
  readonly type: string;
  /** `prerouting`, `input`, `forward`, `output` or `postrouting`. */
  readonly hook: string;
  /**
   * A number even if nft prints a name: `dstnat - 10` is -110. Versions of nft differ in the names that they accept
   * and print for each hook.
   */
  readonly priority: number;
  /** The verdict for packets that no rule decides; undefined is `accept`. */
  readonly policy?: 'drop' | undefined;
}

/** One rule: matches and statements from left to right, and its comment. */
export interface NftRule {
  readonly expressions: readonly Expression[];
  readonly comment?: string | undefined;
  readonly origin?: Origin | undefined;
}

/** What sets and maps have in common. */
interface Container {
  readonly name: string;
  /** The types of the parts of a key: ['ipv4_addr', 'inet_proto', 'inet_service']. */
  readonly keyType: readonly string[];
  /** `dynamic`, `timeout`, `interval`, `constant`; sorted. */
  readonly flags: readonly string[];
  readonly timeoutSeconds?: number | undefined;
  /** The most elements that it can hold. Sets that rules write to get 65535 from the kernel if none is given. */
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

/** A named map from keys to verdicts, or to data of other types. */
export interface NftMap extends Container {
  readonly kind: 'map';
  /** `['verdict']` where each element says what becomes of the packet. */
  readonly valueType: readonly string[];
}

export function findTable(tables: readonly NftTable[], family: Family, name: string): NftTable | undefined {
  return tables.find((table) => table.family === family && table.name === name);
}

/**
 * Whether a running program owns the table (flag owner): the kernel lets no other program change it, and removes it
 * when that program ends.
 */
export function isOwnedByProgram({ strange }: NftTable): boolean {
  return strange?.heads.some((head) => /^flags\b.*\bowner\b/.test(head)) === true;
}

/**
 * Whether rules write the set's elements (`update @affinity-… { ip saddr }`). Such elements come from the traffic:
 * equality ignores them, and a change of anything else keeps them. Some versions of `nft -j` do not print the flag
 * `dynamic`.
 */
export function isLearned(set: NftSet | NftMap): boolean {
  return set.flags.includes('dynamic') || set.flags.includes('timeout');
}
