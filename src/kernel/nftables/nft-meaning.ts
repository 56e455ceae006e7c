import { addressAt, addressBits, numberOf, parseNetwork } from '../address.ts';
import { singleAddress, spanOf, type AddressSpan } from '../address-range.ts';
import type { Element, ElementKey, Value } from './element.ts';
import type { Expression } from './expression.ts';
import { formatBaseChain, formatSetProperties } from './format.ts';
import { formatElement, formatKey, formatRule } from './format-expression.ts';
import { isLearned, type BaseChain, type NftMap, type NftRule, type NftSet } from './table.ts';

/**
 * One text for all spellings of a rule: kube-proxy's, and those of nft's versions. Two rules of one family with equal meanings do
 * the same to every packet and have the same comment.
 */
export function ruleMeaning(rule: NftRule): string {
  return formatRule(canonicalRule(rule));
}

/** The canonical form of a rule. Most rules have only one spelling. */
export function canonicalRule(rule: NftRule): NftRule {
  if (!rule.expressions.some((expression) => expression.kind === 'match')) return rule;
  return { ...rule, expressions: rule.expressions.map(canonicalExpression) };
}

/** One text for all spellings of an element. Use keyMeaning to distinguish keys. */
export function elementMeaning(element: Element): string {
  return formatElement(canonicalElement(element));
}

/** Drops the comment: kube-proxy compares only key and value, and leaves a comment as it is (ensureElem in nftables/proxier.go). */
export function canonicalElement(element: Element): Element {
  return { ...element, key: element.key.map(canonicalValue), comment: undefined };
}

/** One text for all spellings of a key. */
export function keyMeaning(key: ElementKey): string {
  return formatKey(key.map(canonicalValue));
}

export function isSameBase(a: BaseChain | undefined, b: BaseChain | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && formatBaseChain(a) === formatBaseChain(b));
}

/** Whether two sets differ only in their elements. */
export function isSameKind(a: NftSet | NftMap, b: NftSet | NftMap): boolean {
  return a.kind === b.kind && kindMeaning(a) === kindMeaning(b);
}

const defaultLearnedSize = 65535;

/** Ignores the flag dynamic, which some versions of nft omit, and the size that the kernel gives sets that rules write to. */
function kindMeaning(set: NftSet | NftMap): string {
  const flags = set.flags.filter((flag) => flag !== 'dynamic');
  const size = isLearned(set) ? (set.size ?? defaultLearnedSize) : set.size;
  return formatSetProperties({ ...set, flags, size, comment: undefined }).join('\n');
}

function canonicalExpression(expression: Expression): Expression {
  if (expression.kind !== 'match') return expression;
  const { left, right } = expression;
  if (right.kind === 'set') return expression;
  const values = mergeAddresses(right.kind === 'value' ? [right.value] : right.values);
  const [only, ...others] = values;
  // nft reads a set of one value as that value.
  if (only && others.length === 0) return canonicalBits({ ...expression, right: { kind: 'value', value: only } });
  return { ...expression, left, right: { kind: 'any-of', values } };
}

/** nft writes a test of a single bit as `!= 0` or `== MASK`; this unifies both. */
function canonicalBits(expression: Expression & { readonly kind: 'match' }): Expression {
  const { left, right } = expression;
  const [field] = left;
  if (field?.mask === undefined || right.kind !== 'value' || right.value.kind !== 'number') return expression;
  const isOneBit = Number.isInteger(Math.log2(field.mask));
  if (!isOneBit || right.value.value !== field.mask) return expression;
  const { negated, ...others } = expression;
  return {
    ...others,
    ...(negated ? {} : { negated: true }),
    right: { kind: 'value', value: { kind: 'number', value: 0 } },
  };
}

function canonicalValue(value: Value): Value {
  const address = value.kind === 'network' ? singleAddress(value.network) : undefined;
  return address ? { kind: 'address', address } : value;
}

/**
 * Merges the constants of an anonymous set as the kernel does, and nft then lists: sorted, without duplicates, with overlapping
 * and adjacent networks merged.
 */
function mergeAddresses(values: readonly Value[]): readonly Value[] {
  const spans = values.map(spanOfValue);
  if (!spans.every((span) => span !== undefined)) return sortedUnique(values);
  // nft merges nothing in a set of single addresses. A network of one address, such as 10.0.0.1/32, counts as a network.
  const gap = values.every(({ kind }) => kind === 'address') ? 0n : 1n;
  const merged: AddressSpan[] = [];
  const byFirst = spans.toSorted((a, b) => Number(a.first - b.first) || Number(a.last - b.last));
  for (const span of byFirst) {
    const before = merged.at(-1);
    if (!before || before.family !== span.family || span.first > before.last + gap) merged.push(span);
    else if (span.last > before.last) merged[merged.length - 1] = { ...before, last: span.last };
  }
  return merged.map(valueOf);
}

/** Undefined if the constant is not an address, network or range of addresses. */
export function spanOfValue(value: Value): AddressSpan | undefined {
  switch (value.kind) {
    case 'address':
      return spanOf(value.address);
    case 'network':
      return spanOf(value.network);
    case 'range':
      return { ...spanOf(value.first), last: numberOf(value.last) };
    case 'number':
    case 'numbers':
    case 'word':
      return undefined;
    default:
      return value satisfies never;
  }
}

/** The shortest form of a range: an address, a network, or its two ends. */
function valueOf({ family, first, last }: AddressSpan): Value {
  const [from, to] = [addressAt(family, first), addressAt(family, last)];
  if (first === last) return { kind: 'address', address: from };
  const network = parseNetwork(`${from.text}/${addressBits[family] - (last - first).toString(2).length}`);
  const span = network && spanOf(network);
  const isNetwork = span?.first === first && span.last === last;
  return isNetwork && network ? { kind: 'network', network } : { kind: 'range', first: from, last: to };
}

function sortedUnique(values: readonly Value[]): readonly Value[] {
  const byText = new Map(values.map((value) => [formatKey([value]), value]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}
