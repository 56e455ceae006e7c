import { joinHostPort } from '../../kernel/address.ts';
import type { Family } from '../../kernel/family.ts';
import { diffNftTables, type NftChange, type NftTableDelta } from '../../kernel/nftables/delta.ts';
import type { Element } from '../../kernel/nftables/element.ts';
import { formatElementValue, formatKey, quote } from '../../kernel/nftables/format-expression.ts';
import { formatBaseChain, formatSetProperties } from '../../kernel/nftables/format.ts';
import { elementMeaning, isSameBase, keyMeaning, ruleMeaning } from '../../kernel/nftables/meaning.ts';
import {
  isLearned,
  type NftChain,
  type NftCounter,
  type NftMap,
  type NftRule,
  type NftSet,
  type NftTable,
} from '../../kernel/nftables/table.ts';
import { tally, type ChangedObject, type ChangeLister } from './change-lister.ts';
import { compareRules, subtract } from './compare-rules.ts';
import type { ChangeKind, OwnedChange } from './kernel-change.ts';
import { targetsOf } from './nft-owners.ts';
import type { Owners, SideOwners } from './owners.ts';

export const nftChanges: ChangeLister<readonly NftTableDelta[]> = {
  list: (deltas, owners) => deltas.flatMap((delta) => nftTableChanges(delta, owners)),
  count: (deltas) => tally(deltas.flatMap(countTable)),
};

type Counted = readonly [ChangedObject, ChangeKind];

/** The table, and each chain, set and element in it. */
function countTable(delta: NftTableDelta): readonly Counted[] {
  switch (delta.kind) {
    case 'create-table':
      return delta.replaced
        ? [['table', 'changed'], ...diffReplaced(delta.replaced, delta.table).flatMap(countStep)]
        : countWhole(delta.table, 'added');
    case 'delete-table':
      return countWhole(delta.table, 'removed');
    case 'change-table':
      return delta.changes.flatMap(countStep);
  }
}

function countWhole({ chains, counters, sets }: NftTable, change: 'added' | 'removed'): readonly Counted[] {
  return [
    ['table', change],
    ...[...counters.values()].map((): Counted => ['counter', change]),
    ...[...sets.values()].flatMap((set) => countSet(set, change)),
    ...[...chains.values()].map((): Counted => ['chain', change]),
  ];
}

function countSet(set: NftSet | NftMap, change: 'added' | 'removed'): readonly Counted[] {
  return [[set.kind, change], ...set.elements.map((): Counted => ['set element', change])];
}

function countStep(change: NftChange): readonly Counted[] {
  switch (change.kind) {
    case 'add-counter':
      return [['counter', 'added']];
    case 'delete-counter':
      return [['counter', 'removed']];
    case 'add-chain':
      return [['chain', 'added']];
    case 'delete-chain':
      return [['chain', 'removed']];
    case 'replace-chain':
      return [['chain', 'changed']];
    case 'refill-chain':
      return [];
    case 'add-set':
      return countSet(change.set, 'added');
    case 'delete-set':
      return countSet(change.set, 'removed');
    case 'replace-set':
      return [[change.to.kind, 'changed']];
    case 'change-elements': {
      const old = new Set(change.removed.map(({ key }) => keyMeaning(key)));
      const changes = change.added.map(({ key }): Counted => {
        return ['set element', old.delete(keyMeaning(key)) ? 'changed' : 'added'];
      });
      return [...[...old].map((): Counted => ['set element', 'removed']), ...changes];
    }
  }
}

/** The table that changes are of. */
interface At {
  readonly family: Family;
  readonly table: string;
}

/** The changes of one table one by one, each with its owner. */
function nftTableChanges(delta: NftTableDelta, owners: SideOwners): readonly OwnedChange[] {
  switch (delta.kind) {
    case 'create-table':
      return delta.replaced
        ? replacedTable(delta.replaced, delta.table, owners)
        : wholeTable(delta, 'added', owners.to);
    case 'delete-table':
      return wholeTable(delta, 'removed', owners.from);
    case 'change-table': {
      const at = { family: delta.family, table: delta.name };
      return delta.changes.flatMap((change) => changesOf(change, at, owners));
    }
  }
}

/** A table that one side lacks: what belongs to no Service port is told by its number. */
function wholeTable(
  { table: { family, name, chains, sets } }: NftTableDelta & { readonly kind: 'create-table' | 'delete-table' },
  change: 'added' | 'removed',
  owners: Owners,
): readonly OwnedChange[] {
  const at = { family, table: name };
  const ofChains = [...chains.values()].map((chain) => oneChain(chain, change, at, owners));
  const ofSets = [...sets.values()].map((set) => oneSet(set, change, at, owners));
  const ofElements = [...sets.values()].flatMap((set) => ownedElements(set, change, at, owners));
  const free = (list: readonly OwnedChange[]) => list.filter(({ owner }) => owner === undefined).length;
  return [
    { owner: undefined, change: { kind: 'nft-table', change, ...at, chains: free(ofChains), sets: free(ofSets) } },
    ...[...ofElements, ...ofSets, ...ofChains].filter(({ owner }) => owner !== undefined),
  ];
}

/** A table that is made anew: what was strange, and what else differs. */
function replacedTable(from: NftTable, to: NftTable, owners: SideOwners): readonly OwnedChange[] {
  const at = { family: to.family, table: to.name };
  const [strangeFrom, strangeTo] = [from.strange?.heads ?? [], to.strange?.heads ?? []];
  return [
    { owner: undefined, change: { kind: 'nft-table', change: 'changed', ...at, strangeFrom, strangeTo } },
    ...diffReplaced(from, to).flatMap((change) => changesOf(change, at, owners)),
  ];
}

/** How the two differ but for what is strange. */
function diffReplaced(from: NftTable, to: NftTable): readonly NftChange[] {
  const plain = (table: NftTable): NftTable => ({ ...table, strange: undefined });
  return diffNftTables([plain(from)], [plain(to)]).flatMap((delta) =>
    delta.kind === 'change-table' ? delta.changes : [],
  );
}

function changesOf(change: NftChange, at: At, owners: SideOwners): readonly OwnedChange[] {
  switch (change.kind) {
    case 'add-counter':
      return [oneCounter(change.counter, 'added', at)];
    case 'delete-counter':
      return [oneCounter(change.counter, 'removed', at)];
    case 'add-chain':
      return [oneChain(change.chain, 'added', at, owners.to)];
    case 'delete-chain':
      return [oneChain(change.chain, 'removed', at, owners.from)];
    case 'replace-chain':
      return [changedChain(change.from, change.to, at, owners.to)];
    // Nothing of it differs.
    case 'refill-chain':
      return [];
    case 'add-set':
      return [oneSet(change.set, 'added', at, owners.to), ...ownedElements(change.set, 'added', at, owners.to)];
    case 'delete-set':
      return [oneSet(change.set, 'removed', at, owners.from), ...ownedElements(change.set, 'removed', at, owners.from)];
    case 'replace-set':
      return replacedSet(change.from, change.to, at, owners);
    case 'change-elements':
      return elementChanges(change.set, change.removed, change.added, at, owners);
  }
}

/** None is a Service port's alone. */
function oneCounter({ name }: NftCounter, change: 'added' | 'removed', at: At): OwnedChange {
  return { owner: undefined, change: { kind: 'nft-counter', change, ...at, counter: name } };
}

function oneChain(chain: NftChain, change: 'added' | 'removed', at: At, owners: Owners): OwnedChange {
  const rules = chain.rules.map(ruleMeaning);
  const sides = change === 'added' ? compareRules([], rules) : compareRules(rules, []);
  return {
    owner: owners.ofNftChain(chain),
    change: {
      kind: 'nft-chain',
      change,
      ...at,
      chain: chain.name,
      ...sides,
      reordered: false,
      endpointsAdded: [],
      endpointsRemoved: [],
    },
  };
}

function changedChain(from: NftChain, to: NftChain, at: At, owners: Owners): OwnedChange {
  const before = from.rules.map(ruleMeaning);
  const after = to.rules.map(ruleMeaning);
  const rules = compareRules(before, after);
  const isOfTargets = from.rules.map(ruleShape).join('\n') === to.rules.map(ruleShape).join('\n');
  const targets = isOfTargets ? compareRules(targetNames(from), targetNames(to)) : compareRules([], []);
  return {
    owner: owners.ofNftChain(to),
    change: {
      kind: 'nft-chain',
      change: 'changed',
      ...at,
      chain: to.name,
      ...rules,
      reordered: before.join('\n') !== after.join('\n') && rules.added.length + rules.removed.length === 0,
      ...(isSameBase(from.base, to.base) ? {} : { base: { from: describeBase(from), to: describeBase(to) } }),
      endpointsAdded: targets.added,
      endpointsRemoved: targets.removed,
    },
  };
}

function describeBase({ base }: NftChain): string {
  return base ? formatBaseChain(base).replace(/;$/, '') : '';
}

/** A rule without the endpoints that it sends packets to. */
function ruleShape(rule: NftRule): string {
  return ruleMeaning({
    ...rule,
    expressions: rule.expressions.map((expression) =>
      expression.kind === 'dnat' || expression.kind === 'dnat-random' ? { kind: 'unknown', text: 'dnat' } : expression,
    ),
  });
}

function targetNames(chain: NftChain): readonly string[] {
  return targetsOf(chain).map(({ address, port }) => joinHostPort(address.text, port));
}

function oneSet(set: NftSet | NftMap, change: ChangeKind, at: At, owners: Owners): OwnedChange {
  const properties = propertiesOf(set);
  const sides = change === 'added' ? { to: properties } : { from: properties };
  return { owner: owners.ofNftSet(set), change: { ...wholeSet(set, at, owners), change, ...sides } };
}

function wholeSet(set: NftSet | NftMap, at: At, owners: Owners) {
  const free = isLearned(set) ? [] : set.elements.filter((each) => !owners.ofNftElement(at.family, set, each));
  return { kind: 'nft-set', ...at, set: set.name, isMap: set.kind === 'map', elements: free.length } as const;
}

/** What a set is, but for its comment, which takes no part. */
function propertiesOf(set: NftSet | NftMap): string {
  return formatSetProperties({ ...set, comment: undefined }).join('; ');
}

function replacedSet(from: NftSet | NftMap, to: NftSet | NftMap, at: At, owners: SideOwners): readonly OwnedChange[] {
  const set: OwnedChange = {
    owner: owners.to.ofNftSet(to),
    change: { ...wholeSet(to, at, owners.to), change: 'changed', from: propertiesOf(from), to: propertiesOf(to) },
  };
  if (isLearned(from) || isLearned(to)) return [set];
  const removed = subtract(from.elements, to.elements, elementMeaning);
  const added = subtract(to.elements, from.elements, elementMeaning);
  return [set, ...elementChanges(to, removed, added, at, owners)];
}

/** The elements of a whole set that belong to Service ports. What rules write into a set belongs to the traffic. */
function ownedElements(
  set: NftSet | NftMap,
  change: 'added' | 'removed',
  at: At,
  owners: Owners,
): readonly OwnedChange[] {
  if (isLearned(set)) return [];
  return set.elements
    .map((element): OwnedChange => {
      const sides = change === 'added' ? { to: textOfValue(element) } : { from: textOfValue(element) };
      return elementChange(set, element, change, sides, at, owners);
    })
    .filter(({ owner }) => owner !== undefined);
}

/** An element that changes what it leads to, or its comment, is in both lists. */
function elementChanges(
  set: NftSet | NftMap,
  removed: readonly Element[],
  added: readonly Element[],
  at: At,
  owners: SideOwners,
): readonly OwnedChange[] {
  const old = new Map(removed.map((element) => [keyMeaning(element.key), element]));
  const changes = added.map((element): OwnedChange => {
    const key = keyMeaning(element.key);
    const before = old.get(key);
    old.delete(key);
    const to = textOfValue(element);
    return before
      ? elementChange(set, element, 'changed', { from: textOfValue(before), to }, at, owners.to)
      : elementChange(set, element, 'added', { to }, at, owners.to);
  });
  const gone = [...old.values()].map((element) =>
    elementChange(set, element, 'removed', { from: textOfValue(element) }, at, owners.from),
  );
  return [...gone, ...changes];
}

function elementChange(
  set: NftSet | NftMap,
  element: Element,
  change: ChangeKind,
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
  at: At,
  owners: Owners,
): OwnedChange {
  return {
    owner: owners.ofNftElement(at.family, set, element),
    change: {
      kind: 'nft-element',
      change,
      ...at,
      set: set.name,
      key: formatKey(element.key),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
    },
  };
}

/** What an element leads to, and its comment; undefined for a bare key. */
function textOfValue({ value, comment }: Element): string | undefined {
  const parts = [
    ...(value === undefined ? [] : [formatElementValue(value)]),
    ...(comment === undefined ? [] : [`comment ${quote(comment)}`]),
  ];
  return parts.length === 0 ? undefined : parts.join(' ');
}
