import { findChangedLines } from '../../base/changed-lines.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { families, type Family } from '../../kernel/family.ts';
import { crowdedChains, isServiceChainName, serviceChainPattern } from '../../kube-proxy/chains.ts';
import { focusOnNftTables, type NftFocus } from './changed-nftables.ts';
import { chainKey, noBelongings, type Belongings } from '../state/belongings.ts';
import type { NodeReading } from '../node/node-reading.ts';
import type { Settled } from './settled-bundle.ts';

/**
 * What must be looked at, of a node and a bundle that were settled but for a few changes. The chains, virtual servers and
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
  /** The same with all in sight that differs between two readings; undefined where that is too much. */
  widen(before: Settled['reading'], after: NodeReading): Focus | undefined;
}

/** Names of what came into sight, as the lines of the tools have them. */
interface Sight {
  readonly chains: { readonly [F in Family]: ReadonlySet<string> };
  /** "-t 10.96.0.1:80". */
  readonly servers: ReadonlySet<string>;
  readonly sets: ReadonlySet<string>;
}

/** The texts of a reading or a bundle that are taken in part. */
interface Texts {
  readonly ipv4: string;
  readonly ipv6: string;
  readonly ipvsadm: string;
  readonly ipset: string;
}

/**
 * All in sight that differs between two bundles, and the virtual servers of these keys; undefined where that is too much.
 * `hasNftables`: whether the tables of nftables are still as the known bundle says; else they are in sight as a whole.
 */
export function focusOn(
  { bundle: known }: Settled,
  bundle: BundleFiles,
  virtualServers: readonly string[],
  hasNftables = false,
): Focus | undefined {
  const servers = new Set(virtualServers.map(serverOfKey));
  const start: Sight = { chains: { ipv4: new Set(), ipv6: new Set() }, servers, sets: new Set() };
  const sight = widenSight(start, textsOfBundle(known), textsOfBundle(bundle));
  const nftFile = 'nftables.nft';
  const nft = hasNftables ? focusOnNftTables(known.get(nftFile) ?? '', bundle.get(nftFile) ?? '') : undefined;
  return sight && makeFocus(sight, bundle, nft);
}

function textsOfBundle(files: BundleFiles): Texts {
  const read = (name: string) => files.get(name) ?? '';
  return {
    ipv4: read('iptables.restore'),
    ipv6: read('ip6tables.restore'),
    ipvsadm: read('ipvsadm.restore'),
    ipset: read('ipset.restore'),
  };
}

function textsOfNode({ iptables, ipvsadm, ipset }: Settled['reading']): Texts {
  return { ipv4: iptables.ipv4, ipv6: iptables.ipv6, ipvsadm, ipset };
}

function makeFocus(sight: Sight, bundle: BundleFiles, nft: NftFocus | undefined): Focus {
  let files: BundleFiles | undefined;
  return {
    cutsNftables: nft !== undefined,
    bundle() {
      const { ipv4, ipv6, ipvsadm, ipset } = pickTexts(sight, textsOfBundle(bundle));
      const picked = new Map<string, string>([
        ['iptables.restore', ipv4],
        ['ip6tables.restore', ipv6],
        ['ipvsadm.restore', ipvsadm],
        ['ipset.restore', ipset],
        ...(nft ? [['nftables.nft', nft.bundle] as const] : []),
      ]);
      return (files ??= new Map([...bundle].map(([name, text]) => [name, picked.get(name) ?? text])));
    },
    node(reading) {
      const { ipv4, ipv6, ipvsadm, ipset } = pickTexts(sight, textsOfNode(reading));
      const nftables = nft?.node(reading.nftables) ?? reading.nftables;
      return { ...reading, iptables: { ipv4, ipv6 }, nftables, ipvsadm, ipset };
    },
    aside: (owned) => pickAside(sight, owned),
    widen(before, after) {
      const wider = widenSight(sight, textsOfNode(before), textsOfNode(after));
      // Another text than that of a bundle is what nft listed, and that is looked at as a whole.
      const staying = nft?.node(after.nftables) ? nft : undefined;
      return wider === sight && staying === nft ? this : wider && makeFocus(wider, bundle, staying);
    },
  };
}

/** Undefined where the texts differ too much, or in more than what tables hold. */
function widenSight(sight: Sight, old: Texts, now: Texts): Sight | undefined {
  const [ipv4, ipv6] = [listChanged(old.ipv4, now.ipv4), listChanged(old.ipv6, now.ipv6)];
  const [ipvsadm, ipset] = [listChanged(old.ipvsadm, now.ipvsadm), listChanged(old.ipset, now.ipset)];
  if (!ipv4 || !ipv6 || !ipvsadm || !ipset) return undefined;
  const join = (known: ReadonlySet<string>, lines: readonly string[], nameOf: (line: string) => string) => {
    const names = lines.map(nameOf).filter((name) => !known.has(name));
    return names.length === 0 ? known : new Set([...known, ...names]);
  };
  const wider: Sight = {
    chains: { ipv4: join(sight.chains.ipv4, ipv4, chainOf), ipv6: join(sight.chains.ipv6, ipv6, chainOf) },
    servers: join(sight.servers, ipvsadm, serverOf),
    sets: join(sight.sets, ipset, setOf),
  };
  const isSame =
    families.every((family) => wider.chains[family] === sight.chains[family]) &&
    wider.servers === sight.servers &&
    wider.sets === sight.sets;
  return isSame ? sight : wider;
}

/** Undefined where tables came or went, too: a line is of the table that it stands in. */
function listChanged(old: string, now: string): readonly string[] | undefined {
  const changes = findChangedLines(old, now);
  const tablesOf = (lines: readonly string[]) =>
    lines.filter((line) => line.startsWith('*') || line === 'COMMIT').join();
  if (!changes?.every(({ removed, added }) => tablesOf(removed) === tablesOf(added))) return undefined;
  return changes.flatMap(({ removed, added }) => [...removed, ...added]).filter((line) => !isPassing(line));
}

/** Comments tell the time, and the kernel's own chains how much has passed; neither says anything of rules. */
function isPassing(line: string): boolean {
  return line.startsWith('#') || /^:[A-Z]+ [A-Z]+ \[\d+:\d+\]$/.test(line);
}

/** ":KUBE-SVC-… - [0:0]", "-A KUBE-SVC-… …" → "KUBE-SVC-…". */
function chainOf(line: string): string {
  return /^(?::|-\w )(\S+)/.exec(line)?.[1] ?? '';
}

/** "-a -t 10.96.0.1:80 -r …" → "-t 10.96.0.1:80". */
function serverOf(line: string): string {
  return line.split(' ', 3).slice(1).join(' ');
}

/** "add KUBE-CLUSTER-IP 10.96.0.1,tcp:80" → "KUBE-CLUSTER-IP". */
function setOf(line: string): string {
  return line.split(' ', 2)[1] ?? '';
}

function pickTexts({ chains, servers, sets }: Sight, { ipv4, ipv6, ipvsadm, ipset }: Texts): Texts {
  return {
    ipv4: pickChains(ipv4, chains.ipv4),
    ipv6: pickChains(ipv6, chains.ipv6),
    ipvsadm: pickLines(ipvsadm, '-[Aa] ', servers),
    ipset: pickLines(ipset, '(?:create|add) ', sets),
  };
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

const serviceChainKey = new RegExp(`^ipv[46] nat ${serviceChainPattern}$`);

function pickAside({ chains, servers, sets }: Sight, owned: Belongings): Belongings {
  const seen = new Set(families.flatMap((family) => [...chains[family]].map((name) => chainKey(family, 'nat', name))));
  return {
    ...noBelongings,
    chains: owned.chains.filter((key) => serviceChainKey.test(key) && !seen.has(key)),
    virtualServers: owned.virtualServers.filter((key) => !servers.has(serverOfKey(key))),
    sets: owned.sets.filter((name) => !sets.has(name)),
  };
}

/** "TCP 10.96.0.1 80" → "-t 10.96.0.1:80". */
function serverOfKey(key: string): string {
  const [protocol = '', address = '', port = ''] = key.split(' ');
  const flag = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' }[protocol] ?? '';
  return `${flag} ${address.includes(':') ? `[${address}]` : address}:${port}`;
}
