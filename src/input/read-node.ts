import { zoneLabel } from '../cluster/node-context.ts';
import type { Node } from '../cluster/objects.ts';
import { checkNetwork } from './check-addresses.ts';
import { isLabelValue } from '../base/object-names.ts';
import { readMetadata } from './check-names.ts';
import type { Report } from './report.ts';
import { parseQuantity } from './parse-quantity.ts';
import type { RawCondition, RawNode } from './schemas/node.ts';
import { quote } from './wording.ts';

/** Checks a Node; podCIDRs comes from podCIDR where only that is there. */
export function readNode(raw: RawNode, report: Report): Node {
  const metadata = readMetadata(raw.metadata, 'subdomain', report);
  const listed = raw.spec?.podCIDRs ?? [];
  const single = raw.spec?.podCIDR;
  const podCIDRs = listed.length === 0 && single ? [single] : listed;
  const networks = podCIDRs.map((cidr, i) => {
    return checkNetwork(cidr, listed.length === 0 ? ['spec', 'podCIDR'] : ['spec', 'podCIDRs', i], report);
  });
  if (listed.length > 2 || (listed.length === 2 && networks[0] && networks[0].family === networks[1]?.family)) {
    report.error(['spec', 'podCIDRs'], 'bad-cidr', 'podCIDRs holds one network, or one of each family');
  }
  if (single && listed[0] !== undefined && listed[0] !== single) {
    const text = `podCIDRs begins with ${quote(listed[0])}, but podCIDR is ${quote(single)}: make them the same`;
    report.error(['spec', 'podCIDRs', 0], 'bad-cidr', text);
  }
  const zone = metadata.labels[zoneLabel];
  if (zone !== undefined && !isLabelValue(zone)) {
    const shape = 'a zone is letters, digits, dashes, underscores and dots, 63 at most';
    report.error(['metadata', 'labels', zoneLabel], 'bad-zone', `the zone ${quote(zone)} is not valid: ${shape}`);
  }
  const addresses = (raw.status?.addresses ?? []).map(({ type, address }) => ({
    type: type ?? '',
    address: address ?? '',
  }));
  const { kubeProxyVersion, kubeletVersion } = raw.status?.nodeInfo ?? {};
  return {
    metadata,
    kubernetesVersion: kubeProxyVersion || kubeletVersion || '',
    podCIDRs,
    addresses,
    ready: isReady(raw.status?.conditions ?? []),
    nanoCPUs: readCPUs(raw.status?.allocatable?.cpu ?? '', report),
  };
}

/** Whether the first condition called Ready is True. */
export function isReady(conditions: readonly RawCondition[]): boolean {
  return conditions.find(({ type }) => type === 'Ready')?.status === 'True';
}

function readCPUs(cpu: string | number, report: Report): bigint {
  if (cpu === '') return 0n;
  const amount = parseQuantity(String(cpu));
  if (amount !== undefined) return amount;
  const text = `allocatable.cpu ${quote(String(cpu))} is not a quantity, and counts as none: write it like 4 or 3920m`;
  report.warn(['status', 'allocatable', 'cpu'], 'bad-quantity', text);
  return 0n;
}
