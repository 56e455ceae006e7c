import type { Family } from './family.ts';
import { itemOf, pairUp } from './diff-by-key.ts';
import { readLines, type UnreadLine } from './unread-line.ts';

/** For each family, the sysctl that a node needs to forward packets. kube-proxy sets only the one of IPv4, and only in IPVS mode. */
export const forwardingSysctls: { readonly [F in Family]: string } = {
  ipv4: 'net.ipv4.ip_forward',
  ipv6: 'net.ipv6.conf.all.forwarding',
};

/** The name of an IPv4 sysctl for one link or for `all`: a dot in a link's name becomes a slash. */
export function sysctlOfLink(link: string, key: string): string {
  return `net.ipv4.conf.${link.replaceAll('.', '/')}.${key}`;
}

/** The file of a sysctl: "net.ipv4.ip_forward" → "/proc/sys/net/ipv4/ip_forward". */
export function sysctlPath(name: string): string {
  return `/proc/sys/${name.replaceAll(/[./]/g, (char) => (char === '.' ? '/' : '.'))}`;
}

/** Number of buckets in the connection tracking table: the only network setting that is not a sysctl. */
export const conntrackBucketsPath = '/sys/module/nf_conntrack/parameters/hashsize';

/** Whether kpc-apply may have changed the setting in this file. */
export function isSettingPath(path: string): boolean {
  return path === conntrackBucketsPath || (/^\/proc\/sys\/net(?:\/[\w.-]+)+$/.test(path) && !path.includes('..'));
}

/** A sysctl.conf(5): one `name = value` a line, in map order; '' for none. */
export function formatSysctls(sysctls: ReadonlyMap<string, string>): string {
  return [...sysctls].map(([name, value]) => `${name} = ${value}\n`).join('');
}

/**
 * Reads a sysctl.conf(5), or what `sysctl -a` prints: name with dots → value; the last of a name wins. Takes any text: lines it
 * cannot read are in `unread`.
 */
export function parseSysctls(text: string): {
  readonly sysctls: ReadonlyMap<string, string>;
  readonly unread: readonly UnreadLine[];
} {
  const sysctls = new Map<string, string>();
  const unread = readLines(text, ['#', ';'], (line) => {
    // A leading minus: failing to set it is no error.
    const [, name, value = ''] = /^-?\s*([^\s=]+)\s*=\s*([^]*)$/.exec(line) ?? [];
    if (name === undefined) return 'not "name = value"';
    sysctls.set(withDots(name), value);
    return undefined;
  });
  return { sysctls, unread };
}

/** sysctl accepts slashes for dots; then a dot inside a part (an interface's name) is a dot. */
function withDots(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  return separator === '/' ? name.replace(/[./]/g, (char) => (char === '/' ? '.' : '/')) : name;
}

/** `to` is undefined for a sysctl that is no longer wanted: it cannot be removed, so it keeps its value. */
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
  return changes.filter(({ from, to }) => from === undefined || to === undefined || wordsOf(from) !== wordsOf(to));
}

/** The kernel prints tabs between the numbers of a sysctl with several. */
function wordsOf(value: string): string {
  return value.trim().split(/\s+/).join(' ');
}
