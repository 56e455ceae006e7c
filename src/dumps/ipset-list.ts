import { addEntry, readCreate, splitSetWords, type DraftSet, type IpSet } from '../kernel/ipset/ipset.ts';
import { compareEntries, isEntryOf } from '../kernel/ipset/set-entry.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';

/** What is known of a set that `ipset list` prints before it is read to its end. */
interface ListedSet {
  readonly name: string;
  readonly line: number;
  type: string;
  /** How many entries its header says that it has; older versions of ipset do not say. */
  count: number | undefined;
  set: DraftSet | undefined;
  /** Whether "Members:" was there, below which the entries stand. */
  hasMembers: boolean;
}

/**
 * Reads what `ipset list` prints. What its header adds to `ipset save` (revision, size, references) is left out. Entries
 * come out sorted. Takes any text: lines it cannot read are in `unread`. Where a set lacks entries that its
 * header counts, or the end of its header, the text is `cut-off`; `ipset list -t` prints no `members`.
 */
export function parseIpsetList(text: string): {
  readonly sets: readonly IpSet[];
  readonly unread: readonly UnreadLine[];
  readonly lacks: 'members' | 'end' | undefined;
} {
  const listed = new Map<string, ListedSet>();
  const unread: UnreadLine[] = [];
  let current: ListedSet | undefined;
  let number = 0;
  for (const raw of text.split('\n')) {
    number++;
    const line = raw.trim();
    if (line === '') continue;
    const name = /^Name: (\S+)$/.exec(line)?.[1];
    let reason: string | undefined;
    if (name !== undefined) {
      current = { name, line: number, type: '', count: undefined, set: undefined, hasMembers: false };
      if (listed.has(name)) reason = 'duplicate set';
      else listed.set(name, current);
    } else reason = current ? readListedLine(current, line) : 'not below the name of a set';
    if (reason !== undefined) unread.push({ line: number, text: raw, reason });
  }
  const sets: IpSet[] = [];
  let isWhole = true;
  for (const { set, count, hasMembers } of listed.values()) {
    if (set) sets.push({ ...set, entries: set.entries.toSorted(compareEntries) });
    if (!set || !hasMembers || (count ?? 0) > set.entries.length) isWhole = false;
  }
  const isTerse = [...listed.values()].every(({ hasMembers }) => !hasMembers);
  return { sets, unread, lacks: isWhole ? undefined : isTerse ? 'members' : 'end' };
}

/** Reads a line below the name of a set. Returns why it cannot be read. */
function readListedLine(listed: ListedSet, line: string): string | undefined {
  if (listed.hasMembers) {
    const words = splitSetWords(line);
    if (!words) return 'a quote that is not closed';
    const [value = '', ...options] = words;
    if (listed.set && !isEntryOf(listed.set.type, value)) return 'not an entry of its set';
    if (listed.set) addEntry(listed.set, value, options);
    return undefined;
  }
  const [, key = '', value = ''] = /^([A-Z][A-Za-z ]*):(?: (.*))?$/.exec(line) ?? [];
  switch (key) {
    case 'Type':
      listed.type = value;
      return undefined;
    case 'Header':
      if (listed.type === '') return 'a header before the type of its set';
      listed.set = readCreate(
        listed.name,
        listed.type,
        value.split(/[ \t]+/).filter((word) => word !== ''),
      );
      return undefined;
    case 'Number of entries':
      listed.count = /^\d{1,10}$/.test(value) ? Number(value) : undefined;
      return undefined;
    case 'Members':
      listed.set ??= readCreate(listed.name, listed.type, []);
      listed.hasMembers = true;
      return undefined;
    case 'Revision':
    case 'Size in memory':
    case 'References':
    case 'Default':
      return undefined;
    default:
      return 'not a line that ipset list prints';
  }
}
