import { addressSortKey, parseAddress } from './address.ts';
import type { Origin } from './origin.ts';
import type { UnreadLine } from './unread-line.ts';

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

/** An entry as ipset prints it: "10.96.0.1,tcp:80", "10.0.0.1,tcp:80,10.0.0.1", "10.0.0.1,tcp:80,10.0.0.0/8", "30080". */
export interface SetEntry {
  readonly value: string;
  readonly options?: readonly string[] | undefined;
  readonly origin?: Origin | undefined;
}

/** By address as a number, then port, protocol, and what follows; port numbers of a bitmap by number. */
export function sortEntries(entries: readonly SetEntry[]): SetEntry[] {
  const keyed = entries.map((entry) => ({ entry, key: entrySortKey(entry.value) }));
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return keyed.map(({ entry }) => entry);
}

const protocolRanks: ReadonlyMap<string, string> = new Map([
  ['tcp', '0'],
  ['udp', '1'],
  ['sctp', '2'],
]);

/** A text that sorts as the entry's parts do as numbers. */
function entrySortKey(value: string): string {
  return value.split(',').map(partSortKey).join(',');
}

function partSortKey(part: string): string {
  if (/^\d+$/.test(part)) return part.padStart(10, '0');
  const port = /^(tcp|udp|sctp):(\d+)$/.exec(part);
  if (port) return `${(port[2] ?? '').padStart(5, '0')}${protocolRanks.get(port[1] ?? '') ?? ''}`;
  const slash = part.indexOf('/');
  const address = parseAddress(slash < 0 ? part : part.slice(0, slash));
  if (!address) return part;
  // An address alone is the narrowest network that begins with it.
  const length = slash < 0 ? '999' : part.slice(slash + 1).padStart(3, '0');
  return `${addressSortKey(address)}/${length}`;
}

/** The input of `ipset restore` that makes these sets where none of them exists. '' for no sets. */
export function formatSets(sets: readonly IpSet[]): string {
  const lines: string[] = [];
  for (const set of sets) {
    lines.push(formatCreate(set));
    for (const entry of set.entries) lines.push(formatAdd(set.name, entry));
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
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

/** `add NAME VALUE …`. */
export function formatAdd(set: string, entry: SetEntry): string {
  const line = `add ${set} ${entry.value}`;
  return entry.options === undefined ? line : [line, ...entry.options].join(' ');
}

/** A set while its lines are read. */
export interface DraftSet extends IpSet {
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
  for (const set of sets.values()) set.entries = sortEntries(set.entries);
  return { sets: [...sets.values()], unread };
}

/** Reads a line into the sets. Returns why it cannot be read. */
function readSetLine(sets: Map<string, DraftSet>, line: string): string | undefined {
  const words = splitSetWords(line);
  if (!words) return 'a quote that is not closed';
  const [command, name, third, ...rest] = words;
  if (name === undefined || third === undefined) return 'neither a set nor an entry';
  if (command === 'create' || command === '-N') {
    if (sets.has(name)) return 'a set of this name is there already';
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
export function addEntry(set: DraftSet, value: string, options: readonly string[]): void {
  set.entries.push(options.length === 0 ? { value } : { value, options });
}

/** The set that the words after its name and type describe, in a line of ipset save or the header of ipset list. */
export function readCreate(name: string, type: string, words: readonly string[]): DraftSet {
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
