import { LongText } from '../long-text.ts';
import { compareEntries, formatEntry, parseEntry, type SetEntry, entryKey } from './set-entry.ts';
import { readLines, type UnreadLine } from '../unread-line.ts';
import { diffByKey, pairUp, partition, type Pair, type Split } from '../diff-by-key.ts';

/** The types of kube-proxy's sets, as ipset names them. */
export type SetType = 'hash:ip' | 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' | 'bitmap:port';

/** One ipset. Hash sets have a family, bitmap:port a range. Other types than kube-proxy's keep their type's name. */
export interface IpSet {
  readonly name: string;
  readonly type: SetType | (string & {});
  readonly family?: 'inet' | 'inet6' | undefined;
  /** "0-65535" for kube-proxy's port sets. */
  readonly range?: string | undefined;
  readonly hashSize?: number | undefined;
  /** How many entries fit: a limit of the kernel's, past which adding fails. */
  readonly maxElements?: number | undefined;
  /** Sorted and without duplicates; equality takes them as a set. */
  readonly entries: readonly SetEntry[];
  /** Further options of another program's sets (timeout, counters, comment …), as written. kube-proxy's have none. */
  readonly options?: readonly string[] | undefined;
}

/** The input of `ipset restore` that makes these sets if none of them exists. '' for no sets. */
export function formatSets(sets: readonly IpSet[]): string {
  const text = new LongText();
  for (const set of sets) addSet(text, set);
  return text.toString();
}

function addSet(text: LongText, set: IpSet): void {
  text.add(`${formatCreate(set)}\n`);
  for (const entry of set.entries) text.add(formatAdd(set.name, entry));
}

/** `create NAME TYPE …`. */
export function formatCreate({ name, type, options = [], ...set }: IpSet): string {
  const words = properties.flatMap(([word, key]) => (set[key] === undefined ? [] : [word, String(set[key])]));
  return ['create', name, type, ...words, ...options].join(' ');
}

/** The properties of a set, as ipset and IpSet call them. */
const properties = [
  ['family', 'family'],
  ['range', 'range'],
  ['hashsize', 'hashSize'],
  ['maxelem', 'maxElements'],
] as const;

/** `add NAME ENTRY …`, with its line's end. */
function formatAdd(set: string, entry: SetEntry): string {
  const line = `add ${set} ${formatEntry(entry)}`;
  return `${entry.options === undefined ? line : [line, ...entry.options].join(' ')}\n`;
}

/** A set while its lines are read. */
interface DraftSet extends IpSet {
  entries: SetEntry[];
}

/**
 * Reads what `ipset save` prints, and what formatSets writes. The kernel's own choices (initval, the default bucket
 * size) are left out; options that kube-proxy's sets do not have are kept as words. Entries come out sorted. Takes
 * any text: lines it cannot read are in `unread`.
 */
export function parseIpsetSave(text: string): {
  readonly sets: readonly IpSet[];
  readonly unread: readonly UnreadLine[];
} {
  const sets = new Map<string, DraftSet>();
  const unread = readLines(text, ['#'], (line) => (line === 'COMMIT' ? undefined : readSetLine(sets, line)));
  for (const set of sets.values()) set.entries.sort(compareEntries);
  return { sets: [...sets.values()], unread };
}

/** Reads a line into the sets. Returns why it cannot be read. */
function readSetLine(sets: Map<string, DraftSet>, line: string): string | undefined {
  const words = splitSetWords(line);
  if (!words) return 'a quote that is not closed';
  const [command, name, third, ...options] = words;
  const creates = command === 'create';
  if (name === undefined || third === undefined || !(creates || command === 'add')) {
    return 'neither a set nor an entry';
  }
  const set = sets.get(name);
  if (creates) {
    if (set) return 'duplicate set';
    sets.set(name, readCreate(name, third, options));
  } else {
    if (!set) return 'an entry of a set that is not there';
    const entry = parseEntry(third, set.type);
    set.entries.push(options.length === 0 ? entry : { ...entry, options });
  }
  return undefined;
}

/** The set that the words after its name and type describe, in a line of ipset save or the header of ipset list. */
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

/** Splits at blanks, but not inside double quotes. The quotes stay. ipset knows no way to write a quote inside a comment. */
export function splitSetWords(line: string): string[] | undefined {
  if (!line.includes('"')) return line.split(/[ \t]+/);
  const words = line.match(/(?:"[^"]*"|[^ \t"])+/g) ?? [];
  return line.split('"').length % 2 === 1 ? words : undefined;
}

/** One step from some sets to others. */
export type SetChange =
  /** A set of the same name that the kernel cannot change, where there is one: another type, size or range. */
  | ({ readonly kind: 'set' } & Pair<IpSet>)
  | {
      readonly kind: 'entries';
      /** The set as it should be. */
      readonly set: IpSet;
      readonly added: readonly SetEntry[];
      readonly removed: readonly SetEntry[];
    };

/**
 * The name that a set has for a moment while it replaces another. One that is there was left by an ipset that was
 * killed: no rule can use it, and it is in the way, so it goes first.
 */
export const temporarySetName = 'KPC-SWAP';

/**
 * How to get from some sets to others. The size of the hash is ignored: the kernel doubles it as a set grows. Nor
 * does the order of entries.
 */
export function diffSets(from: readonly IpSet[], to: readonly IpSet[]): readonly SetChange[] {
  const changes: SetChange[] = [];
  const leftover = from.find(({ name }) => name === temporarySetName);
  if (leftover && !to.some(({ name }) => name === temporarySetName))
    changes.push({ kind: 'set', from: leftover, to: undefined });
  // A set of sets comes after those it holds, and must go before them.
  for (const pair of pairUp(from.toReversed(), to, ({ name }) => name)) {
    const { from: old, to: set } = pair;
    if (!old || !set || !isSameKind(old, set)) {
      if (set || old !== leftover) changes.push({ kind: 'set', ...pair });
      continue;
    }
    const { added, removed } = diffByKey(old.entries, set.entries, entryMeaning);
    if (added.length + removed.length > 0) changes.push({ kind: 'entries', set, added, removed });
  }
  return changes;
}

function isSameKind(a: IpSet, b: IpSet): boolean {
  return (
    canSwap(a, b) &&
    a.range === b.range &&
    (a.maxElements ?? defaultMaxElements) === (b.maxElements ?? defaultMaxElements) &&
    (a.options ?? []).join(' ') === (b.options ?? []).join(' ')
  );
}

const defaultMaxElements = 65536;

/** The kernel swaps two sets of one type and family only. */
function canSwap(a: IpSet, b: IpSet): boolean {
  return a.type === b.type && (a.family ?? 'inet') === (b.family ?? 'inet');
}

/** The same text for entries that are one to the kernel and have the same options. */
function entryMeaning(entry: SetEntry): string {
  const key = entryKey(entry);
  return entry.options === undefined ? key : [key, ...entry.options].join(' ');
}

/** What can be made while the rules that are there use the sets, and what is to go after them. */
export function splitSetsDelta(changes: readonly SetChange[]): Split<SetChange> {
  const additions: SetChange[] = [];
  const removals: SetChange[] = [];
  for (const change of changes) {
    if (change.kind === 'set') {
      (change.to || change.from.name === temporarySetName ? additions : removals).push(change);
    } else {
      // An entry that only changes its options must go before it comes back.
      const remade = new Set(change.added.map(entryKey));
      const removed = partition(change.removed, (entry) => !remade.has(entryKey(entry)));
      if (change.added.length > 0) additions.push({ ...change, removed: removed.additions });
      if (removed.removals.length > 0) removals.push({ ...change, added: [], removed: removed.removals });
    }
  }
  return { additions, removals };
}

/**
 * The input of `ipset restore` that makes the changes. A set that only changes its size or options is made under
 * another name and swapped in, so that rules that look at it never miss it. One of another type cannot be swapped: it
 * is destroyed first, which ipset refuses while a rule uses it. '' if there are no changes.
 */
export function formatSetsDelta(changes: readonly SetChange[]): string {
  const text = new LongText();
  for (const change of changes) addChange(text, change);
  return text.toString();
}

function addChange(text: LongText, change: SetChange): void {
  if (change.kind === 'entries') {
    // Deleting first leaves room for what is added.
    for (const entry of change.removed) text.add(`del ${change.set.name} ${formatEntry(entry)}\n`);
    for (const entry of change.added) text.add(formatAdd(change.set.name, entry));
    return;
  }
  const { from, to } = change;
  if (from && to && canSwap(from, to)) {
    addSet(text, { ...to, name: temporarySetName });
    text.add(`swap ${temporarySetName} ${to.name}\ndestroy ${temporarySetName}\n`);
    return;
  }
  if (from) text.add(`destroy ${from.name}\n`);
  if (to) addSet(text, to);
}
