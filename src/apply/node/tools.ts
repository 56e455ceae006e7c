import type { OutputFault } from '../../base/findings/apply.ts';
import { families, type Family } from '../../kernel/address.ts';
import { familyOfPlace, type RulesPlace } from '../../kernel/iptables/iptables-delta.ts';
import { endOf, formatCommand, type Host, type ToolCommand } from './host.ts';
import { mostSaid, Room, mostRead, tooLarge } from './output.ts';
import { TooLong } from '../../base/bounds.ts';
import type { TableName, IptablesVariant } from '../../kernel/iptables/iptables.ts';
import { joinQuotedLines } from '../../kernel/iptables/parse-rule.ts';
import { parseIpJson } from '../../kernel/link/link.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { nftTableName } from '../../kube-proxy/nft-table.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';
import { Failure } from '../state/failure.ts';

export type Variants = { readonly [F in Family]: IptablesVariant };

export const toolNames: { readonly [F in Family]: string } = { ipv4: 'iptables', ipv6: 'ip6tables' };

/** Finds the variants by running the tools. iptables before 1.8 prints no variant and is legacy. */
export async function readVariants(host: Host): Promise<Variants> {
  const [ipv4 = 'nft', ipv6 = 'nft'] = await Promise.all(
    families.map(async (family): Promise<IptablesVariant> => {
      const asked = await host.run({
        tool: `${toolNames[family]}-save`,
        args: ['--version'],
        room: new Room(mostSaid),
      });
      if (asked.kind === 'missing' || asked.status !== 0) return 'nft';
      return asked.stdout.includes('(nf_tables)') ? 'nft' : 'legacy';
    }),
  );
  return { ipv4, ipv6 };
}

export function variantOfPlace(place: RulesPlace, variants: Variants): IptablesVariant {
  const used = variants[familyOfPlace(place)];
  if (place === familyOfPlace(place)) return used;
  return used === 'nft' ? 'legacy' : 'nft';
}

/** Returns the place of the same rules when the iptables variants `to` are in use instead of `from`. */
export function translatePlace(place: RulesPlace, from: Variants, to: Variants): RulesPlace {
  const family = familyOfPlace(place);
  return variantOfPlace(place, from) === to[family] ? family : `other ${family}`;
}

export function rulesTool(place: RulesPlace, verb: 'save' | 'restore', variants: Variants): string {
  const family = familyOfPlace(place);
  const infix = place === family ? '' : `${variantOfPlace(place, variants)}-`;
  return `${toolNames[family]}-${infix}${verb}`;
}

export interface Tool {
  readonly name: string;
  /** The tool's name in a manifest's list of least versions. This is Debian's package; most distributions use the same name. */
  readonly family: string;
  readonly versionArgs: readonly string[];
  readonly isOptional?: true;
}

const versionArgs = ['--version'];

export const tools: readonly Tool[] = [
  { name: 'ip', family: 'iproute2', versionArgs: ['-V'] },
  { name: 'iptables-save', family: 'iptables', versionArgs },
  { name: 'ip6tables-save', family: 'iptables', versionArgs },
  { name: 'iptables-restore', family: 'iptables', versionArgs },
  { name: 'ip6tables-restore', family: 'iptables', versionArgs },
  { name: 'ipset', family: 'ipset', versionArgs },
  { name: 'ipvsadm', family: 'ipvsadm', versionArgs },
  { name: 'nft', family: 'nftables', versionArgs },
  { name: 'nginx', family: 'nginx', versionArgs: ['-v'] },
  { name: 'conntrack', family: 'conntrack', versionArgs, isOptional: true },
  { name: 'getfacl', family: 'acl', versionArgs, isOptional: true },
  { name: 'modprobe', family: 'kmod', versionArgs, isOptional: true },
];

/** "1.8.9" is [1, 8, 9]. */
export type Version = readonly number[];

export function parseVersion(text: string): Version | undefined {
  const match = /(?<!\d)\d+(?:\.\d+)+/.exec(text) ?? /\d+/.exec(text);
  return match ? match[0].split('.').map(Number) : undefined;
}

/** Compares versions. Missing numbers count as 0, so 1.8 equals 1.8.0. */
export function compareVersions(a: Version, b: Version): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Returns the fault in a tool's output; undefined if the output looks complete. */
export type FindFault = (stdout: string, stderr: string) => OutputFault | undefined | Promise<OutputFault | undefined>;

/** Runs a tool. Throws a Failure if the tool fails or `findFault` reports a fault. Returns "" on an error that matches `nothing`. */
export async function readWith(
  host: Host,
  command: ToolCommand,
  findFault: FindFault = () => undefined,
  nothing?: RegExp,
): Promise<string> {
  const { tool } = command;
  const { room = new Room(mostRead) } = command;
  const result = await host.run({ ...command, room });
  if (result.kind === 'missing') {
    throw new Failure('tool-missing', { tool, to: 'read' });
  }
  const { status, stdout, stderr, cut } = result;
  if (cut === 'stdout') throw tooLarge({ problem: 'output', command: formatCommand(command), tool }, room);
  if (status === 0) return assertWhole(command, stdout, await findFault(stdout, stderr));
  if (nothing?.test(stderr)) return '';
  const end = endOf(command, result);
  throw new Failure('unreadable-node', { problem: 'failed', tool, ...end, isRefused: isRefusal(stderr) });
}

export function assertWhole(command: ToolCommand, text: string, fault: OutputFault | undefined): string {
  if (fault === undefined) return text;
  const { tool } = command;
  throw new Failure('unreadable-node', { problem: 'bad-output', command: formatCommand(command), tool, fault });
}

export function isRefusal(said: string): boolean {
  return /permission denied|not permitted|must be root/i.test(said);
}

/** Reports a line that does not match, or a last line without an end. */
export function faultOfLines(lines: readonly string[], isPrinted: RegExp): OutputFault | undefined {
  const wrong = lines.findIndex((line, i) => !isPrinted.test(line) && !(line === '' && i === lines.length - 1));
  if (wrong >= 0) return { kind: 'strange-line', line: wrong + 1 };
  return lines.at(-1) === '' ? undefined : { kind: 'no-end' };
}

/** Checks the output of iptables-save or ip6tables-save. Each table must end with COMMIT, and each list of tables with a comment. */
export function faultOfRules(text: string, family: Family): OutputFault | undefined {
  const lines = joinQuotedLines(text.split('\n'));
  const headers = lines.flatMap((line) => /^# Generated by (ip6?tables)\S* /.exec(line)?.[1] ?? []);
  const [header] = headers;
  if (header !== undefined && header !== (family === 'ipv4' ? 'iptables' : 'ip6tables'))
    return { kind: 'other-tool', of: header };
  let table: string | undefined;
  for (const line of lines) {
    const isBegin = line.startsWith('*');
    if (!isBegin && line !== 'COMMIT') continue;
    if (isBegin === (table !== undefined)) return { kind: 'stray-line', line };
    table = isBegin ? line.slice(1) : undefined;
  }
  if (table !== undefined) return { kind: 'no-table-end', table };
  const ends = lines.filter((line) => line.startsWith('# Completed on '));
  if (headers.length !== ends.length) return { kind: 'no-table-end' };
  return faultOfLines(lines, /^(?:-A |[*#:]|COMMIT$|$|\[\d+:\d+\] -A )/);
}

export function mentionsTable(text: string, table: TableName): boolean {
  const mention = new RegExp(`^(?:\\*${table}$|[ \\t]*# Table \`${table}' )`);
  return joinQuotedLines(text.split('\n')).some((line) => mention.test(line));
}

/** Compares kube-proxy's sets in `ipset save` and `ipset list -t`, because output cut off at a line end looks complete. */
export function faultBetweenSets(saved: string, listed: string): OutputFault | undefined {
  const counts = new Map<string, number>();
  for (const [, name = ''] of saved.matchAll(/^create (\S+) /gm)) counts.set(name, 0);
  for (const [, name = ''] of saved.matchAll(/^add (\S+) /gm)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const heads = listed.split(/^(?=Name: )/m);
  const there = new Map(heads.map((head) => [/^Name: (.+)$/m.exec(head)?.[1] ?? '', head]));
  for (const name of new Set([...counts.keys(), ...there.keys()])) {
    if (!parseSetName(name)) continue;
    const count = counts.get(name);
    const entries = /^Number of entries: (\d+)$/m.exec(there.get(name) ?? '')?.[1];
    if (count === undefined || entries !== `${count}`) {
      return { kind: 'entries', set: name, saved: count, listed: entries };
    }
  }
  return undefined;
}

/** Finds a kube-proxy set that rules name but `ipset save` lacks. The kernel keeps sets that rules name, so the output is incomplete. */
export function faultOfNamedSets(rules: string, saved: string): OutputFault | undefined {
  const names = [...rules.matchAll(/ --match-set (\S+) /g)].map(([, name = '']) => name);
  const lost = [...new Set(names)].find((name) => parseSetName(name) && !saved.includes(`create ${name} `));
  return lost === undefined ? undefined : { kind: 'no-set', set: lost };
}

/** Compares the numbers of virtual servers and real servers in `ipvsadm -Sn` and /proc/net/ip_vs. */
export function faultBetweenServers(printed: string, table: string): OutputFault | undefined {
  const count = (text: string, each: RegExp) => text.match(each)?.length ?? 0;
  const [servers, listedServers] = [count(printed, /^-A /gm), count(table, /^(?:TCP|UDP|SCTP|FWM) /gm)];
  const [reals, listedReals] = [count(printed, /^-a /gm), count(table, /^ +-> [\dA-F[]/gm)];
  if (servers === listedServers && reals === listedReals) return undefined;
  return { kind: 'servers', servers, reals, listedServers, listedReals };
}

/** Checks the output of `nft list table`: one table, with its last brace. */
export function faultOfTable(text: string, family: Family): OutputFault | undefined {
  const head = `table ${nftFamily[family]} ${nftTableName} {`;
  if (!text.startsWith(`${head}\n`) && !text.startsWith(`${head} #`)) return { kind: 'no-begin', expected: head };
  return text.indexOf('\n}') === text.length - 3 && text.endsWith('\n}\n')
    ? undefined
    : { kind: 'no-table-end', table: nftTableName };
}

/** Checks the output of `ip -j addr`. Each network has a link, at least lo. */
export function faultOfLinks(text: string): OutputFault | undefined {
  try {
    const links = parseIpJson(text);
    const isLink = (link: unknown) => typeof link === 'object' && link !== null && 'ifname' in link;
    return Array.isArray(links) && links.some(isLink) ? undefined : { kind: 'no-link' };
  } catch (error) {
    return error instanceof TooLong ? { kind: 'long-json', ...error.exceeded } : { kind: 'no-json' };
  }
}

export function isFlow(line: string): boolean {
  return / src=[^\s=]+ dst=[^\s=]+ .* src=[^\s=]+ dst=[^\s=]+ /.test(line);
}

/** Checks the output of `conntrack -L`, which reports the number of shown flows on stderr. */
export function faultOfFlows(flows: number, stderr: string): OutputFault | undefined {
  const shown = /: (\d+) flow entries have been shown/.exec(stderr)?.[1];
  return shown === `${flows}` ? undefined : { kind: 'flows', flows, shown };
}

/**
 * The kernel's count of changes to nftables rules in this network. The same count means the same tables, except for the clients in affinity
 * sets.
 */
export interface NftGeneration {
  /** The network's cookie, unique until a reboot, and the load time of module nf_tables. A change of either starts a new count. */
  readonly counter: string;
  readonly count: number;
}

/** Reads the count with Perl, because Node has no netlink sockets and nft does not print it. Undefined if anything is unusual. */
export async function readNftGeneration(host: Host): Promise<NftGeneration | undefined> {
  try {
    const result = await host.run({ tool: 'perl', args: ['-e', program], room: new Room(mostSaid) });
    if (result.kind === 'missing' || result.status !== 0) return undefined;
    const [, counter, count] = /^(\d+ \d+) (\d+)\n$/.exec(result.stdout) ?? [];
    return counter === undefined ? undefined : { counter, count: Number(count) };
  } catch {
    return undefined;
  }
}

export function isLaterBy(transactions: number, before: NftGeneration, after: NftGeneration | undefined): boolean {
  return before.counter === after?.counter && before.count + transactions === after.count;
}

/**
 * Sends NFT_MSG_GETGEN and reads NFTA_GEN_ID from the answer (linux/netfilter/nf_tables.h). Calls getsockopt(SO_NETNS_COOKIE) by number,
 * because Perl's built-in function passes 256 bytes and the kernel accepts only 8. Kernels before 5.14 have no cookie, and other
 * processors use other system call numbers, so there the program fails.
 */
const program = String.raw`
use strict;
use Config;
my %getsockopt = (x86_64 => 55, aarch64 => 209, riscv64 => 209, powerpc64le => 340, s390x => 365);
my $number = $getsockopt{($Config{archname} =~ /^(\w+)/)[0]} or die;
socket(my $kernel, 16, 3, 12) or die;
my ($cookie, $size) = ("\0" x 8, pack "L", 8);
syscall($number, fileno $kernel, 1, 71, $cookie, $size) == 0 or die;
alarm 10;
send $kernel, pack("LSSLLCCn", 20, 2576, 1, 1, 0, 0, 0, 0), 0, pack("SSLL", 16, 0, 0, 0) or die;
recv $kernel, my $answer, 4096, 0;
my ($kind, $attribute, $count) = unpack "x4 S x16 S N", $answer;
die if $kind != 2575 || $attribute != 1;
my $module = (stat "/sys/module/nf_tables")[1] || 0;
print unpack("Q", $cookie), " $module $count\n";
`;
