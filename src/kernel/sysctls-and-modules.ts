import type { Family } from './address.ts';
import { itemOf, pairUp, diffByKey } from './compare.ts';
import { readLines } from './lines.ts';
import { passingRules, type RuleArg, type Tables } from './iptables/iptables.ts';

/** The sysctl that enables forwarding. The facts of a mode say whether kube-proxy sets it. */
export const forwardingSysctls: { readonly [F in Family]: string } = {
  ipv4: 'net.ipv4.ip_forward',
  ipv6: 'net.ipv6.conf.all.forwarding',
};

/** Returns the name of an IPv4 sysctl for one link or for `all`. A dot in a link's name becomes a slash. */
export function sysctlOfLink(link: string, key: string): string {
  return `net.ipv4.conf.${link.replaceAll('.', '/')}.${key}`;
}

/** Returns the sysctl that lets IPv6 packets from this link be forwarded even if forwarding is off. */
export function forceForwarding(link: string): string {
  return sysctlOfLink(link, 'force_forwarding').replace('ipv4', 'ipv6');
}

/** Returns the sysctls that let a link answer for other hosts' addresses. In IPv6, the link answers only for addresses that are listed. */
export function answersForOthers(link: string): { readonly [F in Family]: string } {
  const name = sysctlOfLink(link, 'proxy_arp');
  return { ipv4: name, ipv6: name.replace('ipv4', 'ipv6').replace(/arp$/, 'ndp') };
}

/** Returns the sysctl that lets an IPv4 link also answer for addresses behind the same link. */
export function answersForNeighbours(link: string): string {
  return sysctlOfLink(link, 'proxy_arp_pvlan');
}

export const ignoresEcho: { readonly [F in Family]: string } = {
  ipv4: 'net.ipv4.icmp_echo_ignore_all',
  ipv6: 'net.ipv6.icmp.echo_ignore_all',
};

/** The sysctl that makes a TCP server's answers carry the mark of the client's first packet. */
export const acceptsMark = 'net.ipv4.tcp_fwmark_accept';

export function sysctlPath(name: string): string {
  return `/proc/sys/${name.replaceAll(/[./]/g, (char) => (char === '.' ? '/' : '.'))}`;
}

/** Why a node needs a value. `bound`: the limit that nf_conntrack_max was cut or raised to. */
export type SysctlReason =
  | { readonly kind: 'configuration' | 'quarter' }
  | { readonly kind: 'old-kernel'; readonly release: string }
  | {
      readonly kind: 'cores';
      readonly perCore: number;
      readonly cores: number;
      readonly bound?: readonly ['most' | 'least', number];
    };

/** The number of buckets in the connection tracking table, which is the only network setting outside /proc/sys. */
export const conntrackBucketsPath = '/sys/module/nf_conntrack/parameters/hashsize';

/** Reports whether kpc-apply can have changed the setting in this file. */
export function isSettingPath(path: string): boolean {
  return path === conntrackBucketsPath || (/^\/proc\/sys\/net(?:\/[\w.-]+)+$/.test(path) && !path.includes('..'));
}

export function formatSysctls(sysctls: ReadonlyMap<string, string>): string {
  return [...sysctls].map(([name, value]) => `${name} = ${value}\n`).join('');
}

/** Reads a sysctl.conf(5) or `sysctl -a`: name with dots → value. The first line for a name counts. Accepts any text. */
export function parseSysctls(text: string) {
  const sysctls = new Map<string, string>();
  /** Second and later values of names, in line order. */
  const again: (readonly [name: string, value: string])[] = [];
  let last: string | undefined;
  const unread = readLines(text, ['#', ';'], (line) => {
    // After a leading minus, sysctl ignores a failure to set the value.
    const [, name, value = ''] = /^-?\s*([^\s=]+)\s*=\s*([^]*)$/.exec(line) ?? [];
    if (name === undefined) return 'other-line';
    const dotted = withDots(name);
    // sysctl repeats the name on each line of a value. Only values of the network, which have one line, matter here.
    const isFurtherLine = dotted === last && !dotted.startsWith('net.');
    last = dotted;
    if (isFurtherLine) return undefined;
    if (sysctls.has(dotted)) again.push([dotted, value]);
    else sysctls.set(dotted, value);
    return undefined;
  });
  return { sysctls, again, unread };
}

/** sysctl accepts a name with slashes for dots. In such a name, a dot is part of an interface's name. */
function withDots(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  return separator === '/' ? name.replace(/[./]/g, (char) => (char === '/' ? '.' : '/')) : name;
}

/** A change of a sysctl. `to` is undefined for a sysctl that is no longer wanted. It keeps its value, because sysctls cannot be removed. */
export interface SysctlChange {
  readonly name: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export function diffSysctls(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly SysctlChange[] {
  const changes = pairUp(before, after, ([name]) => name).map((pair): SysctlChange => {
    return { name: itemOf(pair)[0], from: pair.from?.[1], to: pair.to?.[1] };
  });
  return changes.filter(
    ({ from, to }) => from === undefined || to === undefined || normalizeSpaces(from) !== normalizeSpaces(to),
  );
}

/** Joins words by single spaces. The kernel prints tabs between the numbers of a sysctl that has several. */
function normalizeSpaces(value: string): string {
  return value.trim().split(/\s+/).join(' ');
}

export function formatModules(modules: readonly string[]): string {
  return modules.map((module) => `${module}\n`).join('');
}

/** Reads a modules-load.d(5) file. Accepts any text; lines that are not one name go to `unread`. */
export function parseModules(text: string) {
  const modules: string[] = [];
  const unread = readLines(text, ['#', ';'], (line) => {
    if (!/^[\w-]+$/.test(line)) return 'other-line';
    modules.push(line);
    return undefined;
  });
  return { modules, unread };
}

/** A module that is no longer wanted stays loaded, because other programs may use it. */
export interface ModuleChange {
  readonly change: 'added' | 'removed';
  readonly name: string;
}

export function diffModules(from: readonly string[], to: readonly string[]): readonly ModuleChange[] {
  const { added, removed } = diffByKey(from, to, (name) => name);
  return [
    ...added.map((name): ModuleChange => ({ change: 'added', name })),
    ...removed.map((name): ModuleChange => ({ change: 'removed', name })),
  ];
}

/** The modules that implement each match, in load order. */
const modulesOf: readonly (readonly [RuleArg['kind'], readonly string[]])[] = [
  ['match-set', ['xt_set']],
  ['comment', ['xt_comment']],
  ['mark', ['xt_mark']],
  ['source-type', ['xt_addrtype']],
  ['destination-type', ['xt_addrtype']],
  ['conntrack-state', ['xt_conntrack']],
  ['statistic', ['xt_statistic']],
  ['recent', ['xt_recent']],
  ['virtual-server', ['xt_ipvs']],
  // physdev sees bridge ports only if bridged packets pass iptables.
  ['physdev-is-in', ['br_netfilter', 'xt_physdev']],
];

/** Returns the modules for these rules' matches. Most kernels load modules on use, but nodes without autoloading need the list. */
export function matchModules(tables: readonly Tables[]): readonly string[] {
  const used = new Set<RuleArg['kind']>();
  for (const chains of tables.flatMap((ofFamily) => Object.values(ofFamily))) {
    for (const chain of chains.values()) {
      for (const { args } of passingRules(chain)) {
        for (const { kind } of args) used.add(kind);
      }
    }
  }
  return [...new Set(modulesOf.flatMap(([kind, modules]) => (used.has(kind) ? modules : [])))];
}
