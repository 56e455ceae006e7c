import { LongText, readLines, type LineFault } from '../lines.ts';
import { compareEntries, formatEntry, parseEntry, type SetEntry, entryKey, isEntryOf } from './set-entry.ts';
import { diffByKey, pairUp, partition, type Pair, type Split } from '../compare.ts';

export type SetType = 'hash:ip' | 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' | 'bitmap:port';

/** An ipset. Hash sets have a family, bitmap:port sets a range. A type that kube-proxy does not use keeps its name. */
export interface IpSet {
  readonly name: string;
  readonly type: SetType | (string & {});
  readonly family?: 'inet' | 'inet6' | undefined;
  readonly range?: string | undefined;
  readonly hashSize?: number | undefined;
  readonly maxElements?: number | undefined;
  /** Sorted, without duplicates. Equality ignores the order. */
  readonly entries: readonly SetEntry[];
  /** Options that only other programs use (timeout, counters, comment …), as written. */
  readonly options?: readonly string[] | undefined;
}

export function formatSets(sets: readonly IpSet[]): string {
  const text = new LongText();
  for (const set of sets) addIpSet(text, set);
  return text.toString();
}

function addIpSet(text: LongText, set: IpSet): void {
  text.add(`${formatCreate(set)}\n`);
  for (const entry of set.entries) text.add(formatAdd(set.name, entry));
}

export function formatCreate({ name, type, options = [], ...set }: IpSet): string {
  const words = properties.flatMap(([word, key]) => (set[key] === undefined ? [] : [word, String(set[key])]));
  return ['create', name, type, ...words, ...options].join(' ');
}

const properties = [
  ['family', 'family'],
  ['range', 'range'],
  ['hashsize', 'hashSize'],
  ['maxelem', 'maxElements'],
] as const;

function formatAdd(set: string, entry: SetEntry): string {
  const line = `add ${set} ${formatEntry(entry)}`;
  return `${entry.options === undefined ? line : [line, ...entry.options].join(' ')}\n`;
}

interface DraftSet extends IpSet {
  entries: SetEntry[];
}

class SetDrafts {
  readonly #sets = new Map<string, DraftSet>();

  addSet(name: string, type: string, words: readonly string[]): LineFault | undefined {
    if (this.#sets.has(name)) return 'duplicate';
    this.#sets.set(name, readCreate(name, type, words));
    return undefined;
  }

  addEntry(name: string, text: string, options: readonly string[]): LineFault | undefined {
    const set = this.#sets.get(name);
    if (!set) return 'no-head';
    const entry = parseEntry(text, set.type);
    set.entries.push(options.length === 0 ? entry : { ...entry, options });
    return undefined;
  }

  finish(): readonly IpSet[] {
    for (const set of this.#sets.values()) set.entries.sort(compareEntries);
    return [...this.#sets.values()];
  }
}

/**
 * Reads `ipset save`, sorts entries, and drops the options that the kernel chose (initval, default bucket size). Unreadable lines go to
 * `unread`.
 */
export function parseIpsetSave(text: string) {
  const sets = new SetDrafts();
  const unread = readLines(text, ['#'], (line) => (line === 'COMMIT' ? undefined : readSetLine(sets, line)));
  return { sets: sets.finish(), unread };
}

function readSetLine(sets: SetDrafts, line: string): LineFault | undefined {
  const words = splitSetWords(line);
  if (!words) return 'open-quote';
  const [command, name, third, ...options] = words;
  if (name === undefined || third === undefined || !(command === 'create' || command === 'add')) {
    return 'other-line';
  }
  return command === 'create' ? sets.addSet(name, third, options) : sets.addEntry(name, third, options);
}

function readCreate(name: string, type: string, words: readonly string[]): DraftSet {
  const read: { -readonly [K in 'family' | 'range' | 'hashSize' | 'maxElements']?: IpSet[K] } = {};
  const options: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const value = words[i + 1];
    if (word === 'family' && (value === 'inet' || value === 'inet6')) read.family = value;
    else if (word === 'range' && value !== undefined) read.range = value;
    else if (word === 'hashsize' && isCount(value)) read.hashSize = Number(value);
    else if (word === 'maxelem' && isCount(value)) read.maxElements = Number(value);
    else if (word !== 'initval' && !(word === 'bucketsize' && value === '12')) {
      options.push(word);
      continue;
    }
    i++;
  }
  return { name, type, ...read, options: options.length === 0 ? undefined : options, entries: [] };
}

function isCount(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,10}$/.test(text);
}

/** Splits at blanks outside double quotes and keeps the quotes; undefined if a quote is not closed. ipset does not escape quotes. */
export function splitSetWords(line: string): string[] | undefined {
  if (!line.includes('"')) return line.split(/[ \t]+/);
  const words = line.match(/(?:"[^"]*"|[^ \t"])+/g) ?? [];
  return line.split('"').length % 2 === 1 ? words : undefined;
}

export type SetChange =
  /** Creates or destroys a set, or replaces one that the kernel cannot change in place (type, size or range). */
  | ({ readonly kind: 'set' } & Pair<IpSet>)
  | {
      readonly kind: 'entries';
      readonly set: IpSet;
      readonly added: readonly SetEntry[];
      readonly removed: readonly SetEntry[];
    };

/** The name of a set before it is swapped in. A killed ipset may leave it behind, so it is removed first. Test: kernel/delta.test.ts. */
export const temporarySetName = 'KPC-SWAP';

/** Finds the changes between two lists. Ignores the order of entries, and the hash size, which the kernel doubles as a set grows. */
export function diffIpSets(from: readonly IpSet[], to: readonly IpSet[]): readonly SetChange[] {
  const changes: SetChange[] = [];
  const leftover = from.find(({ name }) => name === temporarySetName);
  if (leftover && !to.some(({ name }) => name === temporarySetName))
    changes.push({ kind: 'set', from: leftover, to: undefined });
  // Destroy sets from last to first, because ipset refuses to destroy a set that is a member of another. Test: kernel/delta.test.ts.
  for (const pair of pairUp(from.toReversed(), to, ({ name }) => name)) {
    const { from: old, to: set } = pair;
    if (!old || !set || !isCreatedAlike(old, set)) {
      if (set || old !== leftover) changes.push({ kind: 'set', ...pair });
      continue;
    }
    const { added, removed } = diffByKey(old.entries, set.entries, entryMeaning);
    // New entries are added before old ones are removed. A set that is too small for both is replaced. Test: kernel/delta.test.ts.
    const isFull = old.entries.length + added.length > (set.maxElements ?? defaultMaxElements);
    if (isFull) changes.push({ kind: 'set', from: old, to: set });
    else if (added.length + removed.length > 0) changes.push({ kind: 'entries', set, added, removed });
  }
  return changes;
}

function isCreatedAlike(a: IpSet, b: IpSet): boolean {
  return (
    canSwap(a, b) &&
    a.range === b.range &&
    (a.maxElements ?? defaultMaxElements) === (b.maxElements ?? defaultMaxElements) &&
    (a.options ?? []).join(' ') === (b.options ?? []).join(' ')
  );
}

const defaultMaxElements = 65536;

/** Reports whether the kernel can swap the two sets: it requires the same type and family. */
function canSwap(a: IpSet, b: IpSet): boolean {
  return a.type === b.type && (a.family ?? 'inet') === (b.family ?? 'inet');
}

function entryMeaning(entry: SetEntry): string {
  const key = entryKey(entry);
  return entry.options === undefined ? key : [key, ...entry.options].join(' ');
}

/**
 * Splits changes into additions, which are possible while rules use the sets, and removals, which are possible once these rules are gone.
 */
export function splitSetsDelta(changes: readonly SetChange[]): Split<SetChange> {
  const additions: SetChange[] = [];
  const removals: SetChange[] = [];
  for (const change of changes) {
    if (change.kind === 'set') {
      (change.to || change.from.name === temporarySetName ? additions : removals).push(change);
    } else {
      // ipset refuses to add an existing entry with other options, so delete the entry among the additions. Test: kernel/delta.test.ts.
      const remade = new Set(change.added.map(entryKey));
      const removed = partition(change.removed, (entry) => !remade.has(entryKey(entry)));
      if (change.added.length > 0) additions.push({ ...change, removed: removed.additions });
      if (removed.removals.length > 0) removals.push({ ...change, added: [], removed: removed.removals });
    }
  }
  return { additions, removals };
}

/**
 * Formats the input of `ipset restore`. A set with a new size or options is made under another name and swapped in, so that rules always
 * find a set. ipset swaps only sets of the same type. A set of another type is destroyed first; ipset refuses that while a rule
 * uses it.
 * Test: kernel/delta.test.ts.
 */
export function formatSetsDelta(changes: readonly SetChange[]): string {
  const text = new LongText();
  for (const change of changes) addChange(text, change);
  return text.toString();
}

function addChange(text: LongText, change: SetChange): void {
  if (change.kind === 'entries') {
    for (const entry of change.removed) text.add(`del ${change.set.name} ${formatEntry(entry)}\n`);
    for (const entry of change.added) text.add(formatAdd(change.set.name, entry));
    return;
  }
  const { from, to } = change;
  if (from && to && canSwap(from, to)) {
    addIpSet(text, { ...to, name: temporarySetName });
    text.add(`swap ${temporarySetName} ${to.name}\ndestroy ${temporarySetName}\n`);
    return;
  }
  if (from) text.add(`destroy ${from.name}\n`);
  if (to) addIpSet(text, to);
}

interface ListedSet {
  readonly name: string;
  type: string;
  isCreated: boolean;
  /** The number of entries that the header states; 0 if it states none, as in older versions of ipset. */
  count: number;
  members: number | undefined;
}

/** Reads `ipset list`, with the same result as parseIpsetSave. `lacks` is 'members' for `ipset list -t`, and 'end' if a set is cut off. */
export function parseIpsetList(text: string) {
  const sets = new SetDrafts();
  const listed: ListedSet[] = [];
  const unread = readLines(text, [], (line) => {
    const name = /^Name: (\S+)$/.exec(line)?.[1];
    const set = listed.at(-1);
    if (name === undefined) return set ? readLineOfSet(sets, set, line) : 'no-head';
    listed.push({ name, type: '', isCreated: false, count: 0, members: undefined });
    return undefined;
  });
  const isWhole = listed.every(({ isCreated, count, members = -1 }) => isCreated && count <= members);
  const isTerse = listed.every(({ members }) => members === undefined);
  return { sets: sets.finish(), unread, lacks: isWhole ? undefined : isTerse ? 'members' : 'end' };
}

function readLineOfSet(sets: SetDrafts, set: ListedSet, line: string): LineFault | undefined {
  if (set.members !== undefined) {
    const [entry, ...options] = splitSetWords(line) ?? [];
    if (entry !== undefined && !isEntryOf(set.type, entry)) return 'other-line';
    set.members++;
    return entry === undefined ? 'open-quote' : sets.addEntry(set.name, entry, options);
  }
  const [, key = '', value = ''] = /^([A-Z][A-Za-z ]*):(?: (.*))?$/.exec(line) ?? [];
  switch (key) {
    case 'Type':
      set.type = value;
      return undefined;
    case 'Header': {
      if (set.type === '') return 'other-line';
      set.isCreated = true;
      const words = value === '' ? [] : splitSetWords(value);
      return words ? sets.addSet(set.name, set.type, words) : 'open-quote';
    }
    case 'Number of entries':
      set.count = /^\d{1,10}$/.test(value) ? Number(value) : 0;
      return undefined;
    case 'Members':
      set.members = 0;
      return undefined;
    case 'Revision':
    case 'Size in memory':
    case 'References':
    case 'Default':
      return undefined;
    default:
      return 'other-line';
  }
}
