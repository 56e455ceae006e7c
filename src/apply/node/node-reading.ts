import { families, type Family } from '../../kernel/family.ts';
import { parseIpsetSave } from '../../kernel/ipset/ipset.ts';
import { parseIptablesSave, findHiddenTables, type RuleLinesByFamily } from '../../kernel/iptables/parse-save.ts';
import { tableNames, type TableName, type Tables } from '../../kernel/iptables/iptables.ts';
import { parseIpvsadm, type IpvsTimeouts } from '../../kernel/ipvs/ipvs.ts';
import { mapKinds, type ObjectKind } from '../../kernel/kinds.ts';
import { parseIpAddrJson } from '../../kernel/link/link.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { parseNftText } from '../../kernel/nftables/parse-text.ts';
import type { NftTable } from '../../kernel/nftables/table.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isKubeProxyTable, nftTableComment, nftTableName } from '../../kube-proxy/nftables.ts';
import { isOfFamily, type Belongings } from '../state/belongings.ts';
import { Failure } from '../state/failure.ts';
import { excerptOf, formatCommand, type Command, type CommandResult, type Host } from './host.ts';
import { findModule, readModuleIndex } from './kernel-modules.ts';
import { findNftTables } from './nft-netlink.ts';
import { readIpvsTable } from './open-traffic.ts';
import { isRefusal } from './capabilities.ts';
import {
  faultBetweenServers,
  faultBetweenSets,
  faultOfLinks,
  faultOfRules,
  faultOfServers,
  faultOfSets,
  faultOfTable,
  faultOfTimeouts,
  mentionsTable,
  setsInRules,
} from './cut-off-output.ts';

/**
 * What the tools print of a node, as they print it. '' for what is not in the kernel at all: it cannot hold anything.
 */
export interface NodeReading {
  readonly iptables: { readonly [F in Family]: string };
  /** What lists kube-proxy's tables. */
  readonly nftables: { readonly [F in Family]: string };
  readonly ipset: string;
  readonly ipvsadm: string;
  readonly ipvsTimeouts: string;
  readonly addresses: string;
  /** Files of /proc/sys and /sys that were asked for, and are there. */
  readonly settings: Readonly<Record<string, string>>;
}

/** What to read. */
export interface ReadingScope {
  /** What must be readable. Of the rest, what no tool is there for is taken to be empty: see neededParts. */
  readonly needed: ReadonlySet<ReadingPart>;
  /** Tables of iptables in which something is wanted or ours, as "ipv4 nat". */
  readonly tables: ReadonlySet<string>;
  /** Families whose tools may not fail, where they are there at all. */
  readonly families: readonly Family[];
  /** Whether nftables must be readable; else, what cannot be read is taken to be empty. */
  readonly nftables: boolean;
  /** Whether the timeouts of IPVS matter. */
  readonly timeouts: boolean;
  /** Files of settings. */
  readonly settings: readonly string[];
  /** What kube-proxy's tables of nftables hold, where that is known already. */
  readonly nftTables?: NodeReading['nftables'] | undefined;
  /** What iptables-save and ip6tables-save would print, where that is known already. */
  readonly rules?: NodeReading['iptables'] | undefined;
  /** What IPVS lists of itself, where that has been read; null where it is not in the kernel. */
  readonly ipvs?: string | null | undefined;
  /** Told of each tool that has left out its part. */
  readonly onLeftOut?: ((failure: Failure, tool: string) => void) | undefined;
}

/** What one tool tells of a node. */
export type ReadingPart = Family | `nft ${Family}` | 'ipset' | 'ipvsadm' | 'ipvs timeouts' | 'addresses';

/**
 * What a node must tell, of iptables, ipset, ipvsadm and ip: that of which something is wanted, or recorded as made. A node
 * has the tools of the modes that it is for, whatever modules its kernel has: other programs bring tools of their own.
 */
export function neededParts(
  { iptables, sets, virtualServers, links }: Pick<KernelState, 'iptables' | 'sets' | 'virtualServers' | 'links'>,
  owned: Belongings,
): ReadonlySet<ReadingPart> {
  const needed = new Set<ReadingPart>();
  for (const family of families) {
    const isWanted = Object.values(iptables[family] ?? {}).some((table) => table.size > 0);
    const isMade = [...owned.chains, ...owned.jumps].some((key) => isOfFamily(key, family));
    if (isWanted || isMade) needed.add(family);
  }
  if (sets.length > 0 || owned.sets.length > 0) needed.add('ipset');
  if (virtualServers.length > 0 || owned.virtualServers.length > 0) needed.add('ipvsadm');
  if (links.length > 0 || owned.links.length > 0 || owned.addresses.length > 0) needed.add('addresses');
  return needed;
}

/** The tables of iptables in which something is wanted, or recorded as made, as "ipv4 nat". */
export function neededTables({ iptables }: Pick<KernelState, 'iptables'>, owned: Belongings): ReadonlySet<string> {
  const wanted = families.flatMap((family) =>
    Object.entries(iptables[family] ?? {}).flatMap(([name, table]) => (table.size > 0 ? [`${family} ${name}`] : [])),
  );
  const made = [...owned.chains, ...owned.jumps].map((key) => key.split(' ', 2).join(' '));
  return new Set([...wanted, ...made]);
}

/** A reading to go by for all but the parts that may have changed since. */
export interface EarlierReading {
  readonly reading: NodeReading;
  readonly changed: ReadonlySet<ReadingPart>;
}

/** A node that is read, and what of it is in its kernel at all. */
interface ReadNode {
  readonly host: Host;
  readonly scope: ReadingScope;
  /** What IPVS lists of itself. */
  readonly ipvs: string | undefined;
  readonly hasSets: boolean;
  readonly hasNftables: boolean;
}

/** How one part of a node is read. */
interface PartReader {
  /** Where a reading has its text. */
  textOf(reading: NodeReading): string;
  read(node: ReadNode): Promise<string> | string;
}

const partReaders: { readonly [P in ReadingPart]: PartReader } = {
  ipv4: rulesReader('ipv4'),
  ipv6: rulesReader('ipv6'),
  'nft ipv4': nftReader('ipv4'),
  'nft ipv6': nftReader('ipv6'),
  ipset: {
    textOf: ({ ipset }) => ipset,
    read: ({ host, scope, hasSets }) => (hasSets ? readSets(host, scope) : ''),
  },
  ipvsadm: {
    textOf: ({ ipvsadm }) => ipvsadm,
    read: ({ host, scope, ipvs }) => (ipvs === undefined ? '' : readServers(host, ipvs, scope)),
  },
  'ipvs timeouts': {
    textOf: ({ ipvsTimeouts }) => ipvsTimeouts,
    read: ({ host, scope, ipvs }) =>
      ipvs !== undefined && scope.timeouts
        ? readPart(host, 'ipvsadm', { tool: 'ipvsadm', args: ['-L', '--timeout'] }, scope, faultOfTimeouts)
        : '',
  },
  addresses: {
    textOf: ({ addresses }) => addresses,
    read: ({ host }) => readAddresses(host),
  },
};

function rulesReader(family: Family): PartReader {
  return {
    textOf: ({ iptables }) => iptables[family],
    read: ({ host, scope, hasNftables }) =>
      readPart(host, family, { tool: saveTools[family], args: [] }, scope, async (text) => {
        const fault = faultOfRules(text, family);
        return fault ?? findLeftOutTable(host, family, text, { scope, hasNftables });
      }),
  };
}

function nftReader(family: Family): PartReader {
  return {
    textOf: ({ nftables }) => nftables[family],
    read: ({ host, scope, hasNftables }) => (hasNftables ? readNftTable(host, family, scope) : ''),
  };
}

/**
 * Reads the node: all tools at once, or, where there is an earlier reading, those of the parts that may have changed;
 * settings always. Throws a Failure where a tool does not do its part.
 */
export async function readNode(host: Host, scope: ReadingScope, earlier?: EarlierReading): Promise<NodeReading> {
  const [ipvs, hasSets, hasNftables] = await Promise.all([
    scope.ipvs === undefined ? readIpvsTable(host) : (scope.ipvs ?? undefined),
    host.list('/sys/module/ip_set').then((names) => names.length > 0),
    scope.nftables || earlier !== undefined || mayHaveNftables(host),
  ]);
  const node: ReadNode = { host, scope, ipvs, hasSets, hasNftables };
  const part = (name: ReadingPart): Promise<string> | string => {
    const { textOf, read } = partReaders[name];
    return earlier && !earlier.changed.has(name) ? textOf(earlier.reading) : read(node);
  };
  const [ipv4, ipv6, nft4, nft6, ipset, ipvsadm, ipvsTimeouts, addresses, settings] = await Promise.all([
    scope.rules?.ipv4 ?? part('ipv4'),
    scope.rules?.ipv6 ?? part('ipv6'),
    scope.nftTables?.ipv4 ?? part('nft ipv4'),
    scope.nftTables?.ipv6 ?? part('nft ipv6'),
    part('ipset'),
    part('ipvsadm'),
    part('ipvs timeouts'),
    part('addresses'),
    readSettings(host, scope.settings),
  ]);
  const iptables = { ipv4, ipv6 };
  for (const family of families) {
    const failure = findHiddenTable(iptables[family], family);
    if (failure && scope.needed.has(family)) throw failure;
    if (failure) scope.onLeftOut?.(failure, saveTools[family]);
  }
  if (hasSets && !(earlier && !earlier.changed.has('ipset'))) assertSetsOfRules(iptables, ipset);
  return {
    iptables,
    nftables: { ipv4: nft4, ipv6: nft6 },
    ipset,
    ipvsadm,
    ipvsTimeouts,
    addresses,
    settings,
  };
}

/** Why parts of a node cannot be read, as far as that is so: the parts whose tools do not do their work. */
export async function findUnreadable(host: Host, parts: readonly ReadingPart[]): Promise<readonly Failure[]> {
  const needed = new Set(parts);
  const scope = { needed, tables: new Set<string>(), families, nftables: false, timeouts: false, settings: [] };
  const node: ReadNode = { host, scope, ipvs: undefined, hasSets: true, hasNftables: false };
  const failures = await Promise.all(
    parts.map(async (part) => {
      try {
        const text = await partReaders[part].read(node);
        return part === 'ipv4' || part === 'ipv6' ? findHiddenTable(text, part) : undefined;
      } catch (error) {
        if (error instanceof Failure) return error;
        throw error;
      }
    }),
  );
  return failures.filter((failure) => failure !== undefined);
}

/** What prints the rules of a family. */
export const saveTools: { readonly [F in Family]: string } = { ipv4: 'iptables-save', ipv6: 'ip6tables-save' };

/**
 * Throws a Failure where a tool is not to be believed that will read these parts after a change, and that need not read them
 * before: asked for little, it must print that little whole.
 */
export async function assertReadable(
  host: Host,
  { iptables, nftables }: NodeReading,
  parts: ReadonlySet<ReadingPart>,
): Promise<void> {
  await Promise.all(
    families.flatMap((family) => [
      ...(parts.has(family) ? [tryRules(host, family, iptables[family])] : []),
      ...(parts.has(`nft ${family}`) && nftables[family] !== '' ? [tryTables(host, family)] : []),
    ]),
  );
}

/** By the shortest table that is there: to ask for one that is not would make it. */
async function tryRules(host: Host, family: Family, known: string): Promise<void> {
  const texts = known.split(/^(?=\*)/m).filter((text) => text.startsWith('*'));
  const [shortest] = texts.toSorted((a, b) => a.length - b.length);
  const table = tableNames.find((name) => shortest?.startsWith(`*${name}\n`));
  if (table === undefined) return;
  const command: Command = { tool: saveTools[family], args: ['-t', table] };
  await assertWhole(command, outputOf(command, await host.run(command)), (text) => {
    const fault = faultOfRules(text, family);
    return fault ?? (mentionsTable(text, table) ? undefined : `it lacks the table ${table}`);
  });
}

async function tryTables(host: Host, family: Family): Promise<void> {
  const command: Command = { tool: 'nft', args: ['list', 'tables', nftFamily[family]] };
  const line = `table ${nftFamily[family]} ${nftTableName}`;
  await assertWhole(command, outputOf(command, await host.run(command)), (text) =>
    text.endsWith('\n') && text.split('\n').includes(line) ? undefined : `it lacks the ${line}`,
  );
}

/** What is wrong with an output; see cut-off-output.ts. */
type FindFault = (text: string) => string | undefined | Promise<string | undefined>;

async function readPart(
  host: Host,
  part: ReadingPart,
  command: Command,
  scope: ReadingScope,
  findFault: FindFault,
): Promise<string> {
  const { needed, onLeftOut } = scope;
  const result = await host.run(command);
  try {
    return await assertWhole(command, outputOf(command, result), findFault);
  } catch (error) {
    const mayFail = (part === 'ipv4' || part === 'ipv6') && !scope.families.includes(part);
    if (!(error instanceof Failure) || needed.has(part) || (result.kind !== 'missing' && !mayFail)) throw error;
    onLeftOut?.(error, command.tool);
    return '';
  }
}

/** Gives the output. Throws a Failure for one that reports success, and is not whole. */
export async function assertWhole(command: Command, text: string, findFault: FindFault): Promise<string> {
  const fault = await findFault(text);
  if (fault === undefined) return text;
  throw new Failure(
    'unreadable-node',
    `"${formatCommand(command)}" exited with status 0, but its output is not whole: ${fault}`,
    `run it by hand to see what it prints; check that ${command.tool} is the real program`,
    command.tool,
  );
}

/** What `ip -j -d addr` prints. Throws a Failure where that is not whole. */
export async function readAddresses(host: Host): Promise<string> {
  const command: Command = { tool: 'ip', args: ['-j', '-d', 'addr'] };
  return assertWhole(command, outputOf(command, await host.run(command)), faultOfLinks);
}

/** How often two listings of the same are compared: what changes in between makes them differ, too. */
const comparisons = 3;

/** Asks twice, in two ways: a listing that was cut at the end of a line looks whole. */
async function readSets(host: Host, scope: ReadingScope): Promise<string> {
  const command: Command = { tool: 'ipset', args: ['save'] };
  for (let turn = 1; ; turn++) {
    const [saved, listed] = await Promise.all([
      readPart(host, 'ipset', command, scope, faultOfSets),
      readPart(
        host,
        'ipset',
        { tool: 'ipset', args: ['list', '-t'] },
        { ...scope, onLeftOut: undefined },
        () => undefined,
      ),
    ]);
    const fault = faultBetweenSets(saved, listed);
    if (fault === undefined || turn === comparisons) return assertWhole(command, saved, () => fault);
  }
}

/** Compares the list with the kernel's own: see readSets. */
async function readServers(host: Host, before: string, scope: ReadingScope): Promise<string> {
  const command: Command = { tool: 'ipvsadm', args: ['-Sn'] };
  let hasTool = true;
  const onLeftOut: ReadingScope['onLeftOut'] = (failure, tool) => {
    hasTool = false;
    scope.onLeftOut?.(failure, tool);
  };
  let table = before;
  for (let turn = 1; ; turn++) {
    const printed = await readPart(host, 'ipvsadm', command, { ...scope, onLeftOut }, faultOfServers);
    const fault = hasTool ? faultBetweenServers(printed, table) : undefined;
    if (fault === undefined || turn === comparisons) return assertWhole(command, printed, () => fault);
    table = (await readIpvsTable(host)) ?? '';
  }
}

/** The kernel keeps a set that a rule names. */
function assertSetsOfRules(iptables: NodeReading['iptables'], saved: string): void {
  for (const family of families) {
    const lost = [...setsInRules(iptables[family])].find((name) => !saved.includes(`create ${name} `));
    if (lost === undefined) continue;
    throw new Failure(
      'unreadable-node',
      `"ipset save" exited with status 0, but its output is not whole: rules match the set ${lost}, which it does not list`,
      'run it by hand to see what it prints; check that ipset is the real program',
      'ipset',
    );
  }
}

/** Files in which the legacy variant of iptables finds the tables that the kernel has. */
const tableLists: { readonly [F in Family]: string } = {
  ipv4: '/proc/net/ip_tables_names',
  ipv6: '/proc/net/ip6_tables_names',
};

/**
 * A table that the kernel has, and that is not in the list although something in it is wanted or ours: a list that was cut
 * after a table looks whole.
 */
async function findLeftOutTable(
  host: Host,
  family: Family,
  text: string,
  { scope, hasNftables }: Pick<ReadNode, 'scope' | 'hasNftables'>,
): Promise<string | undefined> {
  const missing = usedTables.filter((table) => scope.tables.has(`${family} ${table}`) && !mentionsTable(text, table));
  if (missing.length === 0) return undefined;
  const variant = /\((nf_tables|legacy)\)/.exec(text === '' ? await readVersion(host, saveTools[family]) : text)?.[1];
  const there =
    variant === 'nf_tables'
      ? hasNftables && (await findNftTables(host, family, missing))
      : (await host.readFile(tableLists[family]))?.split('\n');
  const lost = missing.find((table) => there && there.includes(table));
  return lost && `it lacks the table ${lost}, which the kernel has`;
}

async function readVersion(host: Host, tool: string): Promise<string> {
  const result = await host.run({ tool, args: ['--version'] });
  return result.kind === 'ended' ? result.stdout : '';
}

/** The tables in which kube-proxy has rules. */
const usedTables: readonly TableName[] = ['filter', 'nat', 'mangle'];

/** Why rules may not be added to a table that iptables-save hides: they could neither be checked nor put back. */
function findHiddenTable(output: string, family: Family): Failure | undefined {
  const table = [...findHiddenTables(output).keys()].find((name) => usedTables.includes(name));
  if (table === undefined) return undefined;
  return new Failure(
    'unreadable-node',
    `${saveTools[family]} cannot show the table ${table}: it holds what only nft reads`,
    `see "nft list table ${nftFamily[family]} ${table}": move what another program put there with nft to a table of its own; mode nftables does not need that table`,
  );
}

/** Whether there can be tables of nftables: to ask a kernel for some that has none yet would load a module. */
export async function mayHaveNftables(host: Host): Promise<boolean> {
  const place = findModule(await readModuleIndex(host, ['nf_tables']), 'nf_tables');
  return place !== 'loadable' && place !== 'missing';
}

/**
 * kube-proxy's table alone: others may be large. As text, which tells more than JSON does (comments of tables, and
 * whether one is dormant), at half the memory; without what changes from one moment to the next.
 */
async function readNftTable(host: Host, family: Family, scope: ReadingScope): Promise<string> {
  const table = ['table', nftFamily[family], nftTableName];
  // Where it matters little, for a list of its sets nft does not first ask for the chains of all tables, which may be many.
  if (!scope.nftables && isNoTable(await host.run({ tool: 'nft', args: ['list', 'sets', ...table] }))) return '';
  const command: Command = { tool: 'nft', args: ['-s', 'list', ...table] };
  const result = await host.run(command);
  if (isNoTable(result)) return '';
  try {
    return await assertWhole(command, outputOf(command, result), (text) => faultOfTable(text, family));
  } catch (error) {
    if (!(error instanceof Failure) || scope.nftables) throw error;
    scope.onLeftOut?.(error, command.tool);
    return '';
  }
}

function isNoTable(result: CommandResult): boolean {
  return result.kind === 'ended' && result.status !== 0 && noSuchTable.test(result.stderr);
}

const noSuchTable = /^(?:\S+ )?Error: No such file or directory/;

function outputOf(command: Command, result: CommandResult): string {
  if (result.kind === 'missing') {
    throw new Failure(
      'tool-missing',
      `${command.tool} is missing, so this node cannot be read`,
      `install it; "kpc-apply doctor" names the package`,
      command.tool,
    );
  }
  if (result.status === 0) return result.stdout;
  const ending = result.status === undefined ? `was killed by ${result.signal}` : `exited with status ${result.status}`;
  throw new Failure(
    'unreadable-node',
    [`"${formatCommand(command)}" ${ending}`, excerptOf(result.stderr)].filter(Boolean).join(': '),
    isRefusal(result.stderr)
      ? 'run it as root; a container also needs the capability NET_ADMIN'
      : 'run it by hand to see what it needs; "kpc-apply doctor" looks for the usual reasons',
    command.tool,
  );
}

async function readSettings(host: Host, paths: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const values = await Promise.all(paths.map((path) => host.readFile(path)));
  const settings: Record<string, string> = {};
  paths.forEach((path, i) => {
    const value = values[i];
    if (value === undefined) return;
    settings[path] = value.trim();
    // All that kpc-apply sets are numbers.
    if (/^-?\d+$/.test(settings[path])) return;
    throw new Failure('unreadable-node', `${path} does not hold a number`, `look at it by hand: cat ${path}`);
  });
  return settings;
}

/** What an earlier reading was parsed to: of parts that read the same, the same values, which compare at no cost. */
interface ParsedReading {
  readonly reading: NodeReading;
  readonly state: KernelState;
}

/** What is known before a reading is parsed. */
interface Known {
  readonly rules?: RuleLinesByFamily | undefined;
  readonly earlier?: ParsedReading | undefined;
}

/** How the objects of one kind are told by a reading. */
interface KindParser<Objects> {
  /** What tells of them. */
  readonly parts: readonly ReadingPart[];
  parse(reading: NodeReading, known: Known): Objects;
}

const kindParsers: { readonly [K in ObjectKind]: KindParser<KernelState[K]> } = {
  iptables: {
    parts: families,
    parse: (reading, known) =>
      Object.fromEntries(families.map((family) => [family, parseTables(reading, family, known)])),
  },
  nftables: {
    parts: families.map((family) => `nft ${family}` as const),
    parse: (reading, known) => families.flatMap((family) => parseNftTables(reading, family, known)),
  },
  sets: { parts: ['ipset'], parse: ({ ipset }) => parseIpsetSave(ipset).sets },
  virtualServers: { parts: ['ipvsadm'], parse: ({ ipvsadm }) => parseIpvsadm(ipvsadm).virtualServers },
  links: { parts: ['addresses'], parse: ({ addresses }) => parseIpAddrJson(addresses).links },
  ipvsTimeouts: { parts: ['ipvs timeouts'], parse: ({ ipvsTimeouts }) => parseTimeouts(ipvsTimeouts) },
  // Files of the node tell of these two: see `settings`, and the index of modules.
  sysctls: { parts: [], parse: () => new Map() },
  modules: { parts: [], parse: () => [] },
};

/** The kernel's state as the tools told it, all of it: other programs' too. Settings and modules are not in it. */
export function parseReading(reading: NodeReading, known: Known = {}): KernelState {
  const { earlier } = known;
  return mapKinds<KernelState>((kind) => {
    const { parts, parse } = kindParsers[kind];
    return earlier && parts.every((part) => isUnchanged(part, reading, earlier))
      ? earlier.state[kind]
      : parse(reading, known);
  });
}

function isUnchanged(part: ReadingPart, reading: NodeReading, earlier: ParsedReading): boolean {
  const { textOf } = partReaders[part];
  return textOf(reading) === textOf(earlier.reading);
}

function parseTables(reading: NodeReading, family: Family, { rules, earlier }: Known): Tables {
  const known = earlier && isUnchanged(family, reading, earlier) ? earlier.state.iptables[family] : undefined;
  return known ?? parseIptablesSave(reading.iptables[family], rules?.[family]).tables;
}

/** A table that holds what kpc does not read is none that kpc makes: it counts as another, whatever else is in it. */
function parseNftTables(reading: NodeReading, family: Family, { earlier }: Known): readonly NftTable[] {
  if (earlier && isUnchanged(`nft ${family}`, reading, earlier)) {
    return earlier.state.nftables.filter((table) => table.family === family);
  }
  return parseNodeTables(reading.nftables[family]);
}

/** kube-proxy's tables in what `nft list` printed, and what is in them that kpc does not read. */
export function parseNodeTables(text: string): readonly NftTable[] {
  const { tables, unread } = parseNftText(text, (_, name) => isKubeProxyTable(name));
  const unreadHeads = [...new Set(unread.map((line) => line.text.split('{', 1).join('').trim()))];
  return tables.map((table) => {
    // A table that is there gets no other comment. Old versions of nft print none, nor does kube-proxy write one with these.
    const isOther = table.comment !== undefined && table.comment !== nftTableComment;
    const heads = isOther ? [...unreadHeads, `comment ${JSON.stringify(table.comment)}`] : unreadHeads;
    return heads.length === 0 ? table : { ...table, strange: { heads, text } };
  });
}

/** "Timeout (tcp tcpfin udp): 900 120 300". */
function parseTimeouts(text: string): IpvsTimeouts | undefined {
  const match = /:\s*(\d+)\s+(\d+)\s+(\d+)/.exec(text);
  return match ? { tcp: Number(match[1]), tcpFin: Number(match[2]), udp: Number(match[3]) } : undefined;
}
