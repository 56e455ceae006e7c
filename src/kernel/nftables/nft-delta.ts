// Finds equal meanings in different nftables spellings, and the differences between the tables of two states.
import { addressAt, addressBits, addressNumber, compareAddresses, type Family, parseNetwork } from '../address.ts';
import { singleAddress, spanOf, type AddressSpan } from '../address-range.ts';
import {
  isLearned,
  setOf,
  type Element,
  type ElementKey,
  type Value,
  type Expression,
  type Match,
  type BaseChain,
  type NftMap,
  type NftRule,
  type NftSet,
  type NftChain,
  type NftCounter,
  type NftTable,
} from './table.ts';
import { formatBaseChain, formatSetProperties, formatElement, formatKey, formatNftRule } from './format.ts';
import { diffByKey, isSameList, itemOf, pairUp, compareText, type Pair, type Split } from '../compare.ts';

/**
 * Returns the same string for all spellings of a rule by kube-proxy and nft. Rules with equal strings treat packets alike and have the same
 * comment.
 */
export function nftRuleMeaning(rule: NftRule): string {
  return formatNftRule(canonicalNftRule(rule));
}

export function canonicalNftRule(rule: NftRule): NftRule {
  if (!rule.expressions.some((expression) => expression.kind === 'match')) return rule;
  return { ...rule, expressions: rule.expressions.map(canonicalExpression) };
}

/** Returns the same string for all spellings of an element. Use keyMeaning to compare keys. */
export function elementMeaning(element: Element): string {
  return formatElement(canonicalElement(element));
}

/** Drops the comment, because kube-proxy compares only key and value and never updates a comment (ensureElem in nftables/proxier.go). */
export function canonicalElement(element: Element): Element {
  return { ...element, key: element.key.map(canonicalValue), comment: undefined };
}

export function keyMeaning(key: ElementKey): string {
  return formatKey(key.map(canonicalValue));
}

export function compareElements({ key: a }: Element, { key: b }: Element): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = compareValues(a[i] as Value, b[i] as Value);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function compareValues(a: Value, b: Value): number {
  if (a === b) return 0;
  if (a.kind !== b.kind) return compareText(a.kind, b.kind);
  if (a.kind === 'address' && b.kind === 'address') return compareAddresses(a.address, b.address);
  if (a.kind === 'number' && b.kind === 'number') return a.value - b.value;
  return compareText(valueText(a), valueText(b));
}

function valueText(value: Value): string {
  return value.kind === 'word' ? value.text : formatKey([value]);
}

export function isSameBase(a: BaseChain | undefined, b: BaseChain | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && formatBaseChain(a) === formatBaseChain(b));
}

function isSameKind(a: NftSet | NftMap, b: NftSet | NftMap): boolean {
  return a.kind === b.kind && kindMeaning(a) === kindMeaning(b);
}

const defaultLearnedSize = 65535;

/** Ignores the flag dynamic, which some versions of nft omit, and the kernel's default size of sets that rules write to. */
function kindMeaning(set: NftSet | NftMap): string {
  const flags = set.flags.filter((flag) => flag !== 'dynamic');
  const size = isLearned(set) ? (set.size ?? defaultLearnedSize) : set.size;
  return formatSetProperties({ ...set, flags, size, comment: undefined }).join('\n');
}

function canonicalExpression(expression: Expression): Expression {
  if (expression.kind !== 'match' || 'text' in expression || 'set' in expression.right) return expression;
  if (expression.left.length > 1) return expression;
  const values = mergeAddresses(expression.right.elements.flatMap(({ key }) => key));
  const elements = values.map((value) => ({ key: [value] }));
  // nft turns a set of one value into the value.
  if (values.length !== 1) return { ...expression, right: { elements, isBraced: true } };
  return canonicalBits({ ...expression, right: { elements } }, values[0]);
}

/** nft writes a test of a single bit as `!= 0` or `== MASK`. This returns the same form for both. */
function canonicalBits({ operator, ...match }: Match, value: Value | undefined): Expression {
  const mask = match.left[0]?.mask;
  const isOneBit = mask !== undefined && Number.isInteger(Math.log2(mask));
  const isMask = isOneBit && value?.kind === 'number' && value.value === mask;
  if (!isMask || (operator !== undefined && operator !== '!=')) return { operator, ...match };
  const none: Value = { kind: 'number', value: 0 };
  return { ...match, ...(operator ? {} : { operator: '!=' }), right: { elements: [{ key: [none] }] } };
}

function canonicalValue(value: Value): Value {
  const address = value.kind === 'network' ? singleAddress(value.network) : undefined;
  return address ? { kind: 'address', address } : value;
}

/** Merges the constants of an anonymous set as the kernel and nft do: sorted, unique, with adjacent networks joined. */
function mergeAddresses(values: readonly Value[]): readonly Value[] {
  const spans = values.map(spanOfValue);
  if (!spans.every((span) => span !== undefined)) return uniqueValues(values);
  // nft joins adjacent networks, even networks of one address such as 10.0.0.1/32, but not plain addresses.
  const gap = values.every(({ kind }) => kind === 'address') ? 0n : 1n;
  const merged: AddressSpan[] = [];
  const byFirst = spans.toSorted((a, b) => Number(a.first - b.first) || Number(a.last - b.last));
  for (const span of byFirst) {
    const before = merged.at(-1);
    if (!before || before.family !== span.family || span.first > before.last + gap) merged.push(span);
    else if (span.last > before.last) merged[merged.length - 1] = { ...before, last: span.last };
  }
  return merged.map(spanValue);
}

export function spanOfValue(value: Value): AddressSpan | undefined {
  switch (value.kind) {
    case 'address':
      return spanOf(value.address);
    case 'network':
      return spanOf(value.network);
    case 'range':
      return { ...spanOf(value.first), last: addressNumber(value.last) };
    case 'number':
    case 'numbers':
    case 'word':
      return undefined;
    default:
      return value satisfies never;
  }
}

function spanValue({ family, first, last }: AddressSpan): Value {
  const [from, to] = [addressAt(family, first), addressAt(family, last)];
  if (first === last) return { kind: 'address', address: from };
  const network = parseNetwork(`${from.text}/${addressBits[family] - (last - first).toString(2).length}`);
  const span = network && spanOf(network);
  const isNetwork = span?.first === first && span.last === last;
  return isNetwork && network ? { kind: 'network', network } : { kind: 'range', first: from, last: to };
}

function uniqueValues(values: readonly Value[]): readonly Value[] {
  const byText = new Map(values.map((value) => [formatKey([value]), value]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}

export type NftTableDelta =
  /** Creates or deletes a table, or replaces one that cannot be changed in place. */
  | ({ readonly kind: 'table' } & Pair<NftTable>)
  | {
      readonly kind: 'change-table';
      readonly family: Family;
      readonly name: string;
      readonly changes: readonly NftChange[];
    };

export type NftChange =
  /**
   * Creates, deletes or refills a chain. A chain with a new hook is recreated. A chain is also refilled if a set that it looks up is
   * replaced.
   */
  | ({ readonly kind: 'chain' } & Pair<NftChain>)
  | ({ readonly kind: 'counter' } & Pair<NftCounter>)
  /** Creates, deletes or replaces a set. The kernel cannot change the type, timeout or size of an existing set. */
  | ({ readonly kind: 'set' } & Pair<NftSet | NftMap>)
  | {
      readonly kind: 'elements';
      readonly set: NftSet | NftMap;
      /** An element with a new value is in both `removed` and `added`. */
      readonly added: readonly Element[];
      readonly removed: readonly Element[];
    };

/** Finds the changes between two lists of tables. NftTable's comment defines equality. Sets that rules write to keep their elements. */
export function diffNftTables(from: readonly NftTable[], to: readonly NftTable[]): readonly NftTableDelta[] {
  const pairs = pairUp(from, to, ({ family, name }) => `${family} ${name}`);
  return pairs.flatMap((pair): readonly NftTableDelta[] => {
    const { from: old, to: table } = pair;
    if (!old || !table || strangeHeads(old) !== strangeHeads(table)) return [{ kind: 'table', ...pair }];
    const changes = diffNftTable(old, table);
    return changes.length === 0 ? [] : [{ kind: 'change-table', family: table.family, name: table.name, changes }];
  });
}

export function familyOfDelta(delta: NftTableDelta): Family {
  return delta.kind === 'table' ? itemOf(delta).family : delta.family;
}

function strangeHeads({ strange }: NftTable): string {
  return (strange?.heads ?? []).toSorted().join('\n');
}

function diffNftTable(from: NftTable, to: NftTable): readonly NftChange[] {
  if (from === to) return [];
  const sets = diffNftSets(from, to);
  return [...diffCounters(from, to), ...sets, ...diffChains(from, to, remadeSets(sets))];
}

export function remadeSets(changes: readonly NftChange[]): ReadonlySet<string> {
  return new Set(
    changes.flatMap((change) => (change.kind === 'set' && change.from && change.to ? [change.to.name] : [])),
  );
}

function diffCounters(from: NftTable, to: NftTable): readonly NftChange[] {
  return pairUp(from.counters.values(), to.counters.values(), ({ name }) => name)
    .filter((pair) => !pair.from || !pair.to)
    .map((pair) => ({ kind: 'counter', ...pair }));
}

function diffNftSets(from: NftTable, to: NftTable): readonly NftChange[] {
  const pairs = pairUp<NftSet | NftMap>(from.sets.values(), to.sets.values(), ({ name }) => name);
  return pairs.flatMap((pair): readonly NftChange[] => {
    const { from: old, to: set } = pair;
    if (!old || !set || !isSameKind(old, set)) return [{ kind: 'set', ...pair }];
    if (isLearned(set)) return [];
    const { added, removed } = diffByKey(old.elements, set.elements, elementMeaning);
    return added.length + removed.length === 0 ? [] : [{ kind: 'elements', set, added, removed }];
  });
}

function diffChains(from: NftTable, to: NftTable, remade: ReadonlySet<string>): readonly NftChange[] {
  const pairs = pairUp(from.chains.values(), to.chains.values(), ({ name }) => name);
  return pairs.flatMap((pair): readonly NftChange[] => {
    const { from: old, to: chain } = pair;
    if (!old || !chain || !isSameBase(old.base, chain.base) || !isSameList(old.rules, chain.rules, nftRuleMeaning)) {
      return [{ kind: 'chain', ...pair }];
    }
    return remade.size > 0 && usesAny(chain, remade) ? [{ kind: 'chain', from: chain, to: chain }] : [];
  });
}

export function usesAny(chain: NftChain, sets: ReadonlySet<string>): boolean {
  return chain.rules.some(({ expressions }) => expressions.some((each) => sets.has(setOf(each) ?? '')));
}

export function compareTables(a: NftTable, b: NftTable): number {
  return compareText(a.family, b.family) || compareText(a.name, b.name);
}

/**
 * Splits changes into additions and removals. Kernels before 6.2 cannot delete a chain in the transaction that deletes the last element
 * referring to it. So the chain is emptied first, as in kube-proxy, and deleted at the end with its counters.
 */
export function splitNftDelta(deltas: readonly NftTableDelta[]): Split<NftTableDelta> {
  const additions: NftTableDelta[] = [];
  const removals: NftTableDelta[] = [];
  for (const delta of deltas) {
    if (delta.kind === 'table') {
      (delta.to ? additions : removals).push(delta);
      continue;
    }
    const now: NftChange[] = [];
    const later: NftChange[] = [];
    for (const change of delta.changes) {
      if (change.kind === 'chain' && !change.to) {
        const emptied = { ...change.from, rules: [] };
        now.push({ kind: 'chain', from: change.from, to: emptied });
        later.push({ kind: 'chain', from: emptied, to: undefined });
      } else (change.kind === 'counter' && !change.to ? later : now).push(change);
    }
    if (now.length > 0) additions.push({ ...delta, changes: now });
    if (later.length > 0) removals.push({ ...delta, changes: later });
  }
  return { additions, removals };
}
