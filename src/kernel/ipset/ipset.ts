import { LongText } from '../long-text.ts';
import { compareEntries, formatEntry, parseEntry, type SetEntry } from './set-entry.ts';
import type { UnreadLine } from '../unread-line.ts';

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
  /** What another program's sets have besides (timeout, counters, comment …), as written. Not for kube-proxy's. */
  readonly options?: readonly string[] | undefined;
}

/** The input of `ipset restore` that makes these sets where none of them exists. '' for no sets. */
export function formatSets(sets: readonly IpSet[]): string {
  const text = new LongText();
  for (const set of sets) {
    text.add(`${formatCreate(set)}\n`);
    for (const entry of set.entries) text.add(`${formatAdd(set.name, entry)}\n`);
  }
  return text.toString();
}

/** `create NAME TYPE …`. */
export function formatCreate(set: IpSet): string {
  let line = `create ${set.name} ${set.type}`;
  if (set.family !== undefined) line += ` family ${set.family}`;
  if (set.range !== undefined) line += ` range ${set.range}`;
  if (set.hashSize !== undefined) line += ` hashsize ${set.hashSize}`;
  if (set.maxElements !== undefined) line += ` maxelem ${set.maxElements}`;
  for (const option of set.options ?? []) line += ` ${option}`;
  return line;
}

/** `add NAME ENTRY …`. */
export function formatAdd(set: string, entry: SetEntry): string {
  const line = `add ${set} ${formatEntry(entry)}`;
  return entry.options === undefined ? line : [line, ...entry.options].join(' ');
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
  const unread: UnreadLine[] = [];
  let number = 0;
  for (const raw of text.split('\n')) {
    number++;
    const line = raw.trim();
    if (line === '' || line.startsWith('#') || line === 'COMMIT') continue;
    const reason = readSetLine(sets, line);
    if (reason !== undefined) unread.push({ line: number, text: raw, reason });
  }
  for (const set of sets.values()) set.entries.sort(compareEntries);
  return { sets: [...sets.values()], unread };
}

/** Reads a line into the sets. Returns why it cannot be read. */
function readSetLine(sets: Map<string, DraftSet>, line: string): string | undefined {
  const words = splitSetWords(line);
  if (!words) return 'a quote that is not closed';
  const [command, name, third, ...rest] = words;
  if (name === undefined || third === undefined) return 'neither a set nor an entry';
  if (command === 'create' || command === '-N') {
    if (sets.has(name)) return 'duplicate set';
    sets.set(name, readCreate(name, third, rest));
    return undefined;
  }
  if (command !== 'add' && command !== '-A') return 'neither a set nor an entry';
  const set = sets.get(name);
  if (!set) return 'an entry of a set that is not there';
  addEntry(set, third, rest);
  return undefined;
}

/** Adds an entry to a set that is being read. */
function addEntry(set: DraftSet, text: string, options: readonly string[]): void {
  const entry = parseEntry(text, set.type);
  set.entries.push(options.length === 0 ? entry : { ...entry, options });
}

/** The set that the words after its name and type describe, in a line of ipset save or the header of ipset list. */
function readCreate(name: string, type: string, words: readonly string[]): DraftSet {
  let family: IpSet['family'];
  let range: string | undefined;
  let hashSize: number | undefined;
  let maxElements: number | undefined;
  const options: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const value = words[i + 1];
    if (word === 'family' && (value === 'inet' || value === 'inet6')) family = value;
    else if (word === 'range' && value !== undefined) range = value;
    else if (word === 'hashsize' && isCount(value)) hashSize = Number(value);
    else if (word === 'maxelem' && isCount(value)) maxElements = Number(value);
    else if (word !== 'initval' && !(word === 'bucketsize' && value === '12')) {
      options.push(word);
      continue;
    }
    i++;
  }
  return {
    name,
    type,
    ...(family === undefined ? {} : { family }),
    ...(range === undefined ? {} : { range }),
    ...(hashSize === undefined ? {} : { hashSize }),
    ...(maxElements === undefined ? {} : { maxElements }),
    ...(options.length === 0 ? {} : { options }),
    entries: [],
  };
}

function isCount(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,10}$/.test(text);
}

/** Splits at blanks, but not inside double quotes, which stay. ipset knows no way to write a quote inside a comment. */
export function splitSetWords(line: string): string[] | undefined {
  if (!line.includes('"')) return line.split(/[ \t]+/);
  const words = line.match(/(?:"[^"]*"|[^ \t"])+/g) ?? [];
  return line.split('"').length % 2 === 1 ? words : undefined;
}
