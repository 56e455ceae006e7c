import { families, type Family } from '../family.ts';
import { diffTables, type TableDelta } from './iptables-delta.ts';
import type { Tables } from './iptables.ts';

/** The tables of iptables of each family; a family without any is one that was not compiled, or not dumped. */
export type FamilyTables = { readonly [F in Family]?: Tables };

/** What changes of them; nothing stands for a family of which nothing changes. */
export type FamilyTablesDelta = { readonly [F in Family]?: readonly TableDelta[] };

/** A family without tables counts as one without chains. */
export function diffFamilyTables(from: FamilyTables, to: FamilyTables): FamilyTablesDelta {
  const delta: { [F in Family]?: readonly TableDelta[] } = {};
  for (const family of families) {
    const tables = diffTables(from[family] ?? {}, to[family] ?? {});
    if (tables.length > 0) delta[family] = tables;
  }
  return delta;
}

export function isEmptyFamilyTablesDelta(delta: FamilyTablesDelta): boolean {
  return families.every((family) => (delta[family] ?? []).length === 0);
}
