import type { AssignmentRanges, PortRange } from '../cluster/assign-addresses.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import { parseNetwork } from '../kernel/address.ts';
import { quote } from './wording.ts';

/** kube-apiserver's flags, with what was written after them. */
export interface RangeFlags {
  readonly serviceClusterIpRange?: string | undefined;
  readonly serviceNodePortRange?: string | undefined;
}

/** The ranges that the flags name, and what is wrong with them; not to be used when there is an error. */
export function readAssignmentRanges(flags: RangeFlags): {
  readonly ranges: AssignmentRanges;
  readonly diagnostics: readonly Diagnostic[];
} {
  const diagnostics: Diagnostic[] = [];
  const error = (text: string) => diagnostics.push({ severity: 'error', code: 'bad-range', text });

  const texts = (flags.serviceClusterIpRange ?? '').split(',').filter((text) => text !== '');
  const clusterIPs = texts.flatMap((text) => {
    const network = parseNetwork(text.trim());
    if (!network) error(`--service-cluster-ip-range ${quote(text)}: write a CIDR such as 10.96.0.0/12`);
    return network ?? [];
  });
  if (new Set(clusterIPs.map(({ family }) => family)).size < clusterIPs.length) {
    error('--service-cluster-ip-range names two networks of one family: write one, or one of each family');
  }
  const ports = flags.serviceNodePortRange;
  const nodePorts = ports === undefined ? undefined : readPortRange(ports);
  if (ports !== undefined && !nodePorts) {
    error(`--service-node-port-range ${quote(ports)}: write two port numbers such as 30000-32767`);
  }
  return { ranges: { clusterIPs, nodePorts }, diagnostics };
}

/** "first-last", or "first+more" as kube-apiserver takes it too. */
function readPortRange(text: string): PortRange | undefined {
  const match = /^(\d{1,5})([-+])(\d{1,5})$/.exec(text.trim());
  if (!match) return undefined;
  const first = Number(match[1]);
  const last = match[2] === '+' ? first + Number(match[3]) : Number(match[3]);
  return first >= 1 && first <= last && last <= 65_535 ? { first, last } : undefined;
}
