import type { AssignmentRanges } from '../../cluster/assign-addresses.ts';
import type { PortRange } from '../../kernel/socket-address.ts';
import type { RangeFlag } from '../../diagnostics/command-line.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { parseNetwork } from '../../kernel/address.ts';

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
  const refuse = (flag: RangeFlag['flag'], value: string): void => {
    diagnostics.push(diagnose('bad-range', { flag, value }));
  };
  const texts = serviceClusterIpRange === undefined ? [] : serviceClusterIpRange.split(',');
  const clusterIPs = texts.flatMap((text) => parseNetwork(text.trim()) ?? []);
  if (clusterIPs.length < texts.length || new Set(clusterIPs.map(({ family }) => family)).size < texts.length) {
    refuse('--service-cluster-ip-range', serviceClusterIpRange ?? '');
  }
  const nodePorts = serviceNodePortRange === undefined ? undefined : parsePortRange(serviceNodePortRange);
  if (serviceNodePortRange !== undefined && !nodePorts) {
    refuse('--service-node-port-range', serviceNodePortRange);
  }
  const balanced = loadBalancerIpRange === undefined ? [] : loadBalancerIpRange.split(',');
  const loadBalancerIPs = balanced.flatMap((text) => parseNetwork(text.trim()) ?? []);
  if (loadBalancerIPs.length < balanced.length) {
    refuse('--load-balancer-ip-range', loadBalancerIpRange ?? '');
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
