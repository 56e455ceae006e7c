import {
  singleAddress,
  addressAt,
  spanOfAddress,
  spanOfNetwork,
  spanOfRange,
  type AddressSpan,
} from '../address-range.ts';
import type { Element, ElementKey, Value } from './element.ts';
import type { Expression } from './expression.ts';
import { formatElement, formatKey, formatRule } from './format-expression.ts';
import { isLearned, type BaseChain, type NftMap, type NftRule, type NftSet } from './table.ts';
import { addressBits, parseNetwork } from '../address.ts';

/**
 * One text for all the ways to write a rule: kube-proxy's, and those of nft's versions. Two rules of one
 * family do the same to a packet where their meanings are equal, and say the same in their comment.
 */
export function ruleMeaning(rule: NftRule): string {
  // Most rules have one way to be written.
  if (!rule.expressions.some((expression) => expression.kind === 'match')) return formatRule(rule);
  return formatRule({ ...rule, expressions: rule.expressions.map(canonicalExpression) });
}

/** The same for an element. A key is told from other keys by keyMeaning. */
export function elementMeaning(element: Element): string {
  return formatElement({ ...element, key: element.key.map(canonicalValue) });
}

/** One text for all the ways to write a key. */
export function keyMeaning(key: ElementKey): string {
  return formatKey(key.map(canonicalValue));
}

/** Whether two hooks are the same. Chains without one are. */
export function isSameBase(a: BaseChain | undefined, b: BaseChain | undefined): boolean {
  return (
    a === b || (a?.type === b?.type && a?.hook === b?.hook && a?.priority === b?.priority && a?.policy === b?.policy)
  );
}

/**
 * Whether two sets differ in their elements at most. The flag dynamic, which some versions of nft leave out, and the size that the kernel gives to sets that rules write to, take no part.
 */
export function isSameKind(a: NftSet | NftMap, b: NftSet | NftMap): boolean {
  return (
    a.kind === b.kind &&
    isSameList(a.keyType, b.keyType) &&
    isSameList(a.kind === 'map' ? a.valueType : [], b.kind === 'map' ? b.valueType : []) &&
    isSameList(meaningfulFlags(a), meaningfulFlags(b)) &&
    a.timeoutSeconds === b.timeoutSeconds &&
    sizeOf(a) === sizeOf(b)
  );
}

function meaningfulFlags({ flags }: NftSet | NftMap): readonly string[] {
  return flags.includes('dynamic') ? flags.filter((flag) => flag !== 'dynamic') : flags;
}

const defaultLearnedSize = 65535;

function sizeOf(set: NftSet | NftMap): number | undefined {
  return isLearned(set) ? (set.size ?? defaultLearnedSize) : set.size;
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

function canonicalExpression(expression: Expression): Expression {
  if (expression.kind !== 'match') return expression;
  const { left, right } = expression;
  if (right.kind === 'set') return expression;
  const values = right.kind === 'value' ? [canonicalValue(right.value)] : mergeAddresses(right.values);
  const [only, ...others] = values;
  // nft takes a set of one for that one.
  if (only && others.length === 0) return canonicalBits({ ...expression, right: { kind: 'value', value: only } });
  return { ...expression, left, right: { kind: 'any-of', values } };
}

/** Whether the one bit of a mask is set can be asked in two ways: `!= 0`, and `== MASK`. */
function canonicalBits(expression: Expression & { readonly kind: 'match' }): Expression {
  const { left, right } = expression;
  const [field] = left;
  if (field?.kind !== 'masked' || right.kind !== 'value' || right.value.kind !== 'number') return expression;
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
 * Constants of an anonymous set as the kernel keeps them: sorted, none twice, and addresses and networks that overlap
 * or follow each other in one. What nft prints back is equal to that.
 */
export function mergeAddresses(values: readonly Value[]): readonly Value[] {
  const ranges = values.map(rangeOf);
  if (!ranges.every((range) => range !== undefined)) return sortedUnique(values);
  // nft merges none where all are single addresses.
  if (values.every(isSingle)) return sortRanges(ranges).filter(isNotRepeated).map(valueOf);
  return mergeRanges(sortRanges(ranges)).map(valueOf);
}

function rangeOf(value: Value): AddressSpan | undefined {
  switch (value.kind) {
    case 'address':
      return spanOfAddress(value.address);
    case 'range':
      return spanOfRange(value.first, value.last);
    case 'network':
      return spanOfNetwork(value.network);
    case 'number':
    case 'word':
      return undefined;
    default:
      return value satisfies never;
  }
}

/** Also a network of one address, once nft has read it. */
function isSingle(value: Value): boolean {
  return value.kind === 'address';
}

function sortRanges(ranges: readonly AddressSpan[]): readonly AddressSpan[] {
  return ranges.toSorted((a, b) => compare(a.first, b.first) || compare(a.last, b.last));
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function isNotRepeated(range: AddressSpan, index: number, all: readonly AddressSpan[]): boolean {
  return index === 0 || all[index - 1]?.first !== range.first;
}

function mergeRanges(sorted: readonly AddressSpan[]): readonly AddressSpan[] {
  const merged: AddressSpan[] = [];
  for (const range of sorted) {
    const before = merged.at(-1);
    if (!before || before.family !== range.family || range.first > before.last + 1n) merged.push(range);
    else if (range.last > before.last) merged[merged.length - 1] = { ...before, last: range.last };
  }
  return merged;
}

/** The shortest way to say a range: an address, a network, or its ends. */
function valueOf({ family, first, last }: AddressSpan): Value {
  const [from, to] = [addressAt(family, first), addressAt(family, last)];
  if (first === last) return { kind: 'address', address: from };
  const prefixLength = addressBits[family] - (last - first).toString(2).length;
  const network = parseNetwork(`${from.text}/${prefixLength}`);
  if (network) {
    const span = spanOfNetwork(network);
    if (span.first === first && span.last === last) return { kind: 'network', network };
  }
  return { kind: 'range', first: from, last: to };
}

function sortedUnique(values: readonly Value[]): readonly Value[] {
  const byText = new Map(values.map((value) => [formatKey([value]), value]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}
