import { findingOf } from '../../diagnostics/value-in-words.ts';
import { findNearest } from '../../base/find-nearest.ts';
import type { FieldPath, Service } from '../../cluster/objects.ts';
import { checkName } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawService } from './schemas/service.ts';
import type { IgnoredFieldReason } from '../../diagnostics/services.ts';

type Spec = NonNullable<RawService['spec']>;
type Type = Service['spec']['type'];

const trafficDistributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];

/**
 * Reports fields that contradict a Service's type or each other, which the API server refuses (validateService in
 * pkg/apis/core/validation). What means nothing then is a warning: kube-proxy does not look at it.
 */
export function checkCombinations(raw: RawService, spec: Spec, type: Type, report: Report): void {
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

function checkExternalName(spec: Spec, report: Report): void {
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

function checkFamilies({ ipFamilies, ipFamilyPolicy, clusterIP, clusterIPs }: Spec, report: Report): void {
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

function checkHeadless({ clusterIP, clusterIPs }: Spec, type: Type, report: Report): void {
  if (type !== 'NodePort' && type !== 'LoadBalancer') return;
  const isHeadless = (clusterIP || clusterIPs?.[0]) === 'None';
  if (!isHeadless) return;
  const path = clusterIP ? ['spec', 'clusterIP'] : ['spec', 'clusterIPs', 0];
  report.add(path, 'bad-cluster-ips', { problem: 'headless', type });
}

function checkExternalTraffic(spec: Spec, type: Type, report: Report): void {
  const isExternal =
    type === 'NodePort' || type === 'LoadBalancer' || (type === 'ClusterIP' && isSet(spec.externalIPs));
  if (spec.externalTrafficPolicy && !isExternal) {
    ignore(['spec', 'externalTrafficPolicy'], { reason: 'no-external-addresses', type }, report);
  }
  if (spec.healthCheckNodePort && !(type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local')) {
    ignore(['spec', 'healthCheckNodePort'], { reason: 'no-local-load-balancer' }, report);
  }
}

function checkLoadBalancerFields(raw: RawService, spec: Spec, type: Type, report: Report): void {
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
