import { zoneLabel } from '../../cluster/node-context.ts';
import type { Node } from '../../cluster/objects.ts';
import { checkNetwork } from './check-addresses.ts';
import { isLabelValue } from '../../base/object-names.ts';
import { readMetadata, type CommonNames } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawNode } from './schemas/node.ts';
import type { RawCondition } from './schemas/shared.ts';

/** Checks a Node; podCIDRs comes from podCIDR where only that is there. */
export function readNode(raw: RawNode, report: Report, names: CommonNames): Node {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const listed = raw.spec?.podCIDRs ?? [];
  const single = raw.spec?.podCIDR;
  const podCIDRs = listed.length === 0 && single ? [single] : listed;
  const networks = podCIDRs.map((cidr, i) => {
    return checkNetwork(cidr, listed.length === 0 ? ['spec', 'podCIDR'] : ['spec', 'podCIDRs', i], report);
  });
  if (listed.length > 2 || (listed.length === 2 && networks[0] && networks[0].family === networks[1]?.family)) {
    report.add(['spec', 'podCIDRs'], 'bad-cidr', { problem: 'families', field: 'podCIDRs' });
  }
  if (single && listed[0] !== undefined && listed[0] !== single) {
    const details = { problem: 'contradiction', podCIDRs: listed[0], podCIDR: single } as const;
    report.add(['spec', 'podCIDRs', 0], 'bad-cidr', details);
  }
  const zone = metadata.labels[zoneLabel];
  if (zone !== undefined && !isLabelValue(zone)) {
    report.add(['metadata', 'labels', zoneLabel], 'bad-zone', { of: 'Node', value: zone });
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
  report.add(['status', 'allocatable', 'cpu'], 'bad-quantity', { field: 'allocatable.cpu', value: String(cpu) });
  return 0n;
}

/** How many powers of ten the suffix of a decimal quantity stands for. */
const decimals: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
/** How many powers of two that of a binary one stands for. */
const binaries: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };

const quantityShape = /^\+?(\d{1,30})?(?:\.(\d{0,30}))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$/;

/**
 * A Kubernetes quantity, such as "4", "3920m" or "1e3", in billionths, what is less rounded up, as the API server does.
 * Undefined for what is none, and for a negative one.
 */
function parseQuantity(text: string): bigint | undefined {
  const [, whole = '', fraction = '', suffix = '', exponent] = quantityShape.exec(text) ?? [];
  if (whole + fraction === '') return undefined;
  const binary = binaries[suffix];
  const tens = exponent === undefined ? (decimals[suffix] ?? 0) : Number(exponent);
  const digits = BigInt(whole + fraction) << BigInt(binary ?? 0);
  const power = tens - fraction.length + 9;
  if (power >= 0) return digits * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (digits + divisor - 1n) / divisor;
}
