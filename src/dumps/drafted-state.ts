import { families, type Family } from '../kernel/family.ts';
import { tableNames, type Chain, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { compareVirtualServers, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Link } from '../kernel/link/link.ts';
import { compareTables } from '../kernel/nftables/nft-delta.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import { jumpChain } from '../kernel/restrict.ts';
import type { KernelState } from '../kernel/state.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import { isKubeProxyTable, nftChains, nftSets } from '../kube-proxy/nft-names.ts';
import type { Coverage } from './coverage.ts';

/** The rules of one family. */
interface DraftedRules {
  readonly tables: Map<TableName, Map<string, Chain>>;
  /** Those that are known whole. */
  readonly whole: Set<TableName>;
  /** Those that iptables-save said that it cannot show. */
  readonly hidden: Set<TableName>;
  isCutOff: boolean;
  isExcerpt: boolean;
}

/** The state of a kernel while the files of a dump are read. The same may have been taken twice: the first counts. */
export class DraftedState {
  readonly sets = new Listed<IpSet>(({ name }) => name);
  readonly virtualServers = new Listed<VirtualServer>(virtualServerKey);
  readonly links = new Listed<Link>(({ name }) => name);
  sysctls: KernelState['sysctls'] | undefined;
  ipvsTimeouts: KernelState['ipvsTimeouts'];
  /** Whether nft was run with an option that leaves out too much. */
  isNftLossy = false;
  readonly #rules: { [F in Family]?: DraftedRules } = {};
  readonly #nftables = new Map<string, NftTable>();
  #isRuleset = false;

  /** The rules of one family; it counts as given from then on. */
  rulesOf(family: Family): DraftedRules {
    const none = { tables: new Map(), whole: new Set<TableName>(), hidden: new Set<TableName>() };
    return (this.#rules[family] ??= { ...none, isCutOff: false, isExcerpt: false });
  }

  /**
   * Adds the rules of one family. `whole` are the tables that are known whole, undefined for parts. Of a table that was taken
   * twice, by iptables-legacy-save and iptables-nft-save, the one that kube-proxy works in counts; of parts that were printed one by
   * one, all.
   */
  addRules(family: Family, tables: Tables, whole: readonly TableName[] | undefined): void {
    const rules = this.rulesOf(family);
    for (const name of tableNames) {
      const chains = tables[name];
      if (!chains) continue;
      const known = rules.tables.get(name);
      if (!known || (whole && !hasOwnChains(name, known) && hasOwnChains(name, chains))) {
        rules.tables.set(name, new Map(chains));
      } else if (!whole) {
        for (const [chain, given] of chains) if (!known.has(chain)) known.set(chain, given);
      }
    }
    if (!whole) rules.isExcerpt = true;
    for (const name of whole ?? []) rules.whole.add(name);
  }

  /** Adds tables of nftables. `isRuleset`: nft was asked for all tables. */
  addNftables(tables: readonly NftTable[], isRuleset: boolean): void {
    for (const table of tables) {
      const key = `${table.family} ${table.name}`;
      const known = this.#nftables.get(key);
      if (!known || (!isWholeTable(known) && isWholeTable(table))) this.#nftables.set(key, table);
    }
    this.#isRuleset ||= isRuleset;
  }

  /** All that was taken, and what of it is known whole. */
  finish(): { readonly state: KernelState; readonly coverage: Coverage } {
    const { sets, virtualServers, links, sysctls, ipvsTimeouts } = this;
    const rules = families.flatMap((family) => (this.#rules[family] ? [[family, this.#rules[family]] as const] : []));
    return {
      state: {
        iptables: Object.fromEntries(rules.map(([family, { tables }]) => [family, Object.fromEntries(tables)])),
        nftables: [...this.#nftables.values()].sort(compareTables),
        sets: sets.items,
        virtualServers: virtualServers.items.toSorted(compareVirtualServers),
        links: links.items,
        sysctls: sysctls ?? new Map(),
        ipvsTimeouts,
        modules: [],
      },
      coverage: {
        iptables: { ipv4: wholeTables(this.#rules.ipv4), ipv6: wholeTables(this.#rules.ipv6) },
        nftables: families.filter((family) => this.#showsNftables(family)),
        sets: sets.isWhole,
        virtualServers: virtualServers.isWhole,
        links: links.isWhole,
        sysctls: sysctls !== undefined,
        ipvsTimeouts: ipvsTimeouts !== undefined,
        // A dump shows none: what needs a module is in the kernel with it only.
        modules: false,
        families,
        excerpts: rules.flatMap(([family, { isExcerpt, isCutOff }]) => (isExcerpt && !isCutOff ? [family] : [])),
      },
    };
  }

  /** Whether all is known that kube-proxy has in nftables. */
  #showsNftables(family: Family): boolean {
    const own = [...this.#nftables.values()].filter((table) => table.family === family && isKubeProxyTable(table.name));
    return !this.isNftLossy && (own.length === 0 ? this.#isRuleset : own.every(isWholeTable));
  }
}

/** What a tool lists, all of it or a part. */
class Listed<T> {
  readonly #items = new Map<string, T>();
  readonly #keyOf: (item: T) => string;
  isWhole = false;

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  add(items: readonly T[], isWhole: boolean): void {
    for (const item of items) {
      const key = this.#keyOf(item);
      if (!this.#items.has(key)) this.#items.set(key, item);
    }
    this.isWhole ||= isWhole;
  }

  get items(): readonly T[] {
    return [...this.#items.values()];
  }
}

/** `nft list chain` prints a table, too, with that chain alone. */
function isWholeTable({ chains, sets }: NftTable): boolean {
  return chains.has(nftChains.natPrerouting) && chains.has(nftChains.services) && sets.has(nftSets.serviceIPs);
}

/**
 * kube-proxy works in nat and filter: where only one of them is there, with its chains or with jumps to them, the other was
 * not printed.
 */
function wholeTables(rules: DraftedRules | undefined): readonly TableName[] {
  if (!rules || rules.isCutOff) return [];
  const { tables, whole, hidden } = rules;
  const isUnprinted = (name: TableName): boolean => {
    if (tables.has(name) || (name !== 'nat' && name !== 'filter')) return false;
    const other = name === 'nat' ? 'filter' : 'nat';
    const chains = tables.get(other) ?? new Map<string, Chain>();
    return hasOwnChains(other, chains) || jumpsToOwn(other, chains);
  };
  return tableNames.filter((name) => whole.has(name) && !hidden.has(name) && !isUnprinted(name));
}

/** Whether a chain is one that kube-proxy makes in that table. */
export function isOwnChain(table: TableName, chain: string): boolean {
  const kind = classifyChain(table, chain);
  return kind === 'service' || kind === 'fixed';
}

function hasOwnChains(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  return [...chains.keys()].some((name) => isOwnChain(table, name));
}

/** Whether rules lead to kube-proxy's chains, be those there or not. */
function jumpsToOwn(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  return [...chains.values()].some(({ rules }) => rules.some((rule) => isOwnChain(table, jumpChain(rule) ?? '')));
}
