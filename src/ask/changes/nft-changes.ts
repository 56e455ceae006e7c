import { itemOf, pairUp, type Pair } from '../../kernel/compare.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import {
  diffNftTables,
  elementMeaning,
  isSameBase,
  keyMeaning,
  nftRuleMeaning,
  type NftChange,
  type NftTableDelta,
} from '../../kernel/nftables/nft-delta.ts';
import {
  isLearned,
  type Element,
  type NftChain,
  type NftMap,
  type NftRule,
  type NftSet,
  type NftTable,
} from '../../kernel/nftables/table.ts';
import {
  formatElementValue,
  formatKey,
  quoteForNft,
  formatBaseChain,
  formatSetProperties,
} from '../../kernel/nftables/format.ts';
import {
  changeOf,
  kindOfChange,
  compareRules,
  countsOf,
  ownedBy,
  subtract,
  type ChangedObject,
  type ChangeKind,
  type ChangeOf,
  type NftAt,
  type KernelChange,
} from './kernel-change.ts';
import { dnatTargets, type SideOwners } from '../../kube-proxy/owners.ts';

type AnySet = NftSet | NftMap;

export function listNftChanges(deltas: readonly NftTableDelta[], owners: SideOwners): readonly KernelChange[] {
  return deltas.flatMap((delta): readonly KernelChange[] => {
    if (delta.kind === 'table') return tableChanges(delta, owners);
    return delta.changes.flatMap((each) => changesOfStep(each, { family: delta.family, table: delta.name }, owners));
  });
}

/**
 * Lists the changes of a table. For an added or removed table, lists what Service ports own and counts the rest. If either side has parts
 * that kpc keeps only as text, reports that the table is replaced and also lists all other differences.
 */
function tableChanges(pair: Pair<NftTable>, owners: SideOwners): readonly KernelChange[] {
  const { from, to } = pair;
  const { family, name: table } = itemOf(pair);
  const at = { family, table };
  const change = kindOfChange(from, to);
  const nothing: NftTable = { family, name: table, chains: new Map(), sets: new Map(), counters: new Map() };
  const plain = (each: NftTable = nothing): NftTable => ({ ...each, strange: undefined });
  const all = listNftChanges(diffNftTables([plain(from)], [plain(to)]), owners);
  if (from && to) {
    // The first line of each part that kpc keeps only as text, such as "counter hits".
    const [strangeFrom, strangeTo] = [from.strange?.heads ?? [], to.strange?.heads ?? []];
    return [nftChange('nft-table', 'table', change, { ...at, strangeFrom, strangeTo }), ...all];
  }
  const free = all.filter(({ owner }) => owner === undefined);
  const [chains, sets] = ['nft-chain', 'nft-set'].map((kind) => free.filter((each) => each.kind === kind).length);
  const whole = nftChange('nft-table', 'table', change, { ...at, chains: chains ?? 0, sets: sets ?? 0 });
  return [{ ...whole, holds: free.flatMap(countsOf) }, ...all.filter(({ owner }) => owner !== undefined)];
}

type NftKind = 'nft-table' | 'nft-chain' | 'nft-counter' | 'nft-set' | 'nft-element';

function nftChange<Kind extends NftKind>(
  kind: Kind,
  object: ChangedObject,
  change: ChangeKind,
  fields: ChangeOf<Kind>['fields'] & NftAt,
): ChangeOf<Kind> {
  return { ...changeOf(kind, object, change, fields), family: fields.family };
}

function changesOfStep(step: NftChange, at: NftAt, owners: SideOwners): readonly KernelChange[] {
  switch (step.kind) {
    case 'counter': {
      const { name } = itemOf(step);
      return [nftChange('nft-counter', 'counter', kindOfChange(step.from, step.to), { ...at, counter: name })];
    }
    case 'chain':
      return step.from === step.to ? [] : [nftChainChange(step, at, owners)];
    case 'set':
      return nftSetChanges(step, at, owners);
    case 'elements':
      return pairElements(step.removed, step.added).map((pair) => elementChange(step.set, pair, at, owners));
  }
}

function nftChainChange(pair: Pair<NftChain>, at: NftAt, owners: SideOwners): KernelChange {
  const { from, to } = pair;
  const chain = itemOf(pair);
  const change = kindOfChange(from, to);
  const edits = compareRules(from?.rules.map(nftRuleMeaning) ?? [], to?.rules.map(nftRuleMeaning) ?? []);
  // Chains of the same shape differ in nothing but their rules' targets.
  const isOfTargets = from && to && shapeOf(from) === shapeOf(to);
  const targets = isOfTargets ? compareRules(targetNames(from), targetNames(to)) : compareRules([], []);
  const hasBase = from && to && !isSameBase(from.base, to.base);
  const base = hasBase ? { from: describeBase(from), to: describeBase(to) } : undefined;
  const ofTargets = { endpointsAdded: targets.added, endpointsRemoved: targets.removed };
  const fields = { ...at, chain: chain.name, ...edits, ...(base && { base }), ...ofTargets };
  const owner = (to ? owners.to : owners.from).ofNftChain(chain);
  return { ...nftChange('nft-chain', 'chain', change, fields), ...ownedBy(owner, chain) };
}

function describeBase({ base }: NftChain): string {
  return base ? formatBaseChain(base).replace(/;$/, '') : '';
}

function shapeOf({ rules }: NftChain): string {
  const shape = (rule: NftRule): NftRule => ({
    ...rule,
    expressions: rule.expressions.map((expression) =>
      expression.kind === 'dnat' || expression.kind === 'dnat-random' ? { kind: 'unknown', text: 'dnat' } : expression,
    ),
  });
  return rules.map((rule) => nftRuleMeaning(shape(rule))).join('\n');
}

function targetNames(chain: NftChain): readonly string[] {
  return dnatTargets(chain).map(formatSocketAddress);
}

/** Lists the changes of a set. Leaves out elements that rules add at run time, because these depend on traffic. */
function nftSetChanges(pair: Pair<AnySet>, at: NftAt, owners: SideOwners): readonly KernelChange[] {
  const { from, to } = pair;
  const set = itemOf(pair);
  const change = kindOfChange(from, to);
  const own = to ? owners.to : owners.from;
  const isLost = [from, to].some((each) => each && isLearned(each));
  const [before, after] = [from?.elements ?? [], to?.elements ?? []];
  const pairs = pairElements(subtract(before, after, elementMeaning), subtract(after, before, elementMeaning));
  const elements = isLost ? [] : pairs.map((each) => elementChange(set, each, at, owners));
  const owned = elements.filter(({ owner }) => owner !== undefined);
  const all = isLearned(set) ? [] : set.elements;
  const free = all.filter((each) => own.ofNftElement(at.family, set, each) === undefined).length;
  const properties = { ...(from && { from: propertiesOf(from) }), ...(to && { to: propertiesOf(to) }) };
  const fields = { ...at, set: set.name, isMap: set.kind === 'map', elements: free, ...properties };
  const whole = { ...nftChange('nft-set', set.kind, change, fields), ...ownedBy(own.ofNftSet(set), set) };
  if (change === 'changed') return [whole, ...elements];
  return [{ ...whole, holds: [['set element', change, free]] }, ...owned];
}

function propertiesOf(set: AnySet): string {
  return formatSetProperties({ ...set, comment: undefined }).join('; ');
}

/** Pairs the elements that are in both lists with different values. Elements that only TO has come first. */
function pairElements(removed: readonly Element[], added: readonly Element[]): readonly Pair<Element>[] {
  const pairs = pairUp(removed, added, ({ key }) => keyMeaning(key));
  return [...pairs.filter(({ to }) => !to), ...pairs.filter(({ to }) => to)];
}

function elementChange(set: AnySet, pair: Pair<Element>, at: NftAt, owners: SideOwners): KernelChange {
  const { from, to } = pair;
  const change = kindOfChange(from, to);
  const element = itemOf(pair);
  const values = { from: from && textOfValue(from), to: to && textOfValue(to) };
  const key = formatKey(element.key);
  const owner = (to ? owners.to : owners.from).ofNftElement(at.family, set, element);
  const listed = nftChange('nft-element', 'set element', change, { ...at, set: set.name, key, ...values });
  return { ...listed, ...ownedBy(owner, element) };
}

function textOfValue({ value, comment }: Element): string | undefined {
  const parts = [
    ...(value === undefined ? [] : [formatElementValue(value)]),
    ...(comment === undefined ? [] : [`comment ${quoteForNft(comment)}`]),
  ];
  return parts.length === 0 ? undefined : parts.join(' ');
}
