import type { NftChange, NftTableDelta } from '../kernel/nftables/delta.ts';
import type { Element } from '../kernel/nftables/element.ts';
import { formatElement } from '../kernel/nftables/format-expression.ts';
import { ruleMeaning } from '../kernel/nftables/meaning.ts';
import type { NftChain, NftMap, NftRule, NftSet, NftTable } from '../kernel/nftables/table.ts';
import type { ChangedObject, ChangeLister, SideOwners } from './change-lister.ts';
import { tally } from './change-lister.ts';
import type { ChangeKind, OwnedChange } from './kernel-change.ts';
import type { Owners } from './owners.ts';

export const nftChanges: ChangeLister<readonly NftTableDelta[]> = {
  list: (deltas, owners) => deltas.flatMap((delta) => listTable(delta, owners)),
  count: (deltas) => tally(deltas.flatMap(countTable)),
};

/** The table that a change is in. */
type Place = Pick<NftTable, 'family' | 'name'>;

function listTable(delta: NftTableDelta, owners: SideOwners): readonly OwnedChange[] {
  switch (delta.kind) {
    case 'create-table':
      return [wholeTable(delta.table, 'added'), ...stepsOf(delta.table, 'added').flatMap(listIn(delta.table, owners))];
    case 'delete-table':
      return [
        wholeTable(delta.table, 'removed'),
        ...stepsOf(delta.table, 'removed').flatMap(listIn(delta.table, owners)),
      ];
    case 'change-table':
      return delta.changes.flatMap(listIn(delta, owners));
  }
}

function wholeTable({ family, name }: Place, change: 'added' | 'removed'): OwnedChange {
  return { owner: undefined, change: { kind: 'nft-table', change, family, table: name } };
}

/** A whole table as the steps that make it, or take it away. */
function stepsOf({ sets, chains }: NftTable, change: 'added' | 'removed'): readonly NftChange[] {
  return change === 'added'
    ? [
        ...[...sets.values()].map((set): NftChange => ({ kind: 'add-set', set })),
        ...[...chains.values()].map((chain): NftChange => ({ kind: 'add-chain', chain })),
      ]
    : [
        ...[...chains.values()].map((chain): NftChange => ({ kind: 'delete-chain', chain })),
        ...[...sets.values()].map((set): NftChange => ({ kind: 'delete-set', set })),
      ];
}

function listIn(place: Place, owners: SideOwners): (change: NftChange) => readonly OwnedChange[] {
  return (change) => {
    switch (change.kind) {
      case 'add-chain':
        return [chainChange(place, 'added', undefined, change.chain, owners)];
      case 'delete-chain':
        return [chainChange(place, 'removed', change.chain, undefined, owners)];
      case 'replace-chain':
        return [chainChange(place, 'changed', change.from, change.to, owners)];
      // The same rules as before.
      case 'refill-chain':
        return [];
      case 'add-set':
        return setChange(place, 'added', change.set, change.set.elements, owners.to);
      case 'delete-set':
        return setChange(place, 'removed', change.set, change.set.elements, owners.from);
      case 'replace-set':
        return setChange(place, 'changed', change.to, [], owners.to);
      case 'change-elements':
        return [
          ...elementChanges(place, 'removed', change.set, change.removed, owners.from),
          ...elementChanges(place, 'added', change.set, change.added, owners.to),
        ];
    }
  };
}

function chainChange(
  { family, name: table }: Place,
  change: ChangeKind,
  from: NftChain | undefined,
  to: NftChain | undefined,
  owners: SideOwners,
): OwnedChange {
  const [before, after] = [from?.rules ?? [], to?.rules ?? []].map((rules) => rules.map(ruleMeaning));
  const added = lacking(to?.rules ?? [], before ?? []);
  const removed = lacking(from?.rules ?? [], after ?? []);
  return {
    owner: (to && owners.to.ofNftChain(to)) ?? (from && owners.from.ofNftChain(from)),
    change: {
      kind: 'nft-chain',
      change,
      family,
      table,
      chain: (to ?? from)?.name ?? '',
      rulesFrom: from?.rules.length ?? 0,
      rulesTo: to?.rules.length ?? 0,
      added,
      removed,
      reordered: change === 'changed' && added.length + removed.length === 0,
    },
  };
}

/** The meanings of rules that are not among the others, each as often as there are more of it. */
function lacking(rules: readonly NftRule[], others: readonly string[]): readonly string[] {
  const left = new Map<string, number>();
  for (const other of others) left.set(other, (left.get(other) ?? 0) + 1);
  return rules.map(ruleMeaning).filter((meaning) => {
    const count = left.get(meaning) ?? 0;
    left.set(meaning, count - 1);
    return count <= 0;
  });
}

/** A set, and those of its elements that belong to Service ports; the others are counted with it. */
function setChange(
  place: Place,
  change: ChangeKind,
  set: NftSet | NftMap,
  elements: readonly Element[],
  owners: Owners,
): readonly OwnedChange[] {
  const listed = change === 'changed' ? [] : elementChanges(place, change, set, elements, owners);
  const owned = listed.filter(({ owner }) => owner !== undefined);
  const { family, name: table } = place;
  const free = elements.length - owned.length;
  return [
    {
      owner: owners.ofNftSet(set),
      change: { kind: 'nft-set', change, family, table, set: set.name, is: set.kind, elements: free },
    },
    ...owned,
  ];
}

function elementChanges(
  { family, name: table }: Place,
  change: 'added' | 'removed',
  set: NftSet | NftMap,
  elements: readonly Element[],
  owners: Owners,
): readonly OwnedChange[] {
  return elements.map((element) => ({
    owner: owners.ofNftElement(set, element),
    change: { kind: 'nft-element', change, family, table, set: set.name, element: formatElement(element) },
  }));
}

function countTable(delta: NftTableDelta): readonly (readonly [ChangedObject, ChangeKind])[] {
  switch (delta.kind) {
    case 'create-table':
      return [['nftables table', 'added'], ...stepsOf(delta.table, 'added').flatMap(countStep)];
    case 'delete-table':
      return [['nftables table', 'removed'], ...stepsOf(delta.table, 'removed').flatMap(countStep)];
    case 'change-table':
      return delta.changes.flatMap(countStep);
  }
}

function countStep(change: NftChange): readonly (readonly [ChangedObject, ChangeKind])[] {
  switch (change.kind) {
    case 'add-chain':
      return [['chain', 'added']];
    case 'delete-chain':
      return [['chain', 'removed']];
    case 'replace-chain':
      return [['chain', 'changed']];
    case 'refill-chain':
      return [];
    case 'add-set':
      return [['set', 'added'], ...change.set.elements.map(() => ['set element', 'added'] as const)];
    case 'delete-set':
      return [['set', 'removed'], ...change.set.elements.map(() => ['set element', 'removed'] as const)];
    case 'replace-set':
      return [['set', 'changed']];
    case 'change-elements':
      return [
        ...change.removed.map(() => ['set element', 'removed'] as const),
        ...change.added.map(() => ['set element', 'added'] as const),
      ];
  }
}
