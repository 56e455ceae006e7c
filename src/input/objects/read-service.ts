import { findNearest } from '../../base/find-nearest.ts';
import type { IgnoredFieldReason } from '../../diagnostics/services.ts';
import { findingOf } from '../../diagnostics/value-in-words.ts';
import type { FieldPath, LoadBalancerIngress, Service, ServicePortSpec } from '../../cluster/objects.ts';
import { isLoopback } from '../../kernel/address.ts';
import { checkAddress, checkNetwork, checkUsableAddress, warnOfSpecial } from './check-addresses.ts';
import { isName } from '../../base/object-names.ts';
import { checkName, readMetadata, readTexts, type CommonNames } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawIngress, RawService, RawServicePort } from './schemas/service.ts';

/** Three hours: the API server's default for sessionAffinity ClientIP. */
const defaultAffinitySeconds = 10800;

/** Most Services lack most lists: all of them have this one. */
const none: readonly never[] = [];

const selectorPath = ['spec', 'selector'];

type RawSpec = NonNullable<RawService['spec']>;
type Type = Service['spec']['type'];

/**
 * Checks a Service as the API server would and fills in its defaults (pkg/apis/core/v1 SetDefaults_Service, and
 * clusterIPs and clusterIP from each other). ipFamilies stays empty where it is: kube-proxy then goes by clusterIP.
 * What the API server refuses but kube-proxy merely leaves out is a warning.
 */
export function readService(raw: RawService, report: Report, names: CommonNames): Service {
  const metadata = readMetadata(raw.metadata, 'label', report, names);
  const spec = raw.spec ?? {};
  if (!raw.spec) {
    report.add(['spec'], 'missing-field', { owner: 'the Service', field: 'spec', expected: 'one with ports' });
    report.settle(['spec']);
  }
  const type = spec.type || 'ClusterIP';
  const externalIPs = spec.externalIPs ?? none;
  externalIPs.forEach((text, i) => {
    const path = ['spec', 'externalIPs', i];
    const address = checkUsableAddress(text, path, report);
    if (address) warnOfSpecial(address, text, 'external-ip', path, report);
  });
  const sourceRanges = spec.loadBalancerSourceRanges ?? none;
  sourceRanges.forEach((range, i) => {
    // The API server takes blanks around a range, and so does kube-proxy.
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
      ports: readPorts(spec, type, report),
      sessionAffinity: spec.sessionAffinity || 'None',
      sessionAffinityTimeout: spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds,
      internalTrafficPolicy: spec.internalTrafficPolicy || 'Cluster',
      externalTrafficPolicy: spec.externalTrafficPolicy || 'Cluster',
      healthCheckNodePort: spec.healthCheckNodePort ?? 0,
      loadBalancerIP: spec.loadBalancerIP || undefined,
      loadBalancerSourceRanges: sourceRanges,
      publishNotReadyAddresses: spec.publishNotReadyAddresses ?? false,
      allocateLoadBalancerNodePorts: spec.allocateLoadBalancerNodePorts ?? true,
      selector: spec.selector ? readTexts(spec.selector, 'selector', selectorPath, report) : undefined,
      trafficDistribution: spec.trafficDistribution ?? '',
    },
    ingress: readIngress(raw.status?.loadBalancer?.ingress, type !== 'ExternalName' && clusterIP !== 'None', report),
    terminating: raw.metadata?.deletionTimestamp ? true : undefined,
  };
}

function readClusterIPs(spec: RawSpec, type: Type, report: Report): Pick<Service['spec'], 'clusterIP' | 'clusterIPs'> {
  const given = spec.clusterIPs ?? [];
  const clusterIP = spec.clusterIP || (given[0] ?? '');
  const clusterIPs = given.length > 0 || clusterIP === '' ? given : [clusterIP];
  if (clusterIP === '' && type !== 'ExternalName') report.need(['spec', 'clusterIP']);
  if (type !== 'ExternalName') {
    if (spec.clusterIP && given.length === 0) checkClusterIP(spec.clusterIP, 0, ['spec', 'clusterIP'], spec, report);
    checkClusterIPList(given, spec, report);
  }
  return { clusterIP, clusterIPs };
}

function checkClusterIPList(given: readonly string[], spec: RawSpec, report: Report): void {
  const families = given.map((text, i) => checkClusterIP(text, i, ['spec', 'clusterIPs', i], spec, report));
  if (given.length > 2 || (given.length === 2 && families[0] !== undefined && families[0] === families[1])) {
    report.add(['spec', 'clusterIPs'], 'bad-cluster-ips', { problem: 'too-many' });
  }
  if (spec.clusterIP && given[0] !== undefined && given[0] !== spec.clusterIP) {
    const details = { problem: 'contradiction', clusterIPs: given[0], clusterIP: spec.clusterIP } as const;
    report.add(['spec', 'clusterIPs', 0], 'bad-cluster-ips', details);
  }
  const named = spec.ipFamilies?.length ?? 0;
  if (given.length === 2 && named < 2) {
    report.add(['spec', 'clusterIPs', 1], 'missing-ip-families', { families: named });
  }
}

/** The address's family; undefined for 'None' and for what is wrong. */
function checkClusterIP(
  text: string,
  index: number,
  path: FieldPath,
  spec: RawSpec,
  report: Report,
): string | undefined {
  if (text === 'None' && index === 0) return undefined;
  if (text.toLowerCase() === 'none') {
    report.add(path, 'bad-cluster-ips', { problem: 'none', value: text, isFirst: index === 0 });
    return undefined;
  }
  const address = checkAddress(text, path, report);
  if (address && (address.text === '0.0.0.0' || address.text === '::' || isLoopback(address))) {
    report.add(path, 'bad-address', {
      field: 'clusterIP',
      value: text,
      expected: 'an address that a Service can have',
    });
  } else if (address) {
    warnOfSpecial(address, text, 'cluster-ip', path, report);
  }
  const wanted = spec.ipFamilies?.[index];
  if (address && wanted && wanted.toLowerCase() !== address.family) {
    report.add(path, 'bad-cluster-ips', { problem: 'other-family', value: text, family: wanted, index });
  }
  return address?.family;
}

function readPorts(spec: RawSpec, type: Type, report: Report): ServicePortSpec[] {
  const raw = spec.ports ?? [];
  const needsPorts = type !== 'ExternalName' && spec.clusterIP !== 'None' && !report.isDoubtful(['spec', 'type']);
  if (raw.length === 0 && needsPorts) {
    report.need(['spec', 'ports']);
    report.add(['spec', 'ports'], 'no-ports', {});
  }
  const ports = raw.map((port, i) => readPort(port, i, raw.length, report));
  if (ports.length > 1) checkAllDistinct(ports, report);
  if (type === 'NodePort' || type === 'LoadBalancer') {
    for (const [i, { nodePort }] of ports.entries()) if (nodePort === 0) report.need(['spec', 'ports', i, 'nodePort']);
  }
  const external = ports.findIndex(({ nodePort }) => nodePort !== 0);
  if (external >= 0 && type === 'ClusterIP' && !report.isExplainedBy(['spec', 'type'])) {
    report.add(['spec', 'ports', external, 'nodePort'], 'bad-type', {
      field: 'nodePort',
      found: findingOf(ports[external]?.nodePort),
      types: ['integer'],
      expected: 'write type: NodePort, or leave nodePort out',
    });
  }
  return ports;
}

function readPort(raw: RawServicePort, index: number, count: number, report: Report): ServicePortSpec {
  const name = raw.name ?? '';
  if (name !== '') checkName(name, 'label', ['spec', 'ports', index, 'name'], report);
  else if (count > 1) report.add(['spec', 'ports', index, 'name'], 'unnamed-port', {});
  const port = raw.port ?? 0;
  if (port === 0)
    report.add(['spec', 'ports', index, 'port'], 'missing-field', {
      owner: `ports[${index}]`,
      field: 'port',
      expected: 'a number from 1 to 65535',
    });
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
  if (typeof targetPort === 'number' ? targetPort >= 0 && targetPort <= 65535 : isPortName(targetPort)) return;
  report.add(path, 'bad-port', {
    field: 'targetPort',
    found: findingOf(targetPort),
    ...(isNumber
      ? { types: ['integer'], expected: 'a port is a number from 1 to 65535' }
      : { expected: 'lower-case letters, digits and single dashes, with a letter among them, 15 at most' }),
  });
}

/** The API server's rule for the names of container ports (IANA_SVC_NAME of RFC 6335); '' is none. */
function isPortName(text: string): boolean {
  return text === '' || (text.length <= 15 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text) && /[a-z]/.test(text));
}

function checkAllDistinct(ports: readonly ServicePortSpec[], report: Report): void {
  checkDistinct(ports, 'name', ({ name }) => name, report);
  checkUnnamed(ports, report);
  checkDistinct(ports, 'port', ({ port, protocol }) => (port === 0 ? '' : `${port}/${protocol}`), report);
  checkDistinct(
    ports,
    'nodePort',
    ({ nodePort, protocol }) => (nodePort === 0 ? '' : `${nodePort}/${protocol}`),
    report,
  );
}

/** kube-proxy tells ports by name and protocol: of two without a name it keeps one. */
function checkUnnamed(ports: readonly ServicePortSpec[], report: Report): void {
  // A port that is wrong may have lost its name.
  if (report.hasErrors) return;
  const seen = new Map<string, number>();
  for (const [i, { name, protocol }] of ports.entries()) {
    if (name !== '') continue;
    const first = seen.get(protocol);
    if (first === undefined) seen.set(protocol, i);
    else report.add(['spec', 'ports', i, 'name'], 'duplicate-port', { problem: 'unnamed', index: i, protocol, first });
  }
}

/** Reports ports of one Service that have the same value in a field; '' stands for none. */
function checkDistinct(
  ports: readonly ServicePortSpec[],
  field: 'name' | 'port' | 'nodePort',
  keyOf: (port: ServicePortSpec) => string,
  report: Report,
): void {
  const seen = new Map<string, number>();
  for (const [i, port] of ports.entries()) {
    const key = keyOf(port);
    const first = seen.get(key);
    if (key === '') continue;
    if (first === undefined) {
      seen.set(key, i);
      continue;
    }
    // Their protocols may be meant to differ.
    const areTold = [first, i].some((at) => report.isExplainedBy(['spec', 'ports', at, 'protocol']));
    if (field !== 'name' && areTold) continue;
    report.add(['spec', 'ports', i, field], 'duplicate-port', { problem: 'value', field, value: key, first });
  }
}

/** `isServed`: whether kube-proxy writes rules for the Service. */
function readIngress(
  raw: readonly RawIngress[] | null | undefined,
  isServed: boolean,
  report: Report,
): readonly LoadBalancerIngress[] {
  if (!raw?.length) return none;
  return raw.map((ingress, i) => {
    if (ingress.hostname && !isName(ingress.hostname, 'subdomain')) {
      const details = { field: 'hostname', value: ingress.hostname, rule: 'subdomain', isUnused: true } as const;
      report.add(['status', 'loadBalancer', 'ingress', i, 'hostname'], 'bad-name', details);
    }
    if (ingress.ip) {
      const path = ['status', 'loadBalancer', 'ingress', i, 'ip'];
      const address = checkAddress(ingress.ip, path, report);
      // kube-proxy leaves the addresses of a proxy alone.
      const isUsed = isServed && ingress.ipMode !== 'Proxy';
      if (address && isUsed) warnOfSpecial(address, ingress.ip, 'load-balancer', path, report);
    }
    return {
      ip: ingress.ip || undefined,
      hostname: ingress.hostname || undefined,
      ipMode: ingress.ipMode || 'VIP',
    };
  });
}

const trafficDistributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];

/**
 * Reports fields that contradict a Service's type or each other, which the API server refuses (validateService in
 * pkg/apis/core/validation). What means nothing then is a warning: kube-proxy does not look at it.
 */
function checkCombinations(raw: RawService, spec: RawSpec, type: Type, report: Report): void {
  if (type === 'ExternalName') checkExternalName(spec, report);
  else checkFamilies(spec, report);
  checkHeadless(spec, type, report);
  checkExternalTraffic(spec, type, report);
  checkLoadBalancerFields(raw, spec, type, report);
  checkTrafficDistribution(spec.trafficDistribution, report);
}

/** Whether an optional list or text says anything. */
function isSet(value: string | readonly unknown[] | null | undefined): boolean {
  return value !== null && value !== undefined && value.length > 0;
}

function checkExternalName(spec: RawSpec, report: Report): void {
  // It may end in a dot.
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  if (name === '') {
    report.add(['spec', 'externalName'], 'missing-field', {
      owner: 'a Service of type ExternalName',
      field: 'externalName',
      expected: 'the DNS name that it stands for',
    });
  } else {
    checkName(name, 'subdomain', ['spec', 'externalName'], report);
  }
  for (const field of ['clusterIP', 'clusterIPs'] as const) {
    if (isSet(spec[field])) report.add(['spec', field], 'bad-cluster-ips', { problem: 'external-name', field });
  }
  for (const field of ['ipFamilies', 'ipFamilyPolicy'] as const) {
    if (isSet(spec[field])) ignore(['spec', field], { reason: 'type', type: 'ExternalName' }, report);
  }
}

function checkFamilies({ ipFamilies, ipFamilyPolicy, clusterIP, clusterIPs }: RawSpec, report: Report): void {
  const families = ipFamilies ?? [];
  const again = families.findIndex((each, i) => families.indexOf(each) !== i);
  const family = families[again];
  if (family !== undefined) {
    const details = { field: `ipFamilies[${again}]`, found: findingOf(family), expected: 'each family once' };
    report.add(['spec', 'ipFamilies', again], 'bad-ip-family', details);
  } else if (ipFamilyPolicy === 'SingleStack' && families.length > 1) {
    const expected = 'PreferDualStack or RequireDualStack for two ipFamilies';
    const details = { field: 'ipFamilyPolicy', found: findingOf(ipFamilyPolicy), expected, isLeftOut: true };
    report.add(['spec', 'ipFamilyPolicy'], 'bad-ip-family', details);
  }
  if (!clusterIP && isSet(clusterIPs)) {
    report.add(['spec', 'clusterIPs'], 'missing-cluster-ip', { first: clusterIPs?.[0] ?? '' });
  }
}

function checkHeadless({ clusterIP, clusterIPs }: RawSpec, type: Type, report: Report): void {
  if (type !== 'NodePort' && type !== 'LoadBalancer') return;
  const isHeadless = (clusterIP || clusterIPs?.[0]) === 'None';
  if (!isHeadless) return;
  const path = clusterIP ? ['spec', 'clusterIP'] : ['spec', 'clusterIPs', 0];
  report.add(path, 'bad-cluster-ips', { problem: 'headless', type });
}

function checkExternalTraffic(spec: RawSpec, type: Type, report: Report): void {
  const isExternal =
    type === 'NodePort' || type === 'LoadBalancer' || (type === 'ClusterIP' && isSet(spec.externalIPs));
  if (spec.externalTrafficPolicy && !isExternal) {
    ignore(['spec', 'externalTrafficPolicy'], { reason: 'no-external-addresses', type }, report);
  }
  if (spec.healthCheckNodePort && !(type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local')) {
    ignore(['spec', 'healthCheckNodePort'], { reason: 'no-local-load-balancer' }, report);
  }
}

function checkLoadBalancerFields(raw: RawService, spec: RawSpec, type: Type, report: Report): void {
  if (type === 'LoadBalancer') return;
  const why = { reason: 'type', type } as const;
  if (isSet(spec.loadBalancerSourceRanges)) ignore(['spec', 'loadBalancerSourceRanges'], why, report);
  if (typeof spec.allocateLoadBalancerNodePorts === 'boolean') {
    ignore(['spec', 'allocateLoadBalancerNodePorts'], why, report);
  }
  const ingress = raw.status?.loadBalancer?.ingress ?? [];
  if (type === 'ExternalName' || !ingress.some(({ ip }) => Boolean(ip))) return;
  report.add(['status', 'loadBalancer', 'ingress'], 'stale-ingress', { type });
}

function checkTrafficDistribution(value: string | null | undefined, report: Report): void {
  if (!value || trafficDistributions.includes(value)) return;
  const hint = findNearest(value, trafficDistributions) ?? trafficDistributions.join(', ');
  report.add(['spec', 'trafficDistribution'], 'bad-traffic-distribution', { value, hint });
}

/** Warns of a field that means nothing for such a Service, unless something about the Service is wrong anyhow. */
function ignore(path: FieldPath, why: IgnoredFieldReason, report: Report): void {
  if (!report.hasErrors) report.add(path, 'ignored-field', { ...why, field: String(path.at(-1)) });
}
