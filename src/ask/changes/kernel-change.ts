import { count } from '../../base/printable.ts';
import type { Family } from '../../kernel/family.ts';
import type { Rule, TableName } from '../../kernel/iptables/iptables.ts';
import type { Origin, Place } from '../../kernel/place.ts';

export const changeKinds = ['added', 'removed', 'changed'] as const;

export type ChangeKind = (typeof changeKinds)[number];

/** The names of kernel objects in reports for people. */
export const changedObjects = [
  'virtual server',
  'set',
  'set entry',
  'set element',
  'table',
  'map',
  'counter',
  'chain',
  'link',
  'address',
  'sysctl',
  'proxy port',
  'IPVS timeouts',
  'kernel module',
  'setting',
] as const;

export type ChangedObject = (typeof changedObjects)[number];

/** The kinds of kernel objects in JSON. */
export const kernelObjectKinds = [
  'virtual-server',
  'set-entry',
  'set',
  'chain',
  'nft-table',
  'nft-chain',
  'nft-counter',
  'nft-set',
  'nft-element',
  'address',
  'link',
  'sysctl',
  'proxy-port',
  'ipvs-timeouts',
  'module',
  'setting',
] as const;

/** One difference between two kernels, in kernel terms. */
export interface KernelChange {
  /** The Service port that it belongs to; undefined for objects that every node has. */
  readonly owner: string | undefined;
  readonly object: ChangedObject;
  readonly change: ChangeKind;
  /** Name and difference, on one line. */
  readonly subject: string;
  /** For sets and rules. */
  readonly family?: Family | undefined;
  /** The manifest field that caused it. */
  readonly place?: Place | undefined;
  /** For an iptables chain. */
  readonly rules?: ChainRules;
  /** Content that is added or removed with it and not listed separately. */
  readonly holds?: readonly CountedChange[];
  /** Its kind and fields in JSON. */
  readonly kind: (typeof kernelObjectKinds)[number];
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface RuleEdits {
  readonly rulesFrom: number;
  readonly rulesTo: number;
  /** Each as its canonical text (ruleMeaning). */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Whether the same rules are in another order. */
  readonly reordered: boolean;
}

/** An iptables chain with the differences of its rules. */
interface ChainRules extends RuleEdits {
  readonly table: TableName;
  readonly chain: string;
  /** Whether Service ports share the chain. If so, the edits are those of one owner. */
  readonly shared: boolean;
  /** The rules whose texts are in `added` and `removed`. */
  readonly edited: readonly Rule[];
}

/** A number of objects of one kind that change in the same way. */
export type CountedChange = readonly [object: ChangedObject, change: ChangeKind, number: number];

export function countsOf({ object, change, holds = [] }: KernelChange): readonly CountedChange[] {
  return [[object, change, 1], ...holds];
}

/** The owner of an object: its Service port, and the field that caused it. */
export function ownedBy(
  owner: string | undefined,
  { origin }: { readonly origin?: Origin | undefined },
): Pick<KernelChange, 'owner' | 'place'> {
  return { owner, place: origin?.place };
}

export function turn(from: string, to: string): string {
  return `${from || '(none)'} → ${to || '(none)'}`;
}

export function kindOfChange(from: unknown, to: unknown): ChangeKind {
  if (from === undefined) return 'added';
  return to === undefined ? 'removed' : 'changed';
}

/** The object and its difference on one line, without whether it was added or removed. */
export function describeKernelChange({ object, subject }: KernelChange): string {
  // An entry's description already names its set.
  if (object === 'set entry' || object === 'set element') return subject;
  return object === 'IPVS timeouts' ? `${object}: ${subject}` : `${object} ${subject}`;
}

/** "1 chain", "1,200 set entries". */
export function countObjects(number: number, object: ChangedObject): string {
  return count(number, object, plurals[object]);
}

const plurals: { readonly [O in ChangedObject]?: string } = {
  'set entry': 'set entries',
  address: 'addresses',
  'IPVS timeouts': 'IPVS timeouts',
};

/** "nat", or "IPv6 nat". */
export function tableWords(family: Family, table: string): string {
  return family === 'ipv4' ? table : `IPv6 ${table}`;
}

/** Up to three names, otherwise their number. */
export function nameChanged(sign: string, what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const text = names.length > 3 ? '' : ` ${names.join(', ')}`;
  return [`${sign} ${count(names.length, what)}${text}`];
}

/** The items of `list` that `others` lacks, counting duplicates, in any order. Items with equal text are equal. */
export function subtract<T>(list: readonly T[], others: readonly T[], textOf: (item: T) => string): readonly T[] {
  const left = new Map<string, number>();
  for (const item of others) left.set(textOf(item), (left.get(textOf(item)) ?? 0) + 1);
  return list.filter((item) => {
    const text = textOf(item);
    const number = left.get(text) ?? 0;
    left.set(text, number - 1);
    return number <= 0;
  });
}

/** Compares the rules of a chain by meaning; a side without the chain has none. */
export function compareRules(from: readonly string[], to: readonly string[]): RuleEdits {
  const asItIs = (text: string): string => text;
  const [added, removed] = [subtract(to, from, asItIs), subtract(from, to, asItIs)];
  const reordered = added.length + removed.length === 0 && from.join('\n') !== to.join('\n');
  return { rulesFrom: from.length, rulesTo: to.length, added, removed, reordered };
}

/** "2 → 3 rules"; for a shared chain, only what one owner gains and loses. */
export function describeRuleEdits(
  { rulesFrom, rulesTo, added, removed, reordered }: RuleEdits,
  isShared: boolean,
): readonly string[] {
  if (reordered) return ['the same rules in another order'];
  if (!isShared && rulesFrom !== rulesTo) return [`${rulesFrom} → ${count(rulesTo, 'rule')}`];
  if (added.length > 0 && added.length === removed.length) return [`${count(added.length, 'rule')} changed`];
  const signed = (sign: string, { length }: readonly string[]) =>
    length === 0 ? [] : [`${sign} ${count(length, 'rule')}`];
  return [...signed('+', added), ...signed('−', removed)];
}
