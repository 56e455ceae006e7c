import { endOfQuoted } from '../../base/json/locate.ts';
import { parseJson, TooLong } from '../../base/bounds.ts';
import { isObject } from '../../base/json/check.ts';
import { formatTunnel, readTunnel, type Tunnel } from './tunnel.ts';
import { type Address, addressBits, type Family, parseAddress } from '../address.ts';
import type { Origin } from '../place.ts';
import { readLines, UnreadLines, type UnreadLine, type LineFault } from '../lines.ts';
import { diffByKey, itemOf, pairUp, partition, type Pair, type Split } from '../compare.ts';

/** Reads ip's JSON, even with bare control characters, which ip leaves in some strings. Throws a SyntaxError or a TooLong. */
export function parseIpJson(text: string): unknown {
  try {
    // Try this first, because the search for control characters takes a minute for a node with 100,000 links.
    return parseJson(text);
  } catch (error) {
    if (error instanceof TooLong) throw error;
    return parseWithControls(text);
  }
}

function parseWithControls(text: string): unknown {
  const parts: string[] = [];
  let at = 0;
  for (let start = text.indexOf('"'); start >= 0; start = text.indexOf('"', at)) {
    const end = endOfQuoted(text, start) ?? text.length;
    parts.push(text.slice(at, start), escapeControls(text.slice(start, end)));
    at = end;
  }
  return JSON.parse(parts.join('') + text.slice(at));
}

function escapeControls(quoted: string): string {
  return quoted.replace(/[^\P{Cc}\u007f-\u009f]/gu, (character) => JSON.stringify(character).slice(1, -1));
}

/** A link. `kind` is the type in `ip -d link` if known, such as dummy for kube-ipvs0. */
export interface Link {
  readonly name: string;
  readonly kind?: string | undefined;
  /** The link that this one is a port of, such as a bridge. */
  readonly master?: string | undefined;
  readonly traits?: LinkTraits | undefined;
  readonly tunnel?: Tunnel | undefined;
  readonly addresses: readonly LinkAddress[];
}

export function isLinkNamed(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** Where `ip -j` prints the options of a bridge or bridge port, and the flags and members of any link. */
const traitPlaces = {
  hairpin: 'info_slave_data',
  isolated: 'info_slave_data',
  learning: 'info_slave_data',
  flood: 'info_slave_data',
  nf_call_iptables: 'info_data',
  nf_call_ip6tables: 'info_data',
  vlan_filtering: 'info_data',
  'NO-CARRIER': 'flags',
  NOARP: 'flags',
  BROADCAST: 'flags',
  /** Whether the link has an eBPF program that sees packets before the kernel does. */
  xdp: 'link',
} as const;

type LinkTrait = keyof typeof traitPlaces;

type TraitPlace = (typeof traitPlaces)[LinkTrait];

export type LinkTraits = { readonly [T in LinkTrait]?: boolean };

const linkTraits = Object.keys(traitPlaces) as readonly LinkTrait[];

function traitsOf(valueOf: (name: string, place: TraitPlace) => unknown): LinkTraits {
  const words = new Map<unknown, boolean>([true, 1, 'on', '1'].map((word) => [word, true]));
  for (const word of [false, 0, 'off', '0']) words.set(word, false);
  return Object.fromEntries(
    linkTraits.flatMap((name) => {
      const value = words.get(valueOf(name, traitPlaces[name]));
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Matches an XDP program: its mode and, in output without -d, its id. */
const xdpWord = / xdp(?:generic|offload|multi)?(?:\/id:\d+)?(?: |$)/;

/** Reads a line of `ip -d link`: a link's flags, or the words after "bridge" or "bridge_slave". */
export function traitsOfLine(line: string): LinkTraits {
  const [, flags] = /^\d+: [^\s:]+: <([^>]*)>/.exec(line) ?? [];
  const set = flags?.split(',');
  if (set)
    return traitsOf((name, place) =>
      place === 'flags' ? set.includes(name) : place === 'link' ? xdpWord.test(line) || undefined : undefined,
    );
  const [kind, ...words] = line.split(' ');
  const shown = kind === 'bridge_slave' ? 'info_slave_data' : kind === 'bridge' ? 'info_data' : undefined;
  return traitsOf((name, place) =>
    place === shown && words.includes(name) ? words[words.indexOf(name) + 1] : undefined,
  );
}

export interface LinkAddress {
  readonly family: Family;
  readonly address: Address;
  readonly prefixLength: number;
  /** "global", "link" or "host"; undefined means global. */
  readonly scope?: string | undefined;
  /** The preferred lifetime is over, so the kernel sends from another address if there is one. */
  readonly isDeprecated?: boolean | undefined;
  /** Duplicate address detection has not finished or has failed, so another host may have the address. */
  readonly isTentative?: boolean | undefined;
  readonly origin?: Origin | undefined;
}

/** Formats the input of `ip -batch` that makes these links. The links stay down, because Linux treats their addresses as local anyway. */
export function formatLinks(links: readonly Link[]): string {
  return links
    .flatMap(({ name, kind, addresses }) => [
      kind === undefined ? '' : `link add ${name} type ${kind}\n`,
      ...addresses.map((address) => formatAddressAdd(name, address)),
    ])
    .join('');
}

function formatAddressAdd(link: string, address: LinkAddress): string {
  const { scope } = address;
  return `addr add ${prefixOf(address)} dev ${link}${scope === undefined || scope === 'global' ? '' : ` scope ${scope}`}\n`;
}

function prefixOf({ address, prefixLength }: LinkAddress): string {
  return `${address.text}/${prefixLength}`;
}

interface ParsedLinks {
  readonly links: readonly Link[];
  readonly unread: readonly UnreadLine[];
}

/** Reads `ip -j addr` (-d for kinds of links) in its order. Malformed parts go to `unread`, at line 1 if the line is unknown. */
export function parseIpAddrJson(text: string): ParsedLinks {
  let items: unknown;
  let reason: LineFault = 'no-json';
  try {
    items = parseIpJson(text);
  } catch (error) {
    if (error instanceof TooLong) reason = 'too-long';
  }
  if (!Array.isArray(items)) return { links: [], unread: [{ line: 1, text: text.slice(0, 80), reason }] };
  const links: Link[] = [];
  const unread = new UnreadLines();
  const refuse = (why: LineFault): void => {
    unread.add(1, () => text.slice(0, 80), why);
  };
  for (const item of items as readonly unknown[]) {
    const name = fieldIn(item, 'ifname');
    if (!isLinkName(name)) {
      // `ip -j addr show dev X` prints empty objects for other links.
      if (!isObject(item) || Object.keys(item).length > 0) refuse('no-name');
      continue;
    }
    const info = fieldIn(item, 'linkinfo');
    const kind = fieldIn(info, 'info_kind');
    const master = fieldIn(item, 'master');
    const flags = fieldIn(item, 'flags');
    const traits = traitsOf((trait, place) => {
      if (place === 'link') return isObject(fieldIn(item, trait)) || undefined;
      if (place !== 'flags') return fieldIn(fieldIn(info, place), trait);
      return Array.isArray(flags) && flags.length > 0 ? flags.includes(trait) : undefined;
    });
    const tunnel = readTunnel(kind, (each) => fieldIn(fieldIn(info, 'info_data'), each));
    const infos = fieldIn(item, 'addr_info');
    const addresses: LinkAddress[] = [];
    for (const each of Array.isArray(infos) ? (infos as readonly unknown[]) : []) {
      const address = readAddressInfo(each);
      if (address) addresses.push(address);
      else refuse('no-prefix');
    }
    links.push({
      name,
      kind: isLinkName(kind) ? kind : undefined,
      ...(isLinkName(master) ? { master } : {}),
      traits,
      ...(tunnel ? { tunnel } : {}),
      addresses,
    });
  }
  return { links, unread: unread.all };
}

export function formatIpAddrJson(links: readonly Link[]): string {
  const items = links.map(({ name, kind, master, traits = {}, tunnel, addresses }) => ({
    ifname: name,
    flags: linkTraits.filter((trait) => traitPlaces[trait] === 'flags' && traits[trait]),
    master,
    xdp: traits.xdp === true ? {} : undefined,
    linkinfo: {
      info_kind: kind,
      info_data: tunnel ? formatTunnel(tunnel) : traitsAt('info_data', traits),
      info_slave_data: traitsAt('info_slave_data', traits),
    },
    addr_info: addresses.map(({ family, address, prefixLength, scope = 'global', isDeprecated, isTentative }) => ({
      family: family === 'ipv4' ? 'inet' : 'inet6',
      local: address.text,
      prefixlen: prefixLength,
      scope,
      deprecated: isDeprecated,
      tentative: isTentative,
    })),
  }));
  return JSON.stringify(items);
}

function traitsAt(place: 'info_data' | 'info_slave_data', traits: LinkTraits): LinkTraits | undefined {
  const own = Object.entries(traits).filter(([name]) => traitPlaces[name as LinkTrait] === place);
  return own.length > 0 ? Object.fromEntries(own) : undefined;
}

export function addressesOn(links: readonly Link[]): ReadonlySet<string> {
  return new Set(links.flatMap(({ addresses }) => addresses.map(({ address }) => address.text)));
}

/** Reports whether a link's name is safe in a line for `ip`. Linux allows no blanks or slashes in names. */
function isLinkName(name: unknown): name is string {
  return typeof name === 'string' && /^[^\s/]+$/.test(name);
}

function readAddressInfo(info: unknown): LinkAddress | undefined {
  const scope = fieldIn(info, 'scope');
  const made = makeLinkAddress(
    fieldIn(info, 'local'),
    fieldIn(info, 'prefixlen'),
    isLinkName(scope) ? scope : undefined,
  );
  return made && { ...made, ...addressFlags((flag) => fieldIn(info, flag) === true) };
}

export function addressFlags(has: (flag: string) => boolean): Pick<LinkAddress, 'isDeprecated' | 'isTentative'> {
  return {
    ...(has('deprecated') ? { isDeprecated: true } : {}),
    // The kernel already uses an optimistic address (ipv6_dev_get_saddr).
    ...(has('tentative') && !has('optimistic') ? { isTentative: true } : {}),
  };
}

export function makeLinkAddress(text: unknown, length: unknown, scope: string | undefined): LinkAddress | undefined {
  const address = typeof text === 'string' ? parseAddress(text) : undefined;
  const prefixLength = Number.isInteger(length) ? Number(length) : -1;
  if (!address || prefixLength < 0 || prefixLength > addressBits[address.family]) return undefined;
  return { family: address.family, address, prefixLength, scope: scope === 'global' ? undefined : scope };
}

function fieldIn(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}

interface DraftLink {
  readonly name: string;
  kind?: string | undefined;
  readonly addresses: LinkAddress[];
}

export function parseIpBatch(text: string): ParsedLinks {
  const links = new Map<string, DraftLink>();
  const linkOf = (name: string): DraftLink => {
    const link = links.get(name) ?? { name, addresses: [] };
    links.set(name, link);
    return link;
  };
  const unread = readLines(text, ['#'], (line) => {
    const [, made, kind] = /^link add (\S+) type (\S+)$/.exec(line) ?? [];
    const [, address, length, name, scope] =
      /^addr add ([^\s/]+)\/(\d{1,3}) dev (\S+)(?: scope (\S+))?$/.exec(line) ?? [];
    if (made !== undefined) linkOf(made).kind = kind;
    else if (name === undefined) return 'other-line';
    else {
      const added = makeLinkAddress(address, Number(length), scope);
      if (!added) return 'no-prefix';
      linkOf(name).addresses.push(added);
    }
    return undefined;
  });
  return { links: [...links.values()], unread };
}

/** A change to a link or one address. kpc never makes a link of unknown kind, so such a link must already exist. */
export type LinkChange =
  ({ readonly kind: 'link' } & Pair<Link>) | ({ readonly kind: 'address'; readonly link: string } & Pair<LinkAddress>);

/** Finds the changes between two lists of links. If one side does not know a link's kind, the kinds count as equal. */
export function diffLinks(from: readonly Link[], to: readonly Link[]): readonly LinkChange[] {
  return pairUp(from, to, ({ name }) => name).flatMap((pair): readonly LinkChange[] => {
    const { from: old, to: link } = pair;
    if (!old || !link) return [{ kind: 'link', ...pair }];
    const isRemade = old.kind !== undefined && link.kind !== undefined && old.kind !== link.kind;
    return isRemade
      ? [
          { kind: 'link', from: old, to: undefined },
          { kind: 'link', from: undefined, to: link },
        ]
      : diffAddresses(old, link);
  });
}

/** Removes addresses first, because the kernel refuses to add an existing address with another scope. */
function diffAddresses(from: Link, { name: link, addresses }: Link): readonly LinkChange[] {
  const keyOf = (address: LinkAddress): string => `${prefixOf(address)} ${address.scope ?? 'global'}`;
  const { added, removed } = diffByKey(from.addresses, addresses, keyOf);
  return [
    ...removed.map((address): LinkChange => ({ kind: 'address', link, from: address, to: undefined })),
    ...added.map((address): LinkChange => ({ kind: 'address', link, from: undefined, to: address })),
  ];
}

/**
 * Splits changes into additions and removals. If a link replaces another with the same name, the additions include the removal of the old
 * link.
 */
export function splitLinksDelta(changes: readonly LinkChange[]): Split<LinkChange> {
  const made = new Set(changes.filter(({ to }) => to).map(nameOfLinkChange));
  return partition(changes, (change) => !change.to && !made.has(nameOfLinkChange(change)));
}

function nameOfLinkChange(change: LinkChange): string {
  return change.kind === 'address' ? `${change.link} ${prefixOf(itemOf(change))}` : itemOf(change).name;
}

/** Formats the input of `ip -batch`; '' for no changes. */
export function formatLinksDelta(changes: readonly LinkChange[]): string {
  return changes.map(formatLinkChange).join('');
}

function formatLinkChange(change: LinkChange): string {
  if (change.kind === 'link') return change.to ? formatLinks([change.to]) : `link del ${change.from.name}\n`;
  const { link, from, to } = change;
  return to ? formatAddressAdd(link, to) : `addr del ${prefixOf(from)} dev ${link}\n`;
}
