import type { ProxySettings } from '../../cluster/objects.ts';
import { conntrackBucketsPath, sysctlPath, type SysctlReason } from '../../kernel/sysctls-and-modules.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { behavioursOf, type Behaviours } from '../../kube-proxy/releases.ts';
import type { Host } from '../node/host.ts';
import { compareVersions, parseVersion, type Version } from '../node/tools.ts';

export interface NodeFacts {
  readonly kernel: Version;
  readonly cores: number;
  readonly conntrackBuckets: number | undefined;
}

export interface RequiredSysctl {
  readonly path: string;
  readonly name: string;
  readonly value: string;
  /** Set if the node decided on the value. */
  readonly reason?: SysctlReason | undefined;
  /** Set if a higher present value may stay. */
  readonly onlyRaises?: true | undefined;
  /** The values that kpc-apply set. Any other value is another program's and stays. */
  readonly onlyFrom?: readonly string[] | undefined;
}

export function isMet(
  { value, onlyRaises }: Pick<RequiredSysctl, 'value' | 'onlyRaises'>,
  found: string | undefined,
): boolean {
  return found === value || (onlyRaises === true && found !== undefined && Number(found) >= Number(value));
}

export const conntrackMax = 'net.netfilter.nf_conntrack_max';

const conntrackBucketsName = 'nf_conntrack hashsize';

/** kube-proxy's limit for nf_conntrack_max, which saves memory on machines with many cores. */
const conntrackMaxLimit = 1_048_576;

const connReuseModeSince: Version = [4, 1];
const connReuseModeFixed: Version = [5, 9];

export async function readNodeFacts(host: Host): Promise<NodeFacts> {
  const [release, online, buckets] = await Promise.all([
    host.readFile('/proc/sys/kernel/osrelease'),
    readOnlineCores(host),
    host.readFile(conntrackBucketsPath),
  ]);
  return {
    kernel: parseVersion(release ?? '') ?? [0],
    cores: online,
    conntrackBuckets: buckets === undefined ? undefined : Number(buckets),
  };
}

/** Returns the settings that kube-proxy chooses on the node: conn_reuse_mode (NewProxier in ipvs/proxier.go), conntrack (setSysctls). */
export function decideOnNode(settings: ProxySettings, facts: NodeFacts): readonly RequiredSysctl[] {
  const behaviours = behavioursOf(settings.release);
  return [...decideConnReuseMode(settings, facts), ...decideConntrack(settings.conntrack, facts, behaviours)];
}

function decideConnReuseMode(settings: ProxySettings, facts: NodeFacts): readonly RequiredSysctl[] {
  const name = 'net.ipv4.vs.conn_reuse_mode';
  if (!modeFacts[settings.mode].conditionalSysctls.includes(name)) return [];
  if (compareVersions(facts.kernel, connReuseModeSince) < 0) return [];
  if (compareVersions(facts.kernel, connReuseModeFixed) >= 0) return [];
  return [requireSysctl(name, 0, { kind: 'old-kernel', release: facts.kernel.join('.') })];
}

const configured: SysctlReason = { kind: 'configuration' };

function decideConntrack(
  conntrack: ProxySettings['conntrack'],
  facts: NodeFacts,
  behaviours: Behaviours,
): readonly RequiredSysctl[] {
  const decisions: RequiredSysctl[] = [];
  const max = decideConntrackMax(conntrack, facts.cores, behaviours);
  if (max) {
    const decision = requireSysctl(conntrackMax, max.value, max.reason);
    decisions.push(behaviours.has('conntrack-raise') ? { ...decision, onlyRaises: true } : decision);
    const buckets = Math.floor(max.value / 4);
    if (facts.conntrackBuckets !== undefined && facts.conntrackBuckets < buckets) {
      decisions.push({
        path: conntrackBucketsPath,
        name: conntrackBucketsName,
        value: `${buckets}`,
        reason: { kind: 'quarter' },
      });
    }
  }
  for (const [name, seconds] of [
    ['nf_conntrack_tcp_timeout_established', conntrack.tcpEstablishedTimeout],
    ['nf_conntrack_tcp_timeout_close_wait', conntrack.tcpCloseWaitTimeout],
    ['nf_conntrack_udp_timeout', conntrack.udpTimeout],
    ['nf_conntrack_udp_timeout_stream', conntrack.udpStreamTimeout],
  ] as const) {
    if (seconds > 0) decisions.push(requireSysctl(`net.netfilter.${name}`, Math.floor(seconds), configured));
  }
  if (conntrack.tcpBeLiberal) {
    decisions.push(requireSysctl('net.netfilter.nf_conntrack_tcp_be_liberal', 1, configured));
  }
  return decisions;
}

function decideConntrackMax(
  conntrack: ProxySettings['conntrack'],
  cores: number,
  behaviours: Behaviours,
): { readonly value: number; readonly reason: SysctlReason } | undefined {
  const { maxPerCore: perCore, min } = conntrack;
  if (perCore <= 0) return undefined;
  const scaled = perCore * cores;
  const reason = { kind: 'cores', perCore, cores } as const;
  if (scaled > conntrackMaxLimit && behaviours.has('conntrack-limit'))
    return { value: conntrackMaxLimit, reason: { ...reason, bound: ['most', conntrackMaxLimit] } };
  if (scaled > min) return { value: scaled, reason };
  return { value: min, reason: { ...reason, bound: ['least', min] } };
}

export function requireSysctl(name: string, value: number | string, reason?: SysctlReason): RequiredSysctl {
  return { path: sysctlPath(name), name, value: `${value}`, reason };
}

export function settingName(path: string): string {
  if (path === conntrackBucketsPath) return conntrackBucketsName;
  return path.startsWith('/proc/sys/') ? path.slice('/proc/sys/'.length).replaceAll('/', '.') : path;
}

/** Counts processors in /sys/devices/system/cpu/online, such as "0-3,6". Kernels without this file list them in /proc/cpuinfo. */
async function readOnlineCores(host: Host): Promise<number> {
  const online = await host.readFile('/sys/devices/system/cpu/online');
  if (online === undefined) {
    const processors = (await host.readFile('/proc/cpuinfo'))?.match(/^processor\s*:/gm);
    return processors?.length ?? 1;
  }
  let cores = 0;
  for (const range of online.trim().split(',')) {
    const [first, last = first] = range.split('-').map(Number);
    if (first !== undefined && last !== undefined) cores += last - first + 1;
  }
  return cores;
}
