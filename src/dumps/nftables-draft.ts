import { families, type Family } from '../kernel/family.ts';
import { compareTables } from '../kernel/nftables/delta.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import { isKubeProxyTable, nftChains, nftSets } from '../kube-proxy/nftables.ts';

/** What nft was asked for: all tables, or what nothing tells. A part of a table tells nothing of the rest. */
export type NftScope = 'ruleset' | 'unknown';

/** Options of nft that leave out too much: names of ports are told for ports, or no elements. */
export type LossyOption = 'nft -S' | 'nft -t';

/** The tables of nftables in a dump while its files are read. The first telling of a table counts. */
export class NftDraft {
  readonly #tables = new Map<string, NftTable>();
  #isRuleset = false;
  readonly #lossy = new Set<LossyOption>();
  readonly #untold = new Set<NftTable>();

  /** `option`: what nft was run with that makes these tables tell too little. */
  add(tables: readonly NftTable[], scope: NftScope, option?: LossyOption): void {
    if (option) this.#lossy.add(option);
    for (const table of tables) {
      if (option) this.#untold.add(table);
      const key = `${table.family} ${table.name}`;
      const known = this.#tables.get(key);
      if (!known || (!isWhole(known) && isWhole(table))) this.#tables.set(key, table);
    }
    if (scope === 'ruleset') this.#isRuleset = true;
  }

  get objects(): readonly NftTable[] {
    return [...this.#tables.values()].sort(compareTables);
  }

  /** The families of which all is known that kube-proxy has in nftables. */
  get told(): readonly Family[] {
    return families.filter((family) => {
      const own = this.objects.filter((table) => table.family === family && isKubeProxyTable(table.name));
      const isTerse = this.#lossy.has('nft -t');
      if (own.length === 0) return this.#isRuleset && !isTerse;
      // Next to a table without its elements, one that has none may have lost them, too.
      return own.every((table) => isWhole(table) && !this.#untold.has(table) && !(isTerse && hasNoElements(table)));
    });
  }
}

/** `nft list chain` prints a table, too, with that chain alone. */
function isWhole({ chains, sets }: NftTable): boolean {
  return chains.has(nftChains.natPrerouting) && chains.has(nftChains.services) && sets.has(nftSets.serviceIPs);
}

function hasNoElements({ sets }: NftTable): boolean {
  return [...sets.values()].every(({ elements }) => elements.length === 0);
}
