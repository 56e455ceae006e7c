import { compareTables, keyMeaning, type NftChange, type NftTableDelta } from '../../src/kernel/nftables/nft-delta.ts';
import { itemOf, type Pair } from '../../src/kernel/compare.ts';
import type { NftMap, NftSet, NftTable } from '../../src/kernel/nftables/table.ts';

export function applyNftDelta(tables: readonly NftTable[], deltas: readonly NftTableDelta[]): readonly NftTable[] {
  let result = [...tables];
  for (const delta of deltas) {
    switch (delta.kind) {
      case 'table': {
        const { family, name } = itemOf(delta);
        result = result.filter((table) => table.family !== family || table.name !== name);
        if (delta.to) result.push(delta.to);
        break;
      }
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

function changeTable(table: NftTable, changes: readonly NftChange[]): NftTable {
  const chains = new Map(table.chains);
  const sets = new Map(table.sets);
  const counters = new Map(table.counters);
  for (const change of changes) {
    switch (change.kind) {
      case 'counter':
        put(counters, change);
        break;
      case 'chain':
        put(chains, change);
        break;
      case 'set':
        put(sets, change);
        break;
      case 'elements': {
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

function put<T extends { readonly name: string }>(items: Map<string, T>, { from, to }: Pair<T>): void {
  if (from) items.delete(from.name);
  if (to) items.set(to.name, to);
}

function changeElements(
  set: NftSet | NftMap,
  { added, removed }: NftChange & { readonly kind: 'elements' },
): NftSet | NftMap {
  const gone = new Set(removed.map(({ key }) => keyMeaning(key)));
  return { ...set, elements: [...set.elements.filter(({ key }) => !gone.has(keyMeaning(key))), ...added] };
}
