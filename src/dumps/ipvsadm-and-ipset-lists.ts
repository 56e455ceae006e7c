import { splitSetWords } from '../kernel/ipset/ipset.ts';
import { isEntryOf } from '../kernel/ipset/set-entry.ts';
import { serviceFlags } from '../kernel/ipvs/ipvs.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';

/** A list in the form in which its tool saves it, line by line; lines that mean nothing in that form are empty. */
interface SavedForm {
  readonly saved: string;
  /** Lines of the list that cannot be read. */
  readonly unread: readonly UnreadLine[];
}

/** A line in another form, or why it cannot be read. */
type Converted = string | { readonly reason: string };

function convertLines(text: string, convert: (line: string) => Converted): SavedForm {
  const unread: UnreadLine[] = [];
  const lines = text.split('\n').map((raw, i) => {
    const line = convert(raw.trim());
    if (typeof line === 'string') return line;
    unread.push({ line: i + 1, text: raw, reason: line.reason });
    return '';
  });
  return { saved: lines.join('\n'), unread };
}

/** The option that names a virtual server, by its protocol. */
const serverFlags: ReadonlyMap<string, string> = new Map(Object.entries({ ...serviceFlags, FWM: '-f' }));

/** A real server that is the node itself is forwarded to as with direct routing. */
const forwardingFlags: ReadonlyMap<string, string> = new Map(
  Object.entries({ Masq: '-m', Route: '-g', Local: '-g', Tunnel: '-i' }),
);

/** Converts what `ipvsadm -Ln` prints to what `ipvsadm -Sn` prints. Takes any text. */
export function saveIpvsadmList(text: string): SavedForm {
  /** The virtual server of the next real servers, "-t 10.96.0.1:80"; undefined if it is there already. */
  let current: string | undefined;
  const seen = new Set<string>();
  return convertLines(text, (line) => {
    const [first = '', name = '', ...rest] = line.split(/[ \t]+/);
    if (first === '' || first === 'IP' || first === 'Prot' || name === 'RemoteAddress:Port') return '';
    if (first === '->') {
      const [forwarding = '', weight = ''] = rest;
      const flag = forwardingFlags.get(forwarding);
      if (current === undefined) return { reason: 'a real server without its virtual server' };
      if (flag === undefined || !/^\d{1,10}$/.test(weight))
        return { reason: 'a real server without all of its columns' };
      return `-a ${current} -r ${name} ${flag} -w ${weight}`;
    }
    const service = `${serverFlags.get(first)} ${name}`;
    current = seen.has(service) ? undefined : service;
    seen.add(service);
    return `-A ${service} ${saveOptions(rest)}`;
  });
}

/** The options of a virtual server. */
function saveOptions([scheduler = '', ...words]: readonly string[]): string {
  const options = ` ${words.join(' ')}`
    .replace(/ \(([^ ()]+)\)/, ' -b $1')
    .replace(/ ops(?= |$)/, ' -o')
    .replace(/ persistent (\d{1,10})(?= |$)/, ' -p $1')
    .replace(/ mask (\S+)/, ' -M $1')
    .replace(/ pe (\S+)/, ' --pe $1');
  const named = /^[a-z_]{1,16}$/.test(scheduler) ? ` ${scheduler}` : '';
  return `-s${named}${options}`.trimEnd();
}

/** The header of a set, above its entries. */
interface ListedSet {
  readonly name: string;
  type: string;
  isCreated: boolean;
  /** How many entries it has; older versions of ipset do not say. */
  count: number;
  /** How many entries were read; undefined before the line "Members:". */
  members: number | undefined;
}

/**
 * Converts the output of `ipset list` to that of `ipset save`, without what its header adds (revision, size,
 * references). Takes any text. `lacks`: 'members' for `ipset list -t`; 'end' if a set lacks its header, or entries.
 */
export function saveIpsetList(text: string): SavedForm & { readonly lacks: 'members' | 'end' | undefined } {
  const sets: ListedSet[] = [];
  const form = convertLines(text, (line) => {
    const name = /^Name: (\S+)$/.exec(line)?.[1];
    const set = sets.at(-1);
    if (name !== undefined) sets.push({ name, type: '', isCreated: false, count: 0, members: undefined });
    else if (line !== '') return set ? saveSetLine(set, line) : { reason: 'not below the name of a set' };
    return '';
  });
  const isWhole = sets.every(({ isCreated, count, members = -1 }) => isCreated && count <= members);
  const isTerse = sets.every(({ members }) => members === undefined);
  return { ...form, lacks: isWhole ? undefined : isTerse ? 'members' : 'end' };
}

/** A line below the name of a set. */
function saveSetLine(set: ListedSet, line: string): Converted {
  if (set.members !== undefined) {
    const value = splitSetWords(line)?.[0];
    if (value !== undefined && !isEntryOf(set.type, value)) return { reason: 'not an entry of its set' };
    set.members++;
    return `add ${set.name} ${line}`;
  }
  const [, key = '', value = ''] = /^([A-Z][A-Za-z ]*):(?: (.*))?$/.exec(line) ?? [];
  switch (key) {
    case 'Type':
      set.type = value;
      return '';
    case 'Header':
      if (set.type === '') return { reason: 'a header before the type of its set' };
      set.isCreated = true;
      return `create ${set.name} ${set.type} ${value}`;
    case 'Number of entries':
      set.count = /^\d{1,10}$/.test(value) ? Number(value) : 0;
      return '';
    case 'Members':
      set.members = 0;
      return '';
    case 'Revision':
    case 'Size in memory':
    case 'References':
    case 'Default':
      return '';
    default:
      return { reason: 'not a line that ipset list prints' };
  }
}
