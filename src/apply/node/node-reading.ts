import type { OutputFault } from '../../base/findings/apply.ts';
import { families, type Family } from '../../kernel/address.ts';
import { parseBalancer } from '../../kernel/balancer/balancer.ts';
import { parseIpsetSave } from '../../kernel/ipset/ipset.ts';
import { parseIptablesSave, findHiddenTables, type RuleLinesByFamily } from '../../kernel/iptables/parse-save.ts';
import type { TableName } from '../../kernel/iptables/iptables.ts';
import { familyOfPlace, hasRules, rulesPlaces, type RulesPlace } from '../../kernel/iptables/iptables-delta.ts';
import { parseIpvsadm, type IpvsTimeouts } from '../../kernel/ipvs/ipvs.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { parseNftText } from '../../kernel/nftables/parse-text.ts';
import type { NftTable } from '../../kernel/nftables/table.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isKubeProxyTable, nftTableComment, nftTableName } from '../../kube-proxy/nft-table.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { isOfPlace, rulesKey } from '../state/owned-names.ts';
import { Failure } from '../state/failure.ts';
import { keepsRuleLines, keepsSetLines, mostRead, Room, type KeepsLine } from './output.ts';
import type { ToolCommand, Host } from './host.ts';
import {
  rulesTool,
  variantOfPlace,
  assertWhole,
  faultBetweenServers,
  faultBetweenSets,
  faultOfLinks,
  faultOfLines,
  faultOfNamedSets,
  faultOfRules,
  faultOfTable,
  mentionsTable,
  readWith,
  type Variants,
} from './tools.ts';
import { findModule, readModuleIndex } from './kernel-modules.ts';
import { readIpvsTable } from './open-traffic.ts';

export type ReadingPart = RulesPlace | `nft ${Family}` | 'ipset' | 'ipvsadm' | 'ipvs timeouts' | 'addresses';

/** A part is "" if the kernel cannot hold such objects. */
export type ReadingTexts = { readonly [P in ReadingPart]: string };

export interface NodeReading extends ReadingTexts {
  readonly settings: Readonly<Record<string, string>>;
  readonly variants: Variants;
  /** The balancer's file. Undefined if the file is missing or not kpc-apply's, or if an older kpc-apply read the node. */
  readonly balancer?: string | undefined;
}

export function textsBut(reading: ReadingTexts, changed: ReadonlySet<ReadingPart>): Partial<ReadingTexts> {
  const texts: { [P in ReadingPart]?: string } = { ...reading };
  for (const part of changed) delete texts[part];
  return texts;
}

export interface ReadingScope {
  /**
   * Parts that must be readable. Other rules and nftables tables count as empty if their tool is missing or fails. Any other part counts
   * as empty only if its tool is missing.
   */
  readonly needed: ReadonlySet<ReadingPart>;
  readonly variants: Variants;
  readonly timeouts: boolean;
  readonly settings: readonly string[];
  /** The text of /proc/net/ip_vs, if already read; null if IPVS is not in the kernel. */
  readonly ipvs?: string | null | undefined;
  /** Called for each listing. Returns a function that reports whether more bytes of other programs' rules fit. By default, none fit. */
  readonly roomForOthers?: ((place: RulesPlace) => (bytes: number) => boolean) | undefined;
  readonly onLeftOut?: ((failure: Failure, tool: string) => void) | undefined;
}

export function neededOf(
  { iptables, nftables, sets, virtualServers, links }: KernelState,
  owned: OwnedNames,
  variants: Variants,
): ReadonlySet<ReadingPart> {
  const isAny = (...lists: readonly (readonly unknown[])[]) => lists.some((list) => list.length > 0);
  const isWanted = (place: RulesPlace) => hasRules(iptables[place] ?? {});
  const isOwned = (place: RulesPlace) =>
    [...owned.chains, ...owned.jumps].some((key) => isOfPlace(key, rulesKey(place, variants)));
  const needed: readonly (readonly [ReadingPart, boolean])[] = [
    ...rulesPlaces.map((place) => [place, isWanted(place) || isOwned(place)] as const),
    ...families.map((family) => [`nft ${family}`, isAny(nftables, owned.nftTables)] as const),
    ['ipset', isAny(sets, owned.sets)],
    ['ipvsadm', isAny(virtualServers, owned.virtualServers)],
    ['addresses', isAny(links, owned.links, owned.addresses)],
  ];
  return new Set(needed.flatMap(([part, is]) => (is ? [part] : [])));
}

interface ReadNode {
  readonly host: Host;
  readonly scope: ReadingScope;
  readonly ipvs: string | undefined;
  readonly hasSets: boolean;
  readonly hasNftables: boolean;
  /** One memory limit for all parts, because other programs' rules may lengthen several parts at once. */
  readonly room: Room;
}

interface PartReader {
  readonly command: (variants: Variants) => ToolCommand;
  keepsLines?(scope: ReadingScope): KeepsLine;
  isThere?(node: ReadNode): boolean | Promise<boolean>;
  findFault(text: string): OutputFault | undefined;
  /** Compares the text with a second listing, because a listing cut off at a line end looks complete. */
  compare?(text: string, node: ReadNode): Promise<OutputFault | undefined>;
}

const listAddresses = { tool: 'ip', args: ['-j', '-d', 'addr'] };

const readers: { readonly [P in ReadingPart]: PartReader } = {
  ipv4: rulesReader('ipv4'),
  ipv6: rulesReader('ipv6'),
  'other ipv4': otherRulesReader('ipv4'),
  'other ipv6': otherRulesReader('ipv6'),
  'nft ipv4': nftReader('ipv4'),
  'nft ipv6': nftReader('ipv6'),
  ipset: {
    command: () => ({ tool: 'ipset', args: ['save'] }),
    keepsLines: keepsSetLines,
    isThere: ({ hasSets }) => hasSets,
    findFault: (text) => faultOfLines(text.split('\n'), /^(?:create|add) \S+ \S/),
    compare: async (saved, { host }) =>
      faultBetweenSets(saved, await readWith(host, { tool: 'ipset', args: ['list', '-t'] })),
  },
  ipvsadm: {
    command: () => ({ tool: 'ipvsadm', args: ['-Sn'] }),
    isThere: ({ ipvs }) => ipvs !== undefined,
    findFault: (text) => faultOfLines(text.split('\n'), /^-[Aa] -\S+ \S+ -\S/),
    compare: async (printed, { host, ipvs = '' }) =>
      faultBetweenServers(printed, ipvs) && faultBetweenServers(printed, (await readIpvsTable(host)) ?? ''),
  },
  'ipvs timeouts': {
    command: () => ({ tool: 'ipvsadm', args: ['-L', '--timeout'] }),
    isThere: ({ ipvs, scope }) => ipvs !== undefined && scope.timeouts,
    findFault: (text) => (parseTimeouts(text) && text.endsWith('\n') ? undefined : { kind: 'no-timeouts' }),
  },
  addresses: { command: () => listAddresses, findFault: faultOfLinks },
};

export const readingParts = Object.keys(readers) as readonly ReadingPart[];

function rulesReader(family: Family): PartReader {
  return {
    command: (variants) => ({ tool: rulesTool(family, 'save', variants), args: [] }),
    keepsLines: (scope) => keepsRuleLines(scope.roomForOthers?.(family)),
    findFault: (text) => faultOfRules(text, family),
    compare: (text, node) => findLeftOutTable(node, family, text),
  };
}

function otherRulesReader(family: Family): PartReader {
  const place = `other ${family}` as const;
  return {
    command: (variants) => ({ tool: rulesTool(place, 'save', variants), args: [] }),
    keepsLines: (scope) => keepsRuleLines(scope.roomForOthers?.(place)),
    async isThere({ host, scope, hasNftables }) {
      if (variantOfPlace(place, scope.variants) === 'nft') return hasNftables;
      return ((await host.readFile(tableLists[family])) ?? '').trim() !== '';
    },
    findFault: (text) => faultOfRules(text, family),
  };
}

/** Reads only kube-proxy's table, because others may be large. Reads text, because JSON lacks table comments and the dormant flag. */
function nftReader(family: Family): PartReader {
  const table = ['table', nftFamily[family], nftTableName];
  return {
    command: () => ({ tool: 'nft', args: ['-s', 'list', ...table] }),
    async isThere({ host, scope, hasNftables }) {
      if (!hasNftables || scope.needed.has(`nft ${family}`)) return hasNftables;
      return (await hasNftTable(host, family, nftTableName)) !== false;
    },
    findFault: (text) => faultOfTable(text, family),
  };
}

const noSuchTable = /^(?:\S+ )?Error: No such file or directory/;

/**
 * Reports whether a table exists; undefined if nft does not say. Lists only names of sets, because for most listings, even of tables, nft
 * first reads all elements or chains, perhaps millions. Test: apply/bounded-listings.test.ts.
 */
async function hasNftTable(host: Host, family: Family, table: string): Promise<boolean | undefined> {
  const args = ['-t', 'list', 'sets', 'table', nftFamily[family], table];
  const result = await host.run({ tool: 'nft', args, keeps: () => false });
  if (result.kind === 'missing') return undefined;
  if (result.status === 0) return true;
  return noSuchTable.test(result.stderr) ? false : undefined;
}

/** How many times to read two listings and compare them. Even two faultless listings differ if the node changed in between. */
const comparisons = 3;

/** Returns "" if the kernel has no such objects, or if the part cannot be read and is not needed (`ReadingScope.needed`). */
async function readNodePart(node: ReadNode, part: ReadingPart): Promise<string> {
  const { isThere, keepsLines, findFault, compare } = readers[part];
  const { host, scope, room } = node;
  const command = readers[part].command(scope.variants);
  if (isThere && !(await isThere(node))) return '';
  const nothing = command.tool === 'nft' ? noSuchTable : undefined;
  try {
    for (let turn = 1; ; turn++) {
      const text = await readWith(host, { ...command, keeps: keepsLines?.(scope), room }, findFault, nothing);
      const fault = await compare?.(text, node);
      if (fault === undefined || turn === comparisons) return assertWhole(command, text, fault);
      room.give(Buffer.byteLength(text));
    }
  } catch (error) {
    const mayFail = /^(?:nft|other) /.test(part) || part === 'ipv4' || part === 'ipv6';
    const isLeftOut = error instanceof Failure && !scope.needed.has(part) && (mayFail || error.code === 'tool-missing');
    if (!isLeftOut) throw error;
    scope.onLeftOut?.(error, command.tool);
    return '';
  }
}

/** Reads the unknown parts, with all tools at once, and the settings. Throws a Failure if a needed part cannot be read. */
export async function readWholeNode(
  host: Host,
  scope: ReadingScope,
  known?: Partial<ReadingTexts>,
): Promise<NodeReading> {
  const [ipvs, hasSets, hasNftables, settings] = await Promise.all([
    scope.ipvs === undefined ? readIpvsTable(host) : (scope.ipvs ?? undefined),
    host.list('/sys/module/ip_set').then((names) => names.length > 0),
    scope.needed.has('nft ipv4') || mayHaveNftables(host),
    readNumericSysctls(host, scope.settings),
  ]);
  const node: ReadNode = { host, scope, ipvs, hasSets, hasNftables, room: new Room(mostRead) };
  const read = readingParts.map(async (part) => [part, known?.[part] ?? (await readNodePart(node, part))] as const);
  const texts = Object.fromEntries(await Promise.all(read)) as ReadingTexts;
  for (const place of rulesPlaces) {
    const tool = rulesTool(place, 'save', scope.variants);
    const failure = findHiddenTable(texts[place], familyOfPlace(place), tool);
    if (failure && scope.needed.has(place)) throw failure;
    if (failure) scope.onLeftOut?.(failure, tool);
  }
  if (hasSets && known?.ipset === undefined) {
    const rules = rulesPlaces.map((place) => texts[place]).join('');
    assertWhole(readers.ipset.command(scope.variants), texts.ipset, faultOfNamedSets(rules, texts.ipset));
  }
  return { ...texts, settings, variants: scope.variants };
}

export function readAddressList(host: Host): Promise<string> {
  return readWith(host, listAddresses, faultOfLinks);
}

const tableLists: { readonly [F in Family]: string } = {
  ipv4: '/proc/net/ip_tables_names',
  ipv6: '/proc/net/ip6_tables_names',
};

/**
 * Checks for a table missing from the listing. (A listing cut off between two tables looks complete.) Checks other programs' tables too.
 */
async function findLeftOutTable(
  { host, scope, hasNftables }: ReadNode,
  family: Family,
  text: string,
): Promise<OutputFault | undefined> {
  const missing = usedTables.filter((table) => !mentionsTable(text, table));
  if (missing.length === 0 || !scope.needed.has(family)) return undefined;
  const lost = await (scope.variants[family] === 'nft' ? findNftTable() : findLegacyTable());
  return lost === undefined ? undefined : { kind: 'no-table', table: lost };

  async function findNftTable(): Promise<string | undefined> {
    if (!hasNftables) return undefined;
    for (const table of missing) if (await hasNftTable(host, family, table)) return table;
    return undefined;
  }

  async function findLegacyTable(): Promise<string | undefined> {
    const names = (await host.readFile(tableLists[family]))?.split('\n');
    return missing.find((table) => names?.includes(table));
  }
}

const usedTables: readonly TableName[] = ['filter', 'nat', 'mangle'];

/** Finds a table that iptables-save hides. Rules must not be added to it, because they could be neither checked nor restored. */
function findHiddenTable(output: string, family: Family, tool: string): Failure | undefined {
  const [table] =
    [...findHiddenTables(output)].find(([name, { isPart }]) => !isPart && usedTables.includes(name)) ?? [];
  if (table === undefined) return undefined;
  return new Failure('unreadable-node', { problem: 'hidden-table', command: tool, table, family: nftFamily[family] });
}

/** Reports whether nftables may hold tables. Does not run nft, because nft would load the module. */
async function mayHaveNftables(host: Host): Promise<boolean> {
  const place = findModule(await readModuleIndex(host, ['nf_tables']), 'nf_tables');
  return place !== 'loadable' && place !== 'missing';
}

async function readNumericSysctls(host: Host, paths: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const values = await Promise.all(paths.map((path) => host.readFile(path)));
  const settings: Record<string, string> = {};
  paths.forEach((path, i) => {
    const value = values[i];
    if (value === undefined) return;
    settings[path] = value.trim();
    // All sysctls that kpc-apply sets are numbers.
    if (/^-?\d+$/.test(settings[path])) return;
    throw new Failure('unreadable-node', { problem: 'no-number', path });
  });
  return settings;
}

/**
 * Parses what the tools printed, without sysctls and modules. A line that also occurs in `rules` becomes the same object, so comparing the
 * two costs nothing.
 */
export function parseReading(reading: NodeReading, rules?: RuleLinesByFamily): KernelState {
  const { ipset, ipvsadm, addresses } = reading;
  const others = rulesPlaces.flatMap((place) =>
    place.startsWith('other ') && reading[place] !== ''
      ? [[place, parseIptablesSave(reading[place]).tables] as const]
      : [],
  );
  const tablesOf = (family: Family) => parseIptablesSave(reading[family], { known: rules?.[family] }).tables;
  return {
    iptables: { ipv4: tablesOf('ipv4'), ipv6: tablesOf('ipv6'), ...Object.fromEntries(others) },
    nftables: families.flatMap((family) => parseNodeTables(reading[`nft ${family}`])),
    sets: parseIpsetSave(ipset).sets,
    virtualServers: parseIpvsadm(ipvsadm).virtualServers,
    proxyPorts: parseBalancer(reading.balancer ?? '').proxyPorts,
    links: parseIpAddrJson(addresses).links,
    ipvsTimeouts: parseTimeouts(reading['ipvs timeouts']),
    sysctls: new Map(),
    modules: [],
  };
}

/**
 * Reads kube-proxy's tables from nft's output. Marks a table as strange if kpc cannot read its content or its comment is not kube-proxy's.
 */
export function parseNodeTables(text: string): readonly NftTable[] {
  const { tables, unread } = parseNftText(text, (_, name) => isKubeProxyTable(name));
  const unreadHeads = [...new Set(unread.map((line) => line.text.split('{', 1).join('').trim()))];
  return tables.map((table) => {
    // nft cannot change a table's comment. A missing comment is fine, because kube-proxy writes none for old versions of nft.
    const isOther = table.comment !== undefined && table.comment !== nftTableComment;
    const heads = isOther ? [...unreadHeads, `comment ${JSON.stringify(table.comment)}`] : unreadHeads;
    return heads.length === 0 ? table : { ...table, strange: { heads, text } };
  });
}

/** Reads "Timeout (tcp tcpfin udp): 900 120 300". */
function parseTimeouts(text: string): IpvsTimeouts | undefined {
  const match = /:\s*(\d+)\s+(\d+)\s+(\d+)/.exec(text);
  return match ? { tcp: Number(match[1]), tcpFin: Number(match[2]), udp: Number(match[3]) } : undefined;
}
