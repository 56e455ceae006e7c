import { compareTables, type NftChange, type NftTableDelta } from '../../src/kernel/nftables/nft-delta.ts';
import { keyMeaning } from '../../src/kernel/nftables/nft-meaning.ts';
import type { NftMap, NftSet, NftTable } from '../../src/kernel/nftables/table.ts';

/** The tables after the changes. */
export function applyNftDelta(tables: readonly NftTable[], deltas: readonly NftTableDelta[]): readonly NftTable[] {
  let result = [...tables];
  for (const delta of deltas) {
    switch (delta.kind) {
      case 'create-table':
        result = [...result.filter((table) => !isSameTable(table, delta.table)), delta.table];
        break;
      case 'delete-table':
        result = result.filter((table) => !isSameTable(table, delta.table));
        break;
      case 'change-table':
        result = result.map((table) =>
          table.family === delta.family && table.name === delta.name ? changeTable(table, delta.changes) : table,
        );
        break;
      default:
        delta satisfies never;
    }
  }
  return result.sort(compareTables);
}

function isSameTable(a: NftTable, b: NftTable): boolean {
  return a.family === b.family && a.name === b.name;
}

function changeTable(table: NftTable, changes: readonly NftChange[]): NftTable {
  const chains = new Map(table.chains);
  const sets = new Map(table.sets);
  const counters = new Map(table.counters);
  for (const change of changes) {
    switch (change.kind) {
      case 'add-counter':
        counters.set(change.counter.name, change.counter);
        break;
      case 'delete-counter':
        counters.delete(change.counter.name);
        break;
      case 'add-chain':
        chains.set(change.chain.name, change.chain);
        break;
      case 'delete-chain':
        chains.delete(change.chain.name);
        break;
      case 'replace-chain':
        chains.set(change.to.name, change.to);
        break;
      case 'refill-chain':
        break;
      case 'add-set':
        sets.set(change.set.name, change.set);
        break;
      case 'delete-set':
        sets.delete(change.set.name);
        break;
      case 'replace-set':
        sets.set(change.to.name, change.to);
        break;
      case 'change-elements': {
        const old = sets.get(change.set.name);
        if (old) sets.set(old.name, changeElements(old, change));
        break;
      }
      default:
        change satisfies never;
    }
  }
  return { ...table, counters, chains, sets };
}

function changeElements(
  set: NftSet | NftMap,
  { added, removed }: NftChange & { readonly kind: 'change-elements' },
): NftSet | NftMap {
  const gone = new Set(removed.map(({ key }) => keyMeaning(key)));
  return { ...set, elements: [...set.elements.filter(({ key }) => !gone.has(keyMeaning(key))), ...added] };
}
