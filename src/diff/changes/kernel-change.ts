import { count } from '../../base/format-count.ts';
import type { Family } from '../../kernel/family.ts';
import type { TableName } from '../../kernel/iptables/iptables.ts';
import type { Origin, Place } from '../../kernel/place.ts';

/** What happens to a thing on the way from one state to the other. */
export type ChangeKind = 'added' | 'removed' | 'changed';

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
  'IPVS timeouts',
  'kernel module',
  'setting',
] as const;

/** What kind of thing changes. */
export type ChangedObject = (typeof changedObjects)[number];

/** One thing of the kernel that differs, in the kernel's words. */
export interface KernelChange {
  /** The Service port that it is about; undefined for what every node has. */
  readonly owner: string | undefined;
  readonly object: ChangedObject;
  readonly change: ChangeKind;
  /** Which one it is and what differs of it, on one line. */
  readonly subject: string;
  /** Of sets and rules. */
  readonly family?: Family | undefined;
  /** The manifest field that asks for it. */
  readonly place?: Place | undefined;
  /** Of a chain of iptables. */
  readonly rules?: ChainRules;
  /** What comes or goes with it and is no change of its own. */
  readonly holds?: readonly Counted[];
  /** What kind of thing it is for programs, and its fields in JSON. */
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** How the rules of a chain differ. */
export interface RuleEdits {
  readonly rulesFrom: number;
  readonly rulesTo: number;
  /** Rules in one text for all ways to write them. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Whether the same rules are in another order. */
  readonly reordered: boolean;
}

/** A chain of iptables with what differs of its rules. */
interface ChainRules extends RuleEdits {
  readonly table: TableName;
  readonly chain: string;
  /** Whether Service ports share the chain: then all that is said here is of the rules of one of them. */
  readonly shared: boolean;
}

/** So many things of one kind that change in one way. */
export type Counted = readonly [object: ChangedObject, change: ChangeKind, number: number];

/** What changes, with what it holds. */
export function countsOf({ object, change, holds = [] }: KernelChange): readonly Counted[] {
  return [[object, change, 1], ...holds];
}

/** The owner of an object: its Service port, and the field that asks for it. */
export function ownedBy(
  owner: string | undefined,
  { origin }: { readonly origin?: Origin | undefined },
): Pick<KernelChange, 'owner' | 'place'> {
  return { owner, place: origin?.place };
}

/** "a → b". */
export function turn(from: string, to: string): string {
  return `${from || '(none)'} → ${to || '(none)'}`;
}

/** Added if there was none before, removed if there is none after, else changed. */
export function changeOf(from: unknown, to: unknown): ChangeKind {
  if (from === undefined) return 'added';
  return to === undefined ? 'removed' : 'changed';
}

/** What differs of one thing of the kernel, on one line, without saying whether it was added or removed. */
export function describeKernelChange({ object, subject }: KernelChange): string {
  // An entry is already described by the name of its set.
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

/** The table of a chain, or "nftables", with its family where that is IPv6. */
export function tableWords(family: Family, table: string): string {
  return family === 'ipv4' ? table : `IPv6 ${table}`;
}

/** Few things by their names, many by their number. */
export function namesOf(sign: string, what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const text = names.length > 3 ? '' : ` ${names.join(', ')}`;
  return [`${sign} ${count(names.length, what)}${text}`];
}

/** What one list has more than the other, whatever their order: equal texts are of equal items. */
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

/** Compares the rules of a chain, each in one text for all ways to write it; none are on the side that lacks it. */
export function compareRules(from: readonly string[], to: readonly string[]): RuleEdits {
  const asItIs = (text: string): string => text;
  const [added, removed] = [subtract(to, from, asItIs), subtract(from, to, asItIs)];
  const reordered = added.length + removed.length === 0 && from.join('\n') !== to.join('\n');
  return { rulesFrom: from.length, rulesTo: to.length, added, removed, reordered };
}

/** "2 → 3 rules"; of a chain that is shared, only what one owner gains and loses. */
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
