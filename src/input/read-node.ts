import type { Node } from '../cluster/objects.ts';
import { checkNetwork } from './check-addresses.ts';
import { readMetadata } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawNode } from './schemas/node.ts';

/** Checks a Node; podCIDRs comes from podCIDR where only that is there. */
export function readNode(raw: RawNode, report: Report): Node {
  const metadata = readMetadata(raw.metadata, 'subdomain', report);
  const listed = raw.spec?.podCIDRs ?? [];
  const single = raw.spec?.podCIDR;
  const podCIDRs = listed.length === 0 && single ? [single] : listed;
  for (const [i, cidr] of podCIDRs.entries()) {
    checkNetwork(cidr, listed.length === 0 ? ['spec', 'podCIDR'] : ['spec', 'podCIDRs', i], report);
  }
  const addresses = (raw.status?.addresses ?? []).map(({ type, address }) => ({
    type: type ?? '',
    address: address ?? '',
  }));
  const { kubeProxyVersion, kubeletVersion } = raw.status?.nodeInfo ?? {};
  return { metadata, kubernetesVersion: kubeProxyVersion || kubeletVersion || '', podCIDRs, addresses };
}
