import type { RangeFlag } from '../../base/findings/fields.ts';
import { wrongValue, type Finding } from '../../base/findings/finding.ts';
import { parseNetwork, type Network } from '../../kernel/address.ts';
import type { PortRange } from '../../kernel/ports-and-marks.ts';

/** Values of kube-apiserver's flags and of kpc's own --load-balancer-ip-range. */
export interface RangeFlags {
  readonly serviceClusterIpRange?: string | undefined;
  readonly serviceNodePortRange?: string | undefined;
  readonly loadBalancerIpRange?: string | undefined;
}

export function parseAssignmentRanges(flags: RangeFlags) {
  const diagnostics: Finding[] = [];
  const read = <T>(flag: RangeFlag, value: string | undefined, parse: (text: string) => T | undefined) => {
    const parsed = value === undefined ? undefined : parse(value);
    if (value !== undefined && parsed === undefined) diagnostics.push(wrongValue(flag, value, flag));
    return parsed;
  };
  const clusterIPs = read('--service-cluster-ip-range', flags.serviceClusterIpRange, parseOneOfEachFamily) ?? [];
  const nodePorts = read('--service-node-port-range', flags.serviceNodePortRange, parseNodePortRange);
  const loadBalancerIPs = read('--load-balancer-ip-range', flags.loadBalancerIpRange, parseNetworks);
  return { ranges: { clusterIPs, nodePorts, ...(loadBalancerIPs && { loadBalancerIPs }) }, diagnostics };
}

function parseNetworks(text: string): readonly Network[] | undefined {
  const networks = text.split(',').map((each) => parseNetwork(each.trim()));
  return networks.every((network) => network !== undefined) ? networks : undefined;
}

function parseOneOfEachFamily(text: string): readonly Network[] | undefined {
  const networks = parseNetworks(text);
  return networks && new Set(networks.map(({ family }) => family)).size === networks.length ? networks : undefined;
}

/** Reads a range like kube-apiserver: "30000-32767", or "30000+2767", where the second number is the size minus one. */
function parseNodePortRange(text: string): PortRange | undefined {
  const match = /^\s*(\d{1,5})\s*([-+])\s*(\d{1,5})\s*$/.exec(text);
  if (!match) return undefined;
  const first = Number(match[1]);
  const last = match[2] === '+' ? first + Number(match[3]) : Number(match[3]);
  return first >= 1 && first <= last && last <= 65535 ? { first, last } : undefined;
}

/** Stands for --assume-endpoints without a value, which means the pod networks of the Nodes or the cluster. */
export const knownNetworks = 'auto';

export function parsePodNetworks(text: string | true | undefined) {
  if (text === undefined) return { networks: undefined, diagnostics: [] };
  if (text === true || text === knownNetworks) return { networks: [], diagnostics: [] };
  const networks = parseOneOfEachFamily(text);
  if (networks) return { networks, diagnostics: [] };
  return { networks: [], diagnostics: [wrongValue('--assume-endpoints', text, '--assume-endpoints')] };
}

export function isNetworks(text: string): boolean {
  return text.split(',').every((each) => parseNetwork(each) !== undefined);
}
