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
  /** "eth0@if7" is eth0, one end of a pair. */
  const linkOf = (printed: string): DraftLink => {
    const [name = printed] = printed.split('@', 1);
    const link = links.get(name) ?? { name, addresses: [] };
    links.set(name, link);
    return link;
  };
  for (const [i, raw] of text.split('\n').entries()) {
    const refuse = (reason: string) => unread.push({ line: i + 1, text: raw, reason });
    const add = (link: DraftLink, word: string, scope: string | undefined): void => {
      const address = readAddress(word, scope);
      if (address) link.addresses.push(address);
      else refuse('not an address with its prefix length');
    };
    const words = raw.trim().split(/[ \t]+/);
    const header = /^\d+: ([^\s:]+): </.exec(raw.trimStart())?.[1];
    if (header !== undefined) {
      current = linkOf(header);
      continue;
    }
    const [first = '', second = ''] = words;
    if (linkStates.has(second) && !first.endsWith(':')) {
      const link = linkOf(first);
      for (const word of addressesInColumns(words)) add(link, word, scopeOf(word));
      continue;
    }
    const isOneLine = /^\d+:$/.test(first);
    const inet = isOneLine ? words.slice(2) : words;
    if (inet[0] === 'dummy' && current && !isOneLine) current.kind = 'dummy';
    if (inet[0] !== 'inet' && inet[0] !== 'inet6') continue;
    const label = labelOf(inet);
    const link = isOneLine ? linkOf(second) : (current ?? (label === undefined ? undefined : linkOf(label)));
    if (!link) {
      refuse('an address without its link: print all of ip addr');
      continue;
    }
    // With a peer, the length is the peer's.
    const [, address = '', peer, ofPeer] = inet;
    const length = peer === 'peer' && !address.includes('/') ? `/${ofPeer?.split('/')[1]}` : '';
    const scope = /(?:^| )scope (\S+)/.exec(inet.join(' '))?.[1];
    add(link, address + length, scope === 'global' ? undefined : scope);
  }
  return { links: [...links.values()], unread };
}

const linkStates: ReadonlySet<string> = new Set('UP DOWN UNKNOWN LOWERLAYERDOWN DORMANT NOTPRESENT TESTING'.split(' '));

/** The addresses in a line of `ip -br addr`. */
function addressesInColumns(words: readonly string[]): readonly string[] {
  return words.slice(2).filter((word, i) => words[i + 1] !== 'peer' && /^[\da-f.:]+\/\d+$/i.test(word));
}

/** The columns do not show the scope, which follows from the address. */
function scopeOf(word: string): string | undefined {
  const address = parseAddress(word.split('/', 1)[0] ?? '');
  if (!address) return undefined;
  if (isLoopback(address)) return 'host';
  return isLinkLocal(address) ? 'link' : undefined;
}

const addressFlags: ReadonlySet<string> = new Set(
  'secondary dynamic noprefixroute temporary mngtmpaddr tentative deprecated nodad home dadfailed permanent'.split(' '),
);

/** An address of IPv4 has the name of its link, or an alias of it such as "eth0:1", as a label at the end. */
function labelOf(words: readonly string[]): string | undefined {
  const at = words.indexOf('scope');
  if (words[0] !== 'inet' || at < 0) return undefined;
  const label = words
    .slice(at + 2)
    .find((word) => !addressFlags.has(word) && !word.startsWith('valid_lft') && /^[^\s/\\]+$/.test(word));
  return label?.split(':', 1)[0];
}

function readAddress(word: string, scope: string | undefined): LinkAddress | undefined {
  const [text = '', length = ''] = word.split('/', 2);
  const address = parseAddress(text);
  const prefixLength = Number(length);
  if (!address || !/^\d{1,3}$/.test(length) || prefixLength > (address.family === 'ipv4' ? 32 : 128)) return undefined;
  return { family: address.family, address, prefixLength, ...(scope === undefined ? {} : { scope }) };
}
