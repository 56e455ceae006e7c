import type { FieldPath, LoadBalancerIngress, Service, ServicePortSpec } from '../../cluster/objects.ts';
import { parseAddress, unusableAs } from '../../kernel/address.ts';
import {
  checkAddress,
  checkHostAddress,
  checkName,
  checkNetwork,
  type CommonNames,
  readMetadata,
  textsWithoutNull,
} from './check-values.ts';
import { isName } from '../../base/names.ts';
import type { Report } from './report.ts';
import type { RawIngress, RawService, RawServicePort } from './shapes/service.ts';

/** The API server's default for sessionAffinity ClientIP, which is three hours. */
const defaultAffinitySeconds = 10800;

/** One empty list for all Services, because most Services lack most lists. */
const none: readonly never[] = [];

type RawServiceSpec = NonNullable<RawService['spec']>;
type Type = Service['spec']['type'];

/**
 * Checks like the API server and fills in its defaults (pkg/apis/core/v1 SetDefaults_Service; clusterIPs and clusterIP from each other).
 * Empty ipFamilies stay empty, so that kube-proxy follows clusterIP. Warns of a field that the API server refuses but kube-proxy ignores.
 */
export function readService(raw: RawService, report: Report, names: CommonNames): Service {
  const metadata = readMetadata(raw.metadata, 'label', report, names);
  const spec = raw.spec ?? {};
  if (!raw.spec) {
    report.addMissing([], 'spec');
    report.silence(['spec']);
  }
  const type = spec.type || 'ClusterIP';
  const externalIPs = spec.externalIPs ?? none;
  externalIPs.forEach((text, i) => {
    checkHostAddress(text, ['spec', 'externalIPs', i], report);
  });
  const sourceRanges = spec.loadBalancerSourceRanges ?? none;
  sourceRanges.forEach((range, i) => {
    // The API server and kube-proxy allow blanks around a range.
    checkNetwork(range.trim(), ['spec', 'loadBalancerSourceRanges', i], report);
  });
  if (!report.isDoubtful(['spec', 'type'])) checkCombinations(raw, spec, type, report);
  const { clusterIP, clusterIPs } = readClusterIPs(spec, type, report);
  return {
    metadata,
    spec: {
      type,
      clusterIP,
      clusterIPs,
      ipFamilies: spec.ipFamilies ?? none,
      ipFamilyPolicy: spec.ipFamilyPolicy || undefined,
      externalName: (type === 'ExternalName' && spec.externalName) || undefined,
      externalIPs,
      ports: readServicePorts(spec, type, report),
      sessionAffinity: spec.sessionAffinity || 'None',
      sessionAffinityTimeout: spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds,
      internalTrafficPolicy: spec.internalTrafficPolicy || 'Cluster',
      externalTrafficPolicy: spec.externalTrafficPolicy || 'Cluster',
      healthCheckNodePort: spec.healthCheckNodePort ?? 0,
      loadBalancerIP: spec.loadBalancerIP || undefined,
      loadBalancerClass: spec.loadBalancerClass || undefined,
      loadBalancerSourceRanges: sourceRanges,
      publishNotReadyAddresses: spec.publishNotReadyAddresses ?? false,
      allocateLoadBalancerNodePorts: spec.allocateLoadBalancerNodePorts ?? true,
      selector: spec.selector ? textsWithoutNull(spec.selector) : undefined,
      trafficDistribution: spec.trafficDistribution ?? '',
    },
    ingress: readBalancerIngress(raw.status?.loadBalancer?.ingress, report),
    terminating: raw.metadata?.deletionTimestamp ? true : undefined,
  };
}

function readClusterIPs(
  spec: RawServiceSpec,
  type: Type,
  report: Report,
): Pick<Service['spec'], 'clusterIP' | 'clusterIPs'> {
  const given = spec.clusterIPs ?? [];
  const clusterIP = spec.clusterIP || (given[0] ?? '');
  const clusterIPs = given.length > 0 || clusterIP === '' ? given : [clusterIP];
  if (type === 'ExternalName') return { clusterIP, clusterIPs };
  if (clusterIP === '') report.need(['spec', 'clusterIP']);
  const path = given.length > 0 ? ['spec', 'clusterIPs'] : ['spec', 'clusterIP'];
  const families = clusterIPs.map((text, i) => {
    return checkClusterIP(text, i, given.length > 0 ? [...path, i] : path, spec, report);
  });
  if (given.length > 2 || (given.length === 2 && families[0] !== undefined && families[0] === families[1])) {
    report.addWrong(path, given.join(), 'cluster-ips');
  }
  if (spec.clusterIP && given[0] !== undefined && given[0] !== spec.clusterIP) {
    report.addWrong([...path, 0], given[0], { form: 'same-cluster-ip', expected: spec.clusterIP });
  }
  const named = spec.ipFamilies?.length ?? 0;
  if (given.length === 2 && named < 2) report.add([...path, 1], 'missing-ip-families', { families: named });
  return { clusterIP, clusterIPs };
}

function checkClusterIP(
  text: string,
  index: number,
  path: FieldPath,
  spec: RawServiceSpec,
  report: Report,
): string | undefined {
  if (text === 'None' && index === 0) return undefined;
  if (text.toLowerCase() === 'none') {
    report.addWrong(path, text, 'none-or-address');
    return undefined;
  }
  const address = checkAddress(text, path, report);
  if (!address) return undefined;
  const use = unusableAs(address);
  if (use === 'unspecified' || use === 'loopback') report.addWrong(path, text, { form: 'address', use });
  const wanted = spec.ipFamilies?.[index];
  if (wanted && wanted.toLowerCase() !== address.family) {
    report.addWrong(path, text, { form: 'address-of-family', expected: wanted });
  }
  return address.family;
}

function readServicePorts(spec: RawServiceSpec, type: Type, report: Report): ServicePortSpec[] {
  const raw = spec.ports ?? [];
  const needsPorts = type !== 'ExternalName' && spec.clusterIP !== 'None' && !report.isDoubtful(['spec', 'type']);
  if (raw.length === 0 && needsPorts) {
    report.need(['spec', 'ports']);
    report.add(['spec', 'ports'], 'no-ports', {});
  }
  const ports = raw.map((port, i) => readPort(port, i, report));
  if (ports.length > 1) checkAllDistinct(ports, report);
  if (type === 'NodePort' || type === 'LoadBalancer') {
    for (const [i, { nodePort }] of ports.entries()) if (nodePort === 0) report.need(['spec', 'ports', i, 'nodePort']);
  }
  const external = ports.findIndex(({ nodePort }) => nodePort !== 0);
  if (external >= 0 && type === 'ClusterIP' && !report.isExplainedBy(['spec', 'type'])) {
    report.addWrong(['spec', 'ports', external, 'nodePort'], ports[external]?.nodePort, 'node-port');
  }
  return ports;
}

function readPort(raw: RawServicePort, index: number, report: Report): ServicePortSpec {
  const [name, port] = [raw.name ?? '', raw.port ?? 0];
  if (name !== '') checkName(name, 'label', ['spec', 'ports', index, 'name'], report);
  if (port === 0) report.addMissing(['spec', 'ports', index], 'port');
  checkTargetPort(raw.targetPort ?? 0, ['spec', 'ports', index, 'targetPort'], report);
  return {
    name,
    protocol: raw.protocol || 'TCP',
    port,
    targetPort: raw.targetPort || port,
    nodePort: raw.nodePort ?? 0,
  };
}

function checkTargetPort(targetPort: number | string, path: FieldPath, report: Report): void {
  const isNumber = typeof targetPort === 'number' || /^\d+$/.test(targetPort);
  if (typeof targetPort === 'number' ? targetPort >= 0 && targetPort <= 65535 : isIanaPortName(targetPort)) return;
  report.addWrong(path, targetPort, isNumber ? 'port' : 'port-name');
}

/** Follows the API server's rule for container port names (IANA_SVC_NAME of RFC 6335); '' means no name. */
function isIanaPortName(text: string): boolean {
  return text === '' || (text.length <= 15 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text) && /[a-z]/.test(text));
}

function checkAllDistinct(ports: readonly ServicePortSpec[], report: Report): void {
  const keysOf = {
    name: ({ name }: ServicePortSpec) => name,
    port: ({ port, protocol }: ServicePortSpec) => (port === 0 ? '' : `${port}/${protocol}`),
    nodePort: ({ nodePort, protocol }: ServicePortSpec) => (nodePort === 0 ? '' : `${nodePort}/${protocol}`),
  };
  for (const field of ['name', 'port', 'nodePort'] as const) {
    for (const { index, first, key } of findRepeated(ports, keysOf[field])) {
      // The two ports may be meant for different protocols, if the protocol of one was reported as wrong.
      const areTold = [first, index].some((at) => report.isExplainedBy(['spec', 'ports', at, 'protocol']));
      if (field !== 'name' && areTold) continue;
      report.add(['spec', 'ports', index, field], 'duplicate-port', { field, value: key, first });
    }
    if (field === 'name') checkUnnamed(ports, report);
  }
}

/** Reports ports without a name. kube-proxy identifies ports by name and protocol, so of two ports without a name it keeps only one. */
function checkUnnamed(ports: readonly ServicePortSpec[], report: Report): void {
  // Do not check Services with errors, because a port with an error may have lost its name.
  const repeated = report.hasErrors ? [] : findRepeated(ports, ({ name, protocol }) => (name === '' ? protocol : ''));
  const firstOf = new Map(repeated.map(({ index, first }) => [index, first]));
  for (const [index, { name }] of ports.entries()) {
    if (name !== '') continue;
    const first = firstOf.get(index);
    const path = ['spec', 'ports', index, 'name'];
    if (first === undefined) report.add(path, 'unnamed-port', {});
    else report.add(path, 'duplicate-port', { field: 'name', value: '', first });
  }
}

function findRepeated<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
): readonly { readonly index: number; readonly first: number; readonly key: string }[] {
  const keys = items.map(keyOf);
  const seen = new Map<string, number>();
  return keys.flatMap((key, index) => {
    const first = seen.get(key);
    if (key === '') return [];
    if (first === undefined) seen.set(key, index);
    return first === undefined ? [] : [{ index, first, key }];
  });
}

function readBalancerIngress(
  raw: readonly RawIngress[] | null | undefined,
  report: Report,
): readonly LoadBalancerIngress[] {
  if (!raw?.length) return none;
  return raw.map((ingress, i) => {
    if (ingress.hostname && !isName(ingress.hostname, 'subdomain')) {
      const path = ['status', 'loadBalancer', 'ingress', i, 'hostname'];
      report.addWrong(path, ingress.hostname, { form: 'subdomain', isWarning: true });
    }
    if (ingress.ip) checkAddress(ingress.ip, ['status', 'loadBalancer', 'ingress', i, 'ip'], report);
    return {
      ip: ingress.ip || undefined,
      hostname: ingress.hostname || undefined,
      ipMode: ingress.ipMode || 'VIP',
    };
  });
}

const trafficDistributions: ReadonlySet<string> = new Set(['PreferSameZone', 'PreferSameNode', 'PreferClose']);

/** Reports fields that contradict the Service's type or each other (pkg/apis/core/validation). Warns if kube-proxy ignores the field. */
function checkCombinations({ status }: RawService, spec: RawServiceSpec, type: Type, report: Report): void {
  if (type === 'ExternalName') checkExternalName(spec, report);
  else checkFamilies(spec, report);
  const isExternal = type === 'NodePort' || type === 'LoadBalancer';
  if (isExternal && (spec.clusterIP || spec.clusterIPs?.[0]) === 'None') {
    const path = spec.clusterIP ? ['spec', 'clusterIP'] : ['spec', 'clusterIPs', 0];
    report.addWrong(path, 'None', 'of-cluster-ip-type');
  }
  if (spec.externalTrafficPolicy && !isExternal && !(type === 'ClusterIP' && isNonEmpty(spec.externalIPs))) {
    ignoreField('externalTrafficPolicy', 'type NodePort or LoadBalancer, or externalIPs', report);
  }
  if (spec.healthCheckNodePort && !(type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local')) {
    ignoreField('healthCheckNodePort', 'type LoadBalancer with externalTrafficPolicy Local', report);
  }
  if (spec.sessionAffinityConfig && spec.sessionAffinity !== 'ClientIP') {
    ignoreField('sessionAffinityConfig', 'sessionAffinity: ClientIP', report);
  }
  if (type !== 'LoadBalancer') {
    const needed = 'type LoadBalancer';
    if (isNonEmpty(spec.loadBalancerSourceRanges)) ignoreField('loadBalancerSourceRanges', needed, report);
    if (isNonEmpty(spec.loadBalancerClass)) ignoreField('loadBalancerClass', needed, report);
    if (typeof spec.allocateLoadBalancerNodePorts === 'boolean')
      ignoreField('allocateLoadBalancerNodePorts', needed, report);
    // AllowServiceLBStatusOnNonLB (kubernetes pull request 119789).
    if (isNonEmpty(status?.loadBalancer?.ingress) && !report.hasErrors)
      report.add(['status', 'loadBalancer'], 'ignored-field', {
        field: 'status.loadBalancer',
        needs: needed,
        clearedFrom: '1.29',
      });
  }
  const value = spec.trafficDistribution;
  if (!value || trafficDistributions.has(value)) return;
  const form = 'traffic-distribution';
  report.addWrong(['spec', 'trafficDistribution'], value, { form, isWarning: true });
}

function isNonEmpty(value: string | readonly unknown[] | null | undefined): boolean {
  return value !== null && value !== undefined && value.length > 0;
}

function checkExternalName(spec: RawServiceSpec, report: Report): void {
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  const path = ['spec', 'externalName'];
  if (name === '') report.addMissing(['spec'], 'externalName');
  else if (parseAddress(name)?.family === 'ipv4') {
    report.addWrong(path, name, { form: 'external-name', isWarning: true });
  } else checkName(name, 'subdomain', path, report);
  for (const field of ['clusterIP', 'clusterIPs'] as const) {
    if (isNonEmpty(spec[field])) report.addWrong(['spec', field], spec[field], 'of-other-type');
  }
  for (const field of ['ipFamilies', 'ipFamilyPolicy'] as const) {
    if (isNonEmpty(spec[field])) ignoreField(field, 'another type', report);
  }
}

function checkFamilies({ ipFamilies, ipFamilyPolicy, clusterIP, clusterIPs }: RawServiceSpec, report: Report): void {
  const families = ipFamilies ?? [];
  const [again] = findRepeated(families, (family) => family);
  if (again) {
    report.addWrong(['spec', 'ipFamilies', again.index], again.key, 'families');
  } else if (ipFamilyPolicy === 'SingleStack' && families.length > 1) {
    report.addWrong(['spec', 'ipFamilyPolicy'], ipFamilyPolicy, { form: 'family-policy', isWarning: true });
  }
  if (!clusterIP && isNonEmpty(clusterIPs)) {
    report.add(['spec', 'clusterIPs'], 'missing-cluster-ip', { first: clusterIPs?.[0] ?? '' });
  }
}

/** Warns of a field without effect, unless the Service has errors. `needs` names the field that would give it an effect. */
function ignoreField(field: string, needs: string, report: Report): void {
  if (!report.hasErrors) report.add(['spec', field], 'ignored-field', { field, needs });
}
