import type { LoadBalancerIngress, Service, ServicePortSpec } from '../cluster/objects.ts';
import { checkAddress, checkNetwork } from './check-addresses.ts';
import { checkName, readMetadata } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawIngress, RawService, RawServicePort } from './schemas/service.ts';
import { quote } from './wording.ts';

/** Three hours: the API server's default for sessionAffinity ClientIP. */
const defaultAffinitySeconds = 10800;

/**
 * Checks a Service as the API server would and fills in its defaults (pkg/apis/core/v1 SetDefaults_Service, and
 * clusterIPs and clusterIP from each other). ipFamilies stays empty where it is: kube-proxy then goes by clusterIP.
 */
export function readService(raw: RawService, report: Report): Service {
  const metadata = readMetadata(raw.metadata, 'label', report);
  const spec = raw.spec ?? {};
  if (!raw.spec) report.error([], 'missing-field', 'the Service has no spec');
  const type = spec.type || 'ClusterIP';
  const { clusterIP, clusterIPs } = readClusterIPs(spec, type, report);
  const externalIPs = spec.externalIPs ?? [];
  for (const [i, address] of externalIPs.entries()) checkAddress(address, ['spec', 'externalIPs', i], report);
  const sourceRanges = spec.loadBalancerSourceRanges ?? [];
  for (const [i, range] of sourceRanges.entries()) {
    // The API server takes blanks around a range, and so does kube-proxy.
    checkNetwork(range.trim(), ['spec', 'loadBalancerSourceRanges', i], report);
  }
  return {
    metadata,
    spec: {
      type,
      clusterIP,
      clusterIPs,
      ipFamilies: spec.ipFamilies ?? [],
      ipFamilyPolicy: spec.ipFamilyPolicy || undefined,
      externalName: spec.externalName || undefined,
      externalIPs,
      ports: readPorts(spec.ports ?? [], report),
      sessionAffinity: spec.sessionAffinity || 'None',
      sessionAffinityTimeout: spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds,
      internalTrafficPolicy: spec.internalTrafficPolicy || 'Cluster',
      externalTrafficPolicy: spec.externalTrafficPolicy || 'Cluster',
      healthCheckNodePort: spec.healthCheckNodePort ?? 0,
      loadBalancerSourceRanges: sourceRanges,
      publishNotReadyAddresses: spec.publishNotReadyAddresses ?? false,
      allocateLoadBalancerNodePorts: spec.allocateLoadBalancerNodePorts ?? true,
      hasSelector: Object.keys(spec.selector ?? {}).length > 0,
    },
    ingress: readIngress(raw.status?.loadBalancer?.ingress ?? [], report),
  };
}

function readClusterIPs(
  spec: NonNullable<RawService['spec']>,
  type: Service['spec']['type'],
  report: Report,
): Pick<Service['spec'], 'clusterIP' | 'clusterIPs'> {
  const given = spec.clusterIPs ?? [];
  const clusterIP = spec.clusterIP || (given[0] ?? '');
  const clusterIPs = given.length > 0 || clusterIP === '' ? given : [clusterIP];
  if (type === 'ExternalName') return { clusterIP, clusterIPs };
  if (spec.clusterIP && spec.clusterIP !== 'None') checkAddress(spec.clusterIP, ['spec', 'clusterIP'], report);
  if (given.length > 2) {
    report.error(['spec', 'clusterIPs'], 'bad-cluster-ips', `clusterIPs has ${given.length} addresses: two at most`);
  }
  const families = new Set<string>();
  for (const [i, text] of given.entries()) {
    const path = ['spec', 'clusterIPs', i];
    if (text === 'None' && i === 0 && given.length === 1) continue;
    const address = checkAddress(text, path, report);
    if (!address) continue;
    if (families.has(address.family)) {
      report.error(path, 'bad-cluster-ips', 'clusterIPs has two addresses of one family: one of each at most');
    }
    families.add(address.family);
    const family = spec.ipFamilies?.[i];
    if (family && family.toLowerCase() !== address.family) {
      report.error(path, 'bad-cluster-ips', `clusterIPs[${i}] is ${quote(text)}, but ipFamilies[${i}] is ${family}`);
    }
  }
  if (spec.clusterIP && given[0] !== undefined && given[0] !== spec.clusterIP) {
    report.error(
      ['spec', 'clusterIPs', 0],
      'bad-cluster-ips',
      `clusterIPs must begin with clusterIP, ${quote(spec.clusterIP)}`,
    );
  }
  return { clusterIP, clusterIPs };
}

function readPorts(raw: readonly RawServicePort[], report: Report): ServicePortSpec[] {
  const names = new Set<string>();
  const numbers = new Set<string>();
  return raw.map((port, i) => {
    const path = ['spec', 'ports', i];
    const name = port.name ?? '';
    const protocol = port.protocol || 'TCP';
    if (name !== '') checkName(name, 'label', [...path, 'name'], report);
    if (name !== '' && names.has(name)) {
      report.error([...path, 'name'], 'duplicate-port', `another port of this Service is named ${quote(name)} too`);
    }
    names.add(name);
    const number = port.port ?? 0;
    if (number === 0) {
      report.error([...path, 'port'], 'missing-field', `ports[${i}] has no port: a port is a number from 1 to 65535`);
    } else if (numbers.has(`${number}/${protocol}`)) {
      report.error([...path, 'port'], 'duplicate-port', `another port of this Service is ${number}/${protocol} too`);
    }
    numbers.add(`${number}/${protocol}`);
    return { name, protocol, port: number, targetPort: port.targetPort || number, nodePort: port.nodePort ?? 0 };
  });
}

function readIngress(raw: readonly RawIngress[], report: Report): LoadBalancerIngress[] {
  return raw.map((ingress, i) => {
    if (ingress.ip) checkAddress(ingress.ip, ['status', 'loadBalancer', 'ingress', i, 'ip'], report);
    return {
      ip: ingress.ip || undefined,
      hostname: ingress.hostname || undefined,
      ipMode: ingress.ipMode || 'VIP',
    };
  });
}
