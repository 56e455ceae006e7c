import { readLines } from '../lines.ts';
import { openQuote, SetDrafts, splitSetWords } from './ipset.ts';
import { isEntryOf } from './set-entry.ts';

interface ListedSet {
  readonly name: string;
  type: string;
  isCreated: boolean;
  /** The number of entries; undefined for older versions of ipset, which do not print it. */
  count: number;
  members: number | undefined;
}

/** Reads `ipset list`, like parseIpsetSave. `lacks`: 'members' for `ipset list -t`; 'end' if a set is cut off. */
export function parseIpsetList(text: string) {
  const sets = new SetDrafts();
  const listed: ListedSet[] = [];
  const unread = readLines(text, [], (line) => {
    const name = /^Name: (\S+)$/.exec(line)?.[1];
    const set = listed.at(-1);
    if (name === undefined) return set ? readLineOfSet(sets, set, line) : 'not below the name of a set';
    listed.push({ name, type: '', isCreated: false, count: 0, members: undefined });
    return undefined;
  });
  const isWhole = listed.every(({ isCreated, count, members = -1 }) => isCreated && count <= members);
  const isTerse = listed.every(({ members }) => members === undefined);
  return { sets: sets.finish(), unread, lacks: isWhole ? undefined : isTerse ? 'members' : 'end' };
}

function readLineOfSet(sets: SetDrafts, set: ListedSet, line: string): string | undefined {
  if (set.members !== undefined) {
    const [entry, ...options] = splitSetWords(line) ?? [];
    if (entry !== undefined && !isEntryOf(set.type, entry)) return 'not an entry of its set';
    set.members++;
    return entry === undefined ? openQuote : sets.addEntry(set.name, entry, options);
  }
  const [, key = '', value = ''] = /^([A-Z][A-Za-z ]*):(?: (.*))?$/.exec(line) ?? [];
  switch (key) {
    case 'Type':
      set.type = value;
      return undefined;
    case 'Header': {
      if (set.type === '') return 'a header before the type of its set';
      set.isCreated = true;
      const words = value === '' ? [] : splitSetWords(value);
      return words ? sets.addSet(set.name, set.type, words) : openQuote;
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
      return 'not a line that ipset list prints';
  }
}
