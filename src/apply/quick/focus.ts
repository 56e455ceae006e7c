import { findChangedLines } from '../../base/changed-lines.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { families, type Family } from '../../kernel/family.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { nftTableName } from '../../kube-proxy/nft-names.ts';
import { crowdedChains, isServiceChainName, serviceChainPattern } from '../../kube-proxy/chains.ts';
import { noBelongings, type Belongings } from '../state/belongings.ts';
import type { NodeReading, ReadingTexts } from '../node/node-reading.ts';

/**
 * What must be looked at, of a node and a bundle that were settled except for a few changes. The chains, virtual servers and
 * sets that were on the node as the bundle said are so still where neither has changed: they are set aside, unread. All
 * else stays in sight: what changed on either side, and the chains that are not of one Service port.
 */
export interface Focus {
  /** The files with what is in sight. */
  bundle(): BundleFiles;
  node(reading: NodeReading): NodeReading;
  /** Whether only a part of the tables of nftables is in sight. */
  readonly cutsNftables: boolean;
  /** The part of what is ours that is set aside. */
  aside(owned: Belongings): Belongings;
  /** The same with all in sight that differs between two readings; undefined if that is too much. */
  widen(before: CutTexts, after: ReadingTexts): Focus | undefined;
}

/** The parts of a node that are taken line by line, with the bundle's files of the same. */
export const cutParts = ['ipv4', 'ipv6', 'ipset', 'ipvsadm'] as const;
type CutPart = (typeof cutParts)[number];

/** What the tools print of these parts, or the bundle's files. */
export type CutTexts = Pick<ReadingTexts, CutPart>;

const cuts: { readonly [P in CutPart]: Cut } = {
  ipv4: { file: 'iptables.restore', nameOf: chainOf, pick: pickChains },
  ipv6: { file: 'ip6tables.restore', nameOf: chainOf, pick: pickChains },
  ipset: {
    file: 'ipset.restore',
    // "add KUBE-CLUSTER-IP 10.96.0.1,tcp:80" → "KUBE-CLUSTER-IP".
    nameOf: (line) => line.split(' ', 2)[1] ?? '',
    pick: (text, names) => pickLines(text, '(?:create|add) ', names),
  },
  ipvsadm: {
    file: 'ipvsadm.restore',
    // "-a -t 10.96.0.1:80 -r …" → "-t 10.96.0.1:80".
    nameOf: (line) => line.split(' ', 3).slice(1).join(' '),
    pick: (text, names) => pickLines(text, '-[Aa] ', names),
  },
};

/** How a part is taken. */
interface Cut {
  readonly file: string;
  /** The chain, set or virtual server ("-t 10.96.0.1:80") that a line is of. */
  nameOf(line: string): string;
  /** What is in sight where these names are. */
  pick(text: string, names: ReadonlySet<string>): string;
}

/** Names of what came into sight, as the lines of the tools have them. */
type Sight = { readonly [P in CutPart]: ReadonlySet<string> };

/**
 * All in sight that differs between two bundles, and the virtual servers of these keys; undefined if that is too much.
 * `hasNftables`: whether the tables of nftables are still as the known bundle says; else they are in sight as a whole.
 */
export function focusOn(
  known: BundleFiles,
  bundle: BundleFiles,
  virtualServers: readonly string[],
  hasNftables = false,
): Focus | undefined {
  const none = new Set<string>();
  const start: Sight = { ipv4: none, ipv6: none, ipset: none, ipvsadm: new Set(virtualServers.map(serverOfKey)) };
  const sight = widenSight(start, textsOfBundle(known), textsOfBundle(bundle));
  const nftFile = 'nftables.nft';
  const nft = hasNftables ? focusOnNftTables(known.get(nftFile) ?? '', bundle.get(nftFile) ?? '') : undefined;
  return sight && makeFocus(sight, bundle, nft);
}

function mapCuts(textOf: (part: CutPart) => string): CutTexts {
  return { ipv4: textOf('ipv4'), ipv6: textOf('ipv6'), ipset: textOf('ipset'), ipvsadm: textOf('ipvsadm') };
}

function textsOfBundle(files: BundleFiles): CutTexts {
  return mapCuts((part) => files.get(cuts[part].file) ?? '');
}

function makeFocus(sight: Sight, bundle: BundleFiles, nft: NftFocus | undefined): Focus {
  const pick = (texts: CutTexts) => mapCuts((part) => cuts[part].pick(texts[part], sight[part]));
  let files: BundleFiles | undefined;
  return {
    cutsNftables: nft !== undefined,
    bundle() {
      const texts = pick(textsOfBundle(bundle));
      const picked = new Map(cutParts.map((part) => [cuts[part].file, texts[part]]));
      if (nft) picked.set('nftables.nft', nft.bundle);
      return (files ??= new Map([...bundle].map(([name, text]) => [name, picked.get(name) ?? text])));
    },
    node(reading) {
      const tables = nft?.node({ ipv4: reading['nft ipv4'], ipv6: reading['nft ipv6'] });
      const cut = tables && { 'nft ipv4': tables.ipv4, 'nft ipv6': tables.ipv6 };
      return { ...reading, ...pick(reading), ...cut };
    },
    aside: (owned) => ({
      ...noBelongings,
      chains: owned.chains.filter((key) => isAside(key, sight)),
      virtualServers: owned.virtualServers.filter((key) => !sight.ipvsadm.has(serverOfKey(key))),
      sets: owned.sets.filter((name) => !sight.ipset.has(name)),
    }),
    widen(before, after) {
      const wider = widenSight(sight, before, after);
      // Another text than that of a bundle is what nft listed, and that is looked at as a whole.
      const staying = nft?.node({ ipv4: after['nft ipv4'], ipv6: after['nft ipv6'] }) ? nft : undefined;
      return wider === sight && staying === nft ? this : wider && makeFocus(wider, bundle, staying);
    },
  };
}

/** Undefined if the texts differ too much, or in more than what tables hold. */
function widenSight(sight: Sight, old: CutTexts, now: CutTexts): Sight | undefined {
  const wider = { ...sight };
  for (const part of cutParts) {
    const lines = listChanged(old[part], now[part]);
    if (!lines) return undefined;
    const names = lines.map((line) => cuts[part].nameOf(line)).filter((name) => !sight[part].has(name));
    if (names.length > 0) wider[part] = new Set([...sight[part], ...names]);
  }
  return cutParts.every((part) => wider[part] === sight[part]) ? sight : wider;
}

/** Undefined also if tables came or went: a line belongs to the table that it is in. */
function listChanged(old: string, now: string): readonly string[] | undefined {
  const changes = findChangedLines(old, now);
  const tablesOf = (lines: readonly string[]) =>
    lines.filter((line) => line.startsWith('*') || line === 'COMMIT').join();
  if (!changes?.every(({ removed, added }) => tablesOf(removed) === tablesOf(added))) return undefined;
  return changes.flatMap(({ removed, added }) => [...removed, ...added]).filter((line) => !passing.test(line));
}

/** Comments hold the time, and the kernel's own chains counters; neither says anything about rules. */
const passing = /^#|^:[A-Z]+ [A-Z]+ \[\d+:\d+\]$/;

/** ":KUBE-SVC-… - [0:0]", "-A KUBE-SVC-… …" → "KUBE-SVC-…". */
function chainOf(line: string): string {
  return /^(?::|-\w )(\S+)/.exec(line)?.[1] ?? '';
}

/**
 * All but what is not in sight: the chains of Service ports, and of chains with rules for many Services the rules. The
 * kernel's own jump to these, so that they stay themselves. The text is long, so one regular expression goes through it:
 * V8 compiles that at once, where a loop would run slowly for as long as it lasts.
 */
function pickChains(text: string, names: ReadonlySet<string>): string {
  const long = crowdedChains.filter((name) => !names.has(name));
  const seen = [...names].filter((name) => isServiceChainName(name));
  const ofService = seen.length === 0 ? serviceChainPattern : `(?!(?:${seen.join('|')}) )${serviceChainPattern}`;
  const aside = `:${ofService}|-A (?:${[ofService, ...long].join('|')})`;
  // Not "^" and ".": of all that may end a line elsewhere, only one ends it here.
  return text.replace(new RegExp(`(?<![^\\n])(?:${aside}) [^\\n]*\\n?`, 'g'), '');
}

/** The lines that name one of these after their command. */
function pickLines(text: string, command: string, names: ReadonlySet<string>): string {
  if (names.size === 0 || text === '') return '';
  const escaped = [...names].map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return (text.match(new RegExp(`^${command}(?:${escaped.join('|')}) .*\\n`, 'gm')) ?? []).join('');
}

const serviceChainKey = new RegExp(`^(ipv[46]) nat (${serviceChainPattern})$`);

/** Whether a chain ("ipv4 nat KUBE-SVC-…") is of a Service port, and out of sight. */
function isAside(key: string, sight: Sight): boolean {
  const [, family, name = ''] = serviceChainKey.exec(key) ?? [];
  return family !== undefined && !sight[family === 'ipv6' ? 'ipv6' : 'ipv4'].has(name);
}

/** "TCP 10.96.0.1 80" → "-t 10.96.0.1:80". */
function serverOfKey(key: string): string {
  const [protocol = '', address = '', port = ''] = key.split(' ');
  const flag = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' }[protocol] ?? '';
  return `${flag} ${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** The tables of a bundle's nftables.nft, as text. '' for a family that has none. */
export type NftTexts = { readonly [F in Family]: string };

/** What of two versions of nftables.nft must be looked at: what differs, and the sets that it looks up. */
interface NftFocus {
  /** The new version with what is in sight. */
  readonly bundle: string;
  /** The same of a node's tables; undefined where these are neither the old version nor the new one. */
  readonly node: (tables: NftTexts) => NftTexts | undefined;
}

/**
 * Both versions as kpc writes them. Undefined if they differ too much, in more than what tables hold, or in what a set
 * is.
 */
function focusOnNftTables(old: string, now: string): NftFocus | undefined {
  const [before, after] = [splitTables(old), splitTables(now)];
  const [pickIPv4, pickIPv6] = families.map((family) => focusOnTable(family, before[family], after[family]));
  if (!pickIPv4 || !pickIPv6) return undefined;
  const node: NftFocus['node'] = (tables) => {
    const [ipv4, ipv6] = [pickIPv4(tables.ipv4), pickIPv6(tables.ipv6)];
    return ipv4 === undefined || ipv6 === undefined ? undefined : { ipv4, ipv6 };
  };
  return { bundle: `${pickIPv4(after.ipv4)}${pickIPv6(after.ipv6)}`, node };
}

/** The tables that a bundle's nftables.nft has, family by family. */
export function splitTables(text: string): NftTexts {
  const start = `table ${nftFamily.ipv6} ${nftTableName}\n`;
  const at = text.startsWith(start) ? 0 : text.indexOf(`\n${start}`) + 1 || text.length;
  return at === 0 ? { ipv4: '', ipv6: text } : { ipv4: text.slice(0, at), ipv6: text.slice(at) };
}

/** Chains and sets in sight ("chain services"), each with its elements that are. */
type NftSight = Map<string, Set<string>>;

/** Gives what picks from either version what is in sight. Undefined as above. */
function focusOnTable(
  family: Family,
  before: string,
  after: string,
): ((text: string) => string | undefined) | undefined {
  const sight: NftSight = new Map();
  const changes = findChangedLines(before, after);
  if (!changes) return undefined;
  for (const { at, newAt, removed, added } of changes) {
    if (!see(sight, before, at, removed) || !see(sight, after, newAt, added)) return undefined;
  }
  const changed = [...sight.keys()];
  for (const head of changed) {
    const [was, is] = [before, after].map((text) => pickBlock(text, head, new Set()));
    // To make a set anew, the rules of all chains that use it have to go first, and all its elements come again.
    if (!head.startsWith('chain ') && was !== '' && is !== '' && was !== is) return undefined;
    if (!head.startsWith('chain ')) continue;
    for (const [, set = ''] of `${was}${is}`.matchAll(/@(\S+)/g)) {
      for (const kind of ['set', 'map']) put(sight, `${kind} ${set}`);
    }
  }
  const pick = (text: string): string => {
    const blocks = [...sight].map(([head, elements]) => pickBlock(text, head, elements));
    return text === '' ? '' : `table ${nftFamily[family]} ${nftTableName} {\n${blocks.join('')}}\n`;
  };
  const picked = { before: pick(before), after: pick(after) };
  return (text) => (text === before ? picked.before : text === after ? picked.after : undefined);
}

/** Takes into sight what some lines of a text belong to. False if that is no chain and no set. */
function see(sight: NftSight, text: string, at: number, lines: readonly string[]): boolean {
  let elements = lines.length === 0 ? undefined : elementsAround(sight, text, at);
  for (const line of lines) {
    const head = headOf(line);
    if (head !== undefined) elements = put(sight, head);
    else if (line === '') elements = undefined;
    else if (!elements || !line.startsWith('\t')) return false;
    else if (line.startsWith('\t\t\t')) elements.add(line);
  }
  return true;
}

function put(sight: NftSight, head: string): Set<string> {
  const elements = sight.get(head) ?? new Set();
  sight.set(head, elements);
  return elements;
}

/** The chain or set whose block has the line. A block ends with an empty line. */
function elementsAround(sight: NftSight, text: string, at: number): Set<string> | undefined {
  const start = text.lastIndexOf('\n\n', at - 1) + 2;
  const head = start < 2 ? undefined : headOf(text.slice(start, text.indexOf('\n', start)));
  return head === undefined || start > at ? undefined : put(sight, head);
}

/** "\tchain services {" → "chain services". */
function headOf(line: string): string | undefined {
  return /^\t((?:chain|set|map) \S+) \{$/.exec(line)?.[1];
}

/** A chain or set, with no more than these elements; '' where the text has no such block. */
function pickBlock(text: string, head: string, elements: ReadonlySet<string>): string {
  const at = text.indexOf(`\n\t${head} {\n`) + 1;
  const block = at === 0 ? '' : text.slice(at, text.indexOf('\n\t}\n', at) + '\n\t}\n'.length);
  const start = block.indexOf('\n\t\telements = {\n');
  if (start < 0) return block;
  const own = [...elements].filter((line) => block.includes(`\n${line}\n`));
  const kept = own.length === 0 ? '' : `\t\telements = {\n${own.join('\n')}\n\t\t}\n`;
  return `${block.slice(0, start + 1)}${kept}\t}\n`;
}
