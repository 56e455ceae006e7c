import { diffNftTables } from '../../kernel/nftables/delta.ts';
import { findTable, isOwnedByProgram, type NftTable } from '../../kernel/nftables/table.ts';
import { isKubeProxyTable, isMadeByKubeProxy } from '../../kube-proxy/nftables.ts';
import { nftTableKey } from '../state/belongings.ts';
import { ShareDraft, type Claims, type Conflict, type Leftover, type NamedShare } from './conflicts.ts';

/** How the tables of nftables on a node divide. */
export interface NftShare {
  readonly tables: NamedShare;
  readonly conflicts: readonly Conflict[];
  readonly leftovers: readonly Leftover[];
}

/** A table is one owner's with all that is in it: of those that kpc-apply did not make, a kube-proxy's or another program's. */
export function shareNftTables(
  present: readonly NftTable[],
  wanted: readonly NftTable[],
  { owned, adopt }: Pick<Claims, 'owned' | 'adopt'>,
): NftShare {
  const tables = new ShareDraft();
  const conflicts: Conflict[] = [];
  const leftovers: Leftover[] = [];
  const ownedTables = new Set(owned.nftTables);
  // A table that a program has to itself is that program's, even where the record has one of that name.
  const isMine = (table: NftTable): boolean =>
    isKubeProxyTable(table.name) &&
    !isOwnedByProgram(table) &&
    ((adopt && isMadeByKubeProxy(table)) || ownedTables.has(nftTableKey(table.family, table.name)));

  for (const table of wanted) {
    const key = nftTableKey(table.family, table.name);
    const twin = findTable(present, table.family, table.name);
    if (!twin || isMine(twin)) {
      tables.have(key);
      continue;
    }
    tables.ours.push(key);
    if (diffNftTables([twin], [table]).length > 0) {
      const isHeld = isOwnedByProgram(twin);
      conflicts.push({ kind: 'table', name: key, adoptable: isMadeByKubeProxy(twin) && !isHeld, isHeld });
    }
  }
  for (const table of present) {
    if (findTable(wanted, table.family, table.name)) continue;
    const key = nftTableKey(table.family, table.name);
    if (isMine(table)) tables.letGo(key);
    else if (isMadeByKubeProxy(table)) {
      leftovers.push({ kind: 'table', name: key, isInEffect: true, isHeld: isOwnedByProgram(table) });
    }
  }
  return { tables, conflicts, leftovers };
}
