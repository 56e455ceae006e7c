import type { AssignmentRanges, PortRange } from '../cluster/assign-addresses.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import { parseNetwork } from '../kernel/address.ts';
import { quote } from './wording.ts';

/** kube-apiserver's flags, and one of kpc's own beside them, with what was written after them. */
export interface RangeFlags {
  readonly serviceClusterIpRange?: string | undefined;
  readonly serviceNodePortRange?: string | undefined;
  readonly loadBalancerIpRange?: string | undefined;
}

/** Ranges with what is wrong with the flags they came from; not to be used when there is an error. */
export interface ParsedRanges {
  readonly ranges: AssignmentRanges;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads --service-cluster-ip-range (one network, or one of each family) --service-node-port-range and --load-balancer-ip-range. */
export function parseAssignmentRanges({
  serviceClusterIpRange,
  serviceNodePortRange,
  loadBalancerIpRange,
}: RangeFlags): ParsedRanges {
  const diagnostics: Diagnostic[] = [];
  const refuse = (text: string): void => {
    diagnostics.push({ severity: 'error', code: 'bad-range', text });
  };
  const texts = serviceClusterIpRange === undefined ? [] : serviceClusterIpRange.split(',');
  const clusterIPs = texts.flatMap((text) => parseNetwork(text.trim()) ?? []);
  if (clusterIPs.length < texts.length || new Set(clusterIPs.map(({ family }) => family)).size < texts.length) {
    const example = 'write one network or one of each family, such as 10.96.0.0/16,fd00:10:96::/112';
    refuse(`--service-cluster-ip-range is ${quote(serviceClusterIpRange ?? '')}: ${example}`);
  }
  const nodePorts = serviceNodePortRange === undefined ? undefined : parsePortRange(serviceNodePortRange);
  if (serviceNodePortRange !== undefined && !nodePorts) {
    const example = 'write the first and the last port, such as 30000-32767';
    refuse(`--service-node-port-range is ${quote(serviceNodePortRange)}: ${example}`);
  }
  const balanced = loadBalancerIpRange === undefined ? [] : loadBalancerIpRange.split(',');
  const loadBalancerIPs = balanced.flatMap((text) => parseNetwork(text.trim()) ?? []);
  if (loadBalancerIPs.length < balanced.length) {
    const example = 'write networks such as 203.0.113.0/24 or 2001:db8::/120';
    refuse(`--load-balancer-ip-range is ${quote(loadBalancerIpRange ?? '')}: ${example}`);
  }
  return { ranges: { clusterIPs, nodePorts, ...(balanced.length > 0 ? { loadBalancerIPs } : {}) }, diagnostics };
}

/** "30000-32767", or "30000+2767" with the size less one, as kube-apiserver takes it. */
function parsePortRange(text: string): PortRange | undefined {
  const match = /^\s*(\d{1,5})\s*([-+])\s*(\d{1,5})\s*$/.exec(text);
  if (!match) return undefined;
  const first = Number(match[1]);
  const last = match[2] === '+' ? first + Number(match[3]) : Number(match[3]);
  return first >= 1 && first <= last && last <= 65535 ? { first, last } : undefined;
}
