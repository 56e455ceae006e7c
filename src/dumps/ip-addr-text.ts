import { isLinkLocal, isLoopback, parseAddress } from '../kernel/address.ts';
import type { Link, LinkAddress } from '../kernel/link/link.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';

/** A link while its lines are read. */
interface DraftLink {
  readonly name: string;
  kind?: string;
  readonly addresses: LinkAddress[];
}

/**
 * Reads the texts that `ip addr` prints: with a block for each link, with a line for each address (-o), and in columns (-br);
 * of the first also what grep leaves of it, as long as a line names its link. Takes any text: lines that say nothing of an
 * address are passed over, addresses that cannot be read are in `unread`.
 */
export function parseIpAddrText(text: string): {
  readonly links: readonly Link[];
  readonly unread: readonly UnreadLine[];
} {
  const links = new Map<string, DraftLink>();
  const unread: UnreadLine[] = [];
  let current: DraftLink | undefined;
  let number = 0;
  for (const raw of text.split('\n')) {
    number++;
    const words = raw.trim().split(/[ \t]+/);
    const header = /^\d+: ([^\s:]+): </.exec(raw.trimStart())?.[1];
    if (header !== undefined) {
      current = findLink(links, header);
      continue;
    }
    const brief = readBrief(words);
    if (brief) {
      const link = findLink(links, brief.name);
      for (const word of brief.addresses) {
        const address = readAddress(word, scopeOf(word));
        if (address) link.addresses.push(address);
        else unread.push({ line: number, text: raw, reason: 'not an address with its prefix length' });
      }
      continue;
    }
    const isOneLine = /^\d+:$/.test(words[0] ?? '');
    const at = isOneLine ? 2 : 0;
    if (words[at] === 'dummy' && current && !isOneLine) current.kind = 'dummy';
    if (words[at] !== 'inet' && words[at] !== 'inet6') continue;
    const reason = readInet(words, at, isOneLine ? findLink(links, words[1] ?? '') : current, links);
    if (reason !== undefined) unread.push({ line: number, text: raw, reason });
  }
  return { links: [...links.values()], unread };
}

/** "eth0@if7" is eth0, one end of a pair. */
function findLink(links: Map<string, DraftLink>, printed: string): DraftLink {
  const name = printed.split('@', 1)[0] ?? printed;
  const known = links.get(name);
  if (known) return known;
  const made: DraftLink = { name, addresses: [] };
  links.set(name, made);
  return made;
}

const linkStates: ReadonlySet<string> = new Set('UP DOWN UNKNOWN LOWERLAYERDOWN DORMANT NOTPRESENT TESTING'.split(' '));

/** A line of `ip -br addr`. */
function readBrief(
  words: readonly string[],
): { readonly name: string; readonly addresses: readonly string[] } | undefined {
  const [name = '', state = '', ...rest] = words;
  if (!linkStates.has(state) || name.endsWith(':')) return undefined;
  const addresses = rest.filter(
    (word, i) => word !== 'peer' && rest[i - 1] !== 'peer' && /^[\da-f.:]+\/\d+$/i.test(word),
  );
  return { name, addresses };
}

/** The columns do not show the scope, which the address tells. */
function scopeOf(word: string): string | undefined {
  const address = parseAddress(word.split('/', 1)[0] ?? '');
  if (!address) return undefined;
  if (isLoopback(address)) return 'host';
  return isLinkLocal(address) ? 'link' : undefined;
}

/** Reads "inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0" from words[at] on. Returns why it cannot be read. */
function readInet(
  words: readonly string[],
  at: number,
  link: DraftLink | undefined,
  links: Map<string, DraftLink>,
): string | undefined {
  const scopeAt = words.indexOf('scope', at);
  const scope = scopeAt < 0 ? undefined : words[scopeAt + 1];
  // An address of IPv4 has the name of its link, or an alias of it, as a label at the end.
  const label = words[at] === 'inet' && scopeAt >= 0 ? words.slice(scopeAt + 2).find(isLabel) : undefined;
  const owner = link ?? (label === undefined ? undefined : findLink(links, label.split(':', 1)[0] ?? label));
  if (!owner) return 'an address without its link: print all of ip addr';
  // With a peer, the length is the peer's.
  const length = words[at + 2] === 'peer' && !words[at + 1]?.includes('/') ? words[at + 3]?.split('/')[1] : undefined;
  const address = readAddress(
    length === undefined ? (words[at + 1] ?? '') : `${words[at + 1]}/${length}`,
    scope === 'global' ? undefined : scope,
  );
  if (!address) return 'not an address with its prefix length';
  owner.addresses.push(address);
  return undefined;
}

const addressFlags: ReadonlySet<string> = new Set(
  'secondary dynamic noprefixroute temporary mngtmpaddr tentative deprecated nodad home dadfailed permanent'.split(' '),
);

function isLabel(word: string): boolean {
  return !addressFlags.has(word) && word !== '\\' && !word.startsWith('valid_lft') && /^[^\s/]+$/.test(word);
}

function readAddress(word: string, scope: string | undefined): LinkAddress | undefined {
  const [text = '', length = ''] = word.split('/', 2);
  const address = parseAddress(text);
  const prefixLength = Number(length);
  if (!address || !/^\d{1,3}$/.test(length) || prefixLength > (address.family === 'ipv4' ? 32 : 128)) return undefined;
  return { family: address.family, address, prefixLength, ...(scope === undefined ? {} : { scope }) };
}
