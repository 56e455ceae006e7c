import { singleAddress } from '../address-range.ts';
import type { Element, ElementKey, Value } from './element.ts';
import type { Expression } from './expression.ts';
import { formatElement, formatKey, formatRule } from './format-expression.ts';
import { mergeAddresses } from './merge-addresses.ts';
import { isLearned, type BaseChain, type NftMap, type NftRule, type NftSet } from './table.ts';

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
