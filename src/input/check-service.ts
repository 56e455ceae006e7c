import { findNearest } from '../base/find-nearest.ts';
import type { FieldPath, Service } from '../cluster/objects.ts';
import { checkName } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawService } from './schemas/service.ts';
import { quote } from './wording.ts';

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
    const text = 'a Service of type ExternalName has no externalName: write the DNS name that it stands for';
    report.error(['spec', 'externalName'], 'missing-field', text);
  } else {
    checkName(name, 'subdomain', ['spec', 'externalName'], report);
  }
  for (const field of ['clusterIP', 'clusterIPs'] as const) {
    if (!isSet(spec[field])) continue;
    const text = `a Service of type ExternalName has no cluster IP: leave ${field} out, or write another type`;
    report.error(['spec', field], 'bad-cluster-ips', text);
  }
  for (const field of ['ipFamilies', 'ipFamilyPolicy'] as const) {
    if (isSet(spec[field])) ignore(['spec', field], 'of type ExternalName', report);
  }
}

function checkFamilies({ ipFamilies, ipFamilyPolicy, clusterIP, clusterIPs }: Spec, report: Report): void {
  const families = ipFamilies ?? [];
  const again = families.findIndex((family, i) => families.indexOf(family) !== i);
  if (again >= 0) {
    const text = `ipFamilies names ${families[again]} twice: write each family once`;
    report.error(['spec', 'ipFamilies', again], 'bad-ip-family', text);
  } else if (ipFamilyPolicy === 'SingleStack' && families.length > 1) {
    const text = 'ipFamilyPolicy is SingleStack, and ipFamilies names two: write PreferDualStack or RequireDualStack';
    report.warn(['spec', 'ipFamilyPolicy'], 'bad-ip-family', text);
  }
  if (!clusterIP && isSet(clusterIPs)) {
    const text = `the API server accepts clusterIPs only with a clusterIP: add clusterIP: ${clusterIPs?.[0] ?? ''}`;
    report.warn(['spec', 'clusterIPs'], 'missing-cluster-ip', text);
  }
}

function checkHeadless({ clusterIP, clusterIPs }: Spec, type: Type, report: Report): void {
  if (type !== 'NodePort' && type !== 'LoadBalancer') return;
  const isHeadless = (clusterIP || clusterIPs?.[0]) === 'None';
  if (!isHeadless) return;
  const text = `clusterIP is None, and type is ${type}: a headless Service has no ports outside the cluster; write type: ClusterIP, or no clusterIP`;
  report.error(clusterIP ? ['spec', 'clusterIP'] : ['spec', 'clusterIPs', 0], 'bad-cluster-ips', text);
}

function checkExternalTraffic(spec: Spec, type: Type, report: Report): void {
  const isExternal =
    type === 'NodePort' || type === 'LoadBalancer' || (type === 'ClusterIP' && isSet(spec.externalIPs));
  if (spec.externalTrafficPolicy && !isExternal) {
    ignore(['spec', 'externalTrafficPolicy'], `of type ${type} without externalIPs`, report);
  }
  if (spec.healthCheckNodePort && !(type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local')) {
    const which = 'that is not of type LoadBalancer with externalTrafficPolicy Local';
    ignore(['spec', 'healthCheckNodePort'], which, report);
  }
}

function checkLoadBalancerFields(raw: RawService, spec: Spec, type: Type, report: Report): void {
  if (type === 'LoadBalancer') return;
  if (isSet(spec.loadBalancerSourceRanges)) ignore(['spec', 'loadBalancerSourceRanges'], `of type ${type}`, report);
  if (typeof spec.allocateLoadBalancerNodePorts === 'boolean') {
    ignore(['spec', 'allocateLoadBalancerNodePorts'], `of type ${type}`, report);
  }
  const ingress = raw.status?.loadBalancer?.ingress ?? [];
  if (type === 'ExternalName' || !ingress.some(({ ip }) => Boolean(ip))) return;
  const text = `status has load balancer addresses, and type is ${type}: kube-proxy serves them anyway; remove them if the load balancer is gone`;
  report.warn(['status', 'loadBalancer', 'ingress'], 'stale-ingress', text);
}

function checkTrafficDistribution(value: string | null | undefined, report: Report): void {
  if (!value || trafficDistributions.includes(value)) return;
  const hint = findNearest(value, trafficDistributions) ?? trafficDistributions.join(', ');
  const text = `trafficDistribution is ${quote(value)}, which Kubernetes v1.36 does not know: write ${hint}`;
  report.warn(['spec', 'trafficDistribution'], 'bad-traffic-distribution', text);
}

/** Warns of a field that means nothing for such a Service, unless something about the Service is wrong anyhow. */
function ignore(path: FieldPath, which: string, report: Report): void {
  if (report.hasErrors) return;
  const text = `${String(path.at(-1))} means nothing for a Service ${which}, and the API server refuses it: leave it out`;
  report.warn(path, 'ignored-field', text);
}
