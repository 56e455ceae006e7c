// Dumps a node's state as a bundle, with everything else that affects its packets: rules of other programs, routes and sysctls.
import type { BundleContent } from '../../bundle/make-bundle.ts';
import { indexCluster } from '../../cluster/address-index.ts';
import { families, loopbackAddresses } from '../../kernel/address.ts';
import { formatSets, parseIpsetSave, splitSetWords } from '../../kernel/ipset/ipset.ts';
import type { SetEntry } from '../../kernel/ipset/set-entry.ts';
import { familyOfPlace, hasRules, type RulesPlace, rulesPlaces } from '../../kernel/iptables/iptables-delta.ts';
import {
  type Chain,
  formatChains,
  isBuiltInChain,
  type TableName,
  tableNames,
} from '../../kernel/iptables/iptables.ts';
import { isBaseOfIptables } from '../../kernel/iptables/native-rules.ts';
import { formatIpAddrJson } from '../../kernel/link/link.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { parseBaseChain } from '../../kernel/nftables/parse-text.ts';
import { isLearned, type NftTable } from '../../kernel/nftables/table.ts';
import { emptyState, jumpChain, type KernelState, restrictState } from '../../kernel/state.ts';
import {
  acceptsMark,
  answersForNeighbours,
  answersForOthers,
  forceForwarding,
  formatSysctls,
  forwardingSysctls,
  ignoresEcho,
  sysctlOfLink,
  sysctlPath,
} from '../../kernel/sysctls-and-modules.ts';
import { classifyChain, isKnownJump } from '../../kube-proxy/chains.ts';
import { weighEvidence } from '../../kube-proxy/evidence.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import { modeFacts, programs, type ProxyMode, proxyModes } from '../../kube-proxy/modes.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { defaultSettings } from '../../settings/table.ts';
import type { Host, ToolCommand } from '../node/host.ts';
import { neededOf, parseReading, type ReadingScope, readWholeNode } from '../node/node-reading.ts';
import { isKeptWhole, Room, tooLarge } from '../node/output.ts';
import { faultOfLines, readVariants, readWith, toolNames, variantOfPlace, type Variants } from '../node/tools.ts';
import { decideOwnership } from '../plan/ownership.ts';
import { Failure } from '../state/failure.ts';
import { ownershipOf } from '../state/owned-names.ts';
import { readRecord } from '../state/record.ts';
import { remark, type Session } from './observe-node.ts';

// Lists other programs' nftables tables, for a dump.

/** Limit on each tool's output, in bytes. A node with all Internet routes prints more, but none of these routes leads to a pod. */
const mostListed = 8 * 2 ** 20;

const listRuleset = ['-s', 'list', 'ruleset'];

/**
 * Lists the nftables tables in the kernel's order. Leaves out the content of kube-proxy's tables, and of tables that iptables-nft-save
 * prints, unless nft added lines that iptables-save hides or misprints.
 */
async function listOtherTables(host: Host, iptables: KernelState['iptables'], variants: Variants): Promise<string> {
  const savedAs = (word: string, name: string): TableName | undefined => {
    const family = families.find((each) => nftFamily[each] === word);
    const table = tableNames.find((each) => each === name);
    const place = rulesPlaces.find(
      (each) => familyOfPlace(each) === family && variantOfPlace(each, variants) === 'nft',
    );
    return table && place && iptables[place]?.[table] && table;
  };
  const changed = new Set<string>();
  const list = (looks: boolean): Promise<string> => {
    let [isKept, table, chain] = [false, '', ''];
    let saved: TableName | undefined;
    const keeps = (line: string): boolean => {
      const [, word, name] = /^table (\S+) (\S+) \{/.exec(line) ?? [];
      if (word !== undefined && name !== undefined) {
        table = `${word} ${name}`;
        saved = savedAs(word, name);
        isKept = changed.has(table) || !(saved ?? (isKubeProxyTable(name) && ownFamilies.has(word)));
      }
      chain = /^\tchain (\S+) \{/.exec(line)?.[1] ?? chain;
      if (looks && saved && isOfNftOnly(saved, chain, line)) changed.add(table);
      return isKept || word !== undefined || line === '}';
    };
    return listWith(host, { tool: 'nft', args: listRuleset, keeps }, linesOfTable);
  };
  const first = await list(true);
  const text = changed.size === 0 ? first : await list(false);
  return text.split('\n').map(withoutComments).join('\n');
}

const ownFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

/** Reports whether iptables-save hides or may misprint a line of a chain: a base chain made by nft, a set, a map or a range. */
function isOfNftOnly(table: TableName, chain: string, line: string): boolean {
  if (!/^\t\ttype \w+ hook /.test(line)) return /^\t\t.*(?:[@{]|\d-\d)/.test(withoutComments(line));
  return !isBaseOfIptables(table, { name: chain, base: parseBaseChain(line) });
}

function listWith(host: Host, command: Omit<ToolCommand, 'room'>, expected: RegExp): Promise<string> {
  const findFault = (printed: string) => faultOfLines(printed.split('\n'), expected);
  return readWith(host, { ...command, room: new Room(mostListed) }, findFault);
}

/** Removes comments. Replaces the line with "..." if its quotes do not pair up, because nft does not escape quotes. */
function withoutComments(line: string): string {
  const [first = '', ...others] = line.split(/[ \t]comment "/);
  const plain = [first, ...others.map((each) => each.slice(each.indexOf('"') + 1))].join('');
  const isPlain = others.every((each) => each.includes('"')) && plain.split('"').length % 2 === 1;
  return isPlain ? plain : `${/^\t*/.exec(line)?.[0] ?? ''}...`;
}

const linesOfTable = /^(?:table (?:ip6?|inet|arp|bridge|netdev) \S+ \{.*|\t.*|\})?$/;

export async function dumpNode(session: Session, nodeName: string): Promise<Omit<BundleContent, 'kpcVersion'>> {
  const { host, folder, onEvent } = session;
  const record = await readRecord(host, folder);
  const names = proxyModes.flatMap((mode) => modeFacts[mode].sysctls);
  const leftOut = new Map<string, Failure>();
  const variants = await readVariants(host);
  const lacking = new Set<RulesPlace>();
  const reading = await readWholeNode(host, {
    needed: neededOf(emptyState, record.owned, variants),
    variants,
    onLeftOut: (failure, tool) => void leftOut.set(tool, failure),
    timeouts: true,
    roomForOthers: limitListings(lacking),
    settings: names.map(sysctlPath),
  });
  for (const { finding } of leftOut.values()) onEvent(remark('dump-lacks', { failure: finding, isForeign: false }));
  const present = parseReading(reading);
  const ownership = decideOwnership(present, emptyState, { owned: record.owned, variants, adopt: true, excluded: [] });
  const evidence = weighEvidence(present);
  const owned = restrictState(present, {
    ...ownershipOf(ownership.owned, variants),
    // A dump removes nothing, so it may include chains that a kubelet made under kube-proxy's names.
    chain: isDumped,
    jump: (rule, chain, table) =>
      evidence.jump(table, chain, rule) === 'certain' && isDumped(jumpChain(rule) ?? '', table),
  });
  const mode = modeOfDump(owned);
  const sysctls = modeFacts[mode].sysctls.map((name) => [name, reading.settings[sysctlPath(name)]] as const);
  const hostLinks = present.links.filter((link) => link.name !== serviceLink);
  const hostAddresses = hostLinks.flatMap((link) => link.addresses.map(({ address }) => address));
  // Rules that have no file in this mode go to network.txt.
  const { ipv4, ipv6 } = programs(mode, 'iptables') ? owned.iptables : emptyState.iptables;
  const state: KernelState = {
    ...owned,
    iptables: { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }) },
    sets: programs(mode, 'sets') ? owned.sets : [],
    nftables: owned.nftables.map(forgetLearned),
    sysctls: new Map(sysctls.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
  };
  return {
    state,
    cluster: indexCluster({ services: [], servicePorts: [], healthChecks: [], serviceCidrs: [] }),
    node: { name: nodeName, zone: '', podCIDRs: [], nodeIPs: loopbackAddresses, hostAddresses },
    settings: { ...defaultSettings(mode), release: newestRelease },
    families: families.filter(
      (family) => hasRules(state.iptables[family] ?? {}) || state.nftables.some((table) => table.family === family),
    ),
    assigned: [],
    dumped: true,
    network: await listNetwork(
      host,
      { ...present, dumped: state, variants, lacking, needsTables: programs(mode, 'nftables') },
      ({ finding }, isForeign) => onEvent(remark('dump-lacks', { failure: finding, isForeign })),
    ),
  };
}

function limitListings(lacking: Set<RulesPlace>): ReadingScope['roomForOthers'] {
  return (place) => {
    const room = new Room(mostListed);
    lacking.delete(place);
    return (bytes) => {
      const fits = room.take(bytes);
      if (!fits) lacking.add(place);
      return fits;
    };
  };
}

function modeOfDump({ nftables, links, virtualServers }: KernelState): ProxyMode {
  // In any other mode, kube-proxy deletes its nftables tables when it starts.
  if (nftables.length > 0) return 'nftables';
  return links.length > 0 || virtualServers.length > 0 ? 'ipvs' : 'iptables';
}

function forgetLearned(table: NftTable): NftTable {
  const sets = [...table.sets].map(([name, set]) => [name, isLearned(set) ? { ...set, elements: [] } : set] as const);
  return { ...table, sets: new Map(sets) };
}

function isDumped(chain: string, table: TableName): boolean {
  const kind = classifyChain(table, chain);
  return kind !== undefined && kind !== 'canary';
}

const listings = [
  ['route', 'show', 'table', 'all'],
  ['-6', 'route', 'show', 'table', 'all'],
  ['rule'],
  ['-6', 'rule'],
  // Addresses for which the node answers ARP or NDP by proxy.
  ['neigh', 'show', 'proxy'],
] as const;

const sysctlsOfNode: readonly string[] = [
  ...Object.values(forwardingSysctls),
  ...Object.values(ignoresEcho),
  'net.bridge.bridge-nf-call-iptables',
  'net.bridge.bridge-nf-call-ip6tables',
  acceptsMark,
];
const sysctlsOfLink = [
  ...(['rp_filter', 'forwarding', 'route_localnet', 'accept_local', 'src_valid_mark', 'send_redirects'] as const),
  ...(['arp_ignore', 'arp_filter'] as const),
];

interface Dumped extends Pick<KernelState, 'links' | 'iptables'> {
  readonly dumped: Pick<KernelState, 'iptables' | 'sets'>;
  readonly variants: Variants;
  readonly lacking: ReadonlySet<RulesPlace>;
  readonly needsTables: boolean;
}

/**
 * Returns the text of network.txt: everything besides kube-proxy's rules that affects packets. Omits comments and secrets (aliases and keys
 * of links).
 */
async function listNetwork(
  host: Host,
  node: Dumped,
  onLeftOut: (failure: Failure, isForeign: boolean) => void,
): Promise<string> {
  const { links, iptables, variants, lacking, needsTables } = node;
  const attempt = async (
    read: () => Promise<string>,
    { isForeign = false, isNeeded = true } = {},
  ): Promise<string | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (isNeeded || error.code !== 'tool-missing') onLeftOut(error, isForeign);
      return undefined;
    }
  };
  const prompted = (prompt: string, text: string | undefined): string =>
    text === undefined ? '' : `$ ${prompt}\n${text}`;
  const rules = rulesPlaces.map((place) => {
    const prompt = `${toolNames[familyOfPlace(place)]}-${variantOfPlace(place, variants)}-save`;
    if (lacking.has(place)) onLeftOut(tooLarge({ problem: 'output', command: prompt }, new Room(mostListed)), true);
    const text = formatLacking(node, place, lacking.has(place) ? isKeptWhole : () => true);
    return prompted(prompt, text === '' ? undefined : text);
  });
  const routes = listings.map(async (args) =>
    prompted(
      `ip ${args.join(' ')}`,
      await attempt(() => readWith(host, { tool: 'ip', args, room: new Room(mostListed) })),
    ),
  );
  const policies = attempt(() => listPolicies(host)).then((text) =>
    text === '' ? '' : prompted('ip xfrm policy', text),
  );
  const tables = attempt(() => listOtherTables(host, iptables, variants), {
    isForeign: true,
    isNeeded: needsTables,
  }).then((text) => prompted('nft list ruleset', text));
  const sets = attempt(() => listOtherSets(host, node.dumped.sets), { isForeign: true, isNeeded: false }).then(
    (text) => (text === '' ? '' : prompted('ipset save', text)),
  );
  const read = [...rules, ...(await Promise.all([...routes, policies, tables, sets]))];
  const sysctls = await readSysctls(host, [
    ...sysctlsOfNode,
    ...['all', ...links.map(({ name }) => name)].flatMap((link) => [
      ...sysctlsOfLink.map((key) => sysctlOfLink(link, key)),
      forceForwarding(link),
      answersForNeighbours(link),
      ...Object.values(answersForOthers(link)),
    ]),
  ]);
  return [...read, `$ ip -j -d addr\n${formatIpAddrJson(links)}\n`, `$ sysctl -a\n${formatSysctls(sysctls)}`].join('');
}

function formatLacking(
  { dumped, iptables }: Dumped,
  place: RulesPlace,
  isWhole: (table: TableName, chain: string) => boolean,
): string {
  const isLacking = (table: TableName, { name }: Chain): boolean =>
    isWhole(table, name) && (isBuiltInChain(table, name) || !dumped.iptables[place]?.[table]?.has(name));
  return formatChains(iptables[place] ?? {}, isLacking, isKnownJump);
}

async function listOtherSets(host: Host, dumped: KernelState['sets']): Promise<string> {
  // Running ipset would load its module.
  if ((await host.list('/sys/module/ip_set')).length === 0) return '';
  const own = new Set(dumped.map(({ name }) => name));
  const keeps = (line: string): boolean => !own.has(splitSetWords(line)?.[1] ?? '');
  const text = await listWith(host, { tool: 'ipset', args: ['save'], keeps }, /^(?:create|add) \S+ \S/);
  const sets = parseIpsetSave(text).sets.map((set) => ({ ...set, entries: set.entries.map(withoutComment) }));
  return formatSets(sets);
}

/** Lists the IPsec policies; "" without any. Looks for the module's netlink socket first, because ip would load the module. */
async function listPolicies(host: Host): Promise<string> {
  const isThere = /^[\da-f]+ +6 /m.test((await host.readFile('/proc/net/netlink')) ?? '');
  const args = ['xfrm', 'policy'];
  return isThere ? readWith(host, { tool: 'ip', args, room: new Room(mostListed) }) : '';
}

function withoutComment({ options, ...entry }: SetEntry): SetEntry {
  const at = options?.indexOf('comment') ?? -1;
  const others = options && at >= 0 ? options.toSpliced(at, 2) : options;
  return others === undefined || others.length === 0 ? entry : { ...entry, options: others };
}

async function readSysctls(host: Host, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const values = await Promise.all(names.map((name) => host.readFile(sysctlPath(name))));
  return new Map(
    names.flatMap((name, at) => {
      const value = values[at]?.trim() ?? '';
      return /^\d+$/.test(value) ? [[name, value] as const] : [];
    }),
  );
}
