import { families, type Family } from '../kernel/family.ts';
import { tableNames, type Chain, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import { jumpChain } from '../kernel/restrict.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import type { Told } from './coverage.ts';

/** The rules of iptables in a dump while its files are read. */
export class RulesDraft {
  readonly #tables = new Map<Family, Map<TableName, Map<string, Chain>>>();
  readonly #toldTables = new Map<Family, Set<TableName>>();
  readonly #cutOff = new Set<Family>();
  readonly #excerpts = new Set<Family>();
  readonly #hidden: { readonly [F in Family]: Set<TableName> } = { ipv4: new Set(), ipv6: new Set() };

  /**
   * Adds the rules of one family. `told` are the tables that are known whole; 'all' of what iptables-save prints without a
   * table named. Of a table that was taken twice, by iptables-legacy-save and iptables-nft-save, the one that kube-proxy
   * works in counts; of parts that were printed one by one, all.
   */
  add(family: Family, tables: Tables, told: readonly TableName[] | 'all' | 'none'): void {
    const known = this.#tables.get(family) ?? new Map<TableName, Map<string, Chain>>();
    this.#tables.set(family, known);
    for (const name of tableNames) {
      const chains = tables[name];
      if (!chains) continue;
      const before = known.get(name);
      if (!before || (told !== 'none' && !hasOwnChains(name, before) && hasOwnChains(name, chains))) {
        known.set(name, new Map(chains));
      } else if (told === 'none') {
        for (const [chain, rules] of chains) if (!before.has(chain)) before.set(chain, rules);
      }
    }
    if (told === 'none') {
      this.#excerpts.add(family);
      return;
    }
    const names = this.#toldTables.get(family) ?? new Set<TableName>();
    for (const name of told === 'all' ? tableNames : told) names.add(name);
    this.#toldTables.set(family, names);
  }

  cutOff(family: Family): void {
    this.#cutOff.add(family);
  }

  /** Of these tables iptables-save said that it cannot show them. */
  hide(family: Family, tables: readonly TableName[]): void {
    for (const table of tables) this.#hidden[family].add(table);
  }

  get objects(): FamilyTables {
    const iptables: { [F in Family]?: Tables } = {};
    for (const [family, tables] of this.#tables) iptables[family] = Object.fromEntries(tables);
    return iptables;
  }

  get told(): Told['iptables'] {
    return { ipv4: this.#tablesOf('ipv4'), ipv6: this.#tablesOf('ipv6') };
  }

  /** Families of whose rules a part was printed, as it was meant. */
  get excerpts(): readonly Family[] {
    return families.filter((family) => this.#excerpts.has(family) && !this.#cutOff.has(family));
  }

  /**
   * kube-proxy works in nat and filter: where only one of them is there, with its chains or with jumps to them, the other was
   * not printed.
   */
  #tablesOf(family: Family): readonly TableName[] {
    if (this.#cutOff.has(family)) return [];
    const known = this.#tables.get(family);
    const told = this.#toldTables.get(family) ?? new Set();
    const isUnprinted = (name: TableName, other: TableName): boolean => {
      const chains = known?.get(other);
      return !known?.has(name) && chains !== undefined && (hasOwnChains(other, chains) || jumpsToOwn(other, chains));
    };
    return tableNames.filter(
      (name) =>
        told.has(name) &&
        !this.#hidden[family].has(name) &&
        !(name === 'filter' && isUnprinted('filter', 'nat')) &&
        !(name === 'nat' && isUnprinted('nat', 'filter')),
    );
  }
}

function hasOwnChains(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  for (const name of chains.keys()) {
    const kind = classifyChain(table, name);
    if (kind === 'service' || kind === 'fixed') return true;
  }
  return false;
}

/** Whether rules lead to kube-proxy's chains, be those there or not. */
function jumpsToOwn(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  for (const { rules } of chains.values()) {
    for (const rule of rules) {
      const target = jumpChain(rule);
      const kind = target === undefined ? undefined : classifyChain(table, target);
      if (kind === 'service' || kind === 'fixed') return true;
    }
  }
  return false;
}
