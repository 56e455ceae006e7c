import { explainEndpoints, isUsedFor } from '../../cluster/endpoint-choice.ts';
import { groupBy, uniqueBy } from '../../cluster/grouping.ts';
import { serviceName, type Cluster, type Endpoint, type ServiceInfo, type ServicePort } from '../../cluster/model.ts';
import { stalePortsOf } from '../../cluster/stale-slices.ts';
import { changedSources, fullName } from '../../cluster/objects.ts';
import { type Family, familyNames, parseAddress } from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';
import type { Place } from '../../kernel/place.ts';
import { kindOfChange, type ChangeKind } from '../changes/kernel-change.ts';
import { healthAnswerOf, isSameAnswer } from '../../snapshot/health-checks.ts';
import { faultsOfPort } from '../../snapshot/faults.ts';
import type { CompiledSnapshot, PortFault } from '../../snapshot/snapshot.ts';
import {
  diffEndpointStates,
  diffFields,
  fieldReason,
  ipModeReasons,
  listReason,
  programmed,
  scaled,
  type EndpointState,
  uniqueReasons,
  type ServiceReason,
} from './service-reasons.ts';

export interface ServicePortChange {
  /** "namespace/name:port" as in TO, or as in FROM if TO lacks the port. */
  readonly label: string;
  readonly formerLabel?: string | undefined;
  readonly change: ChangeKind;
  readonly reasons: readonly ServiceReason[];
  /** The port's place in TO's manifests, or else in FROM's. Undefined if neither side has manifests. */
  readonly place: Place | undefined;
}

export interface ServiceChange extends ServicePortChange {
  readonly service: string;
}

/** Compares two clusters' Service ports. Returns the ports that differ, sorted by label. */
export function diffServices(from: CompiledSnapshot, to: CompiledSnapshot): readonly ServiceChange[] {
  const [before, after] = [indexByLabel(from.cluster), indexByLabel(to.cluster)];
  const renames = findRenames(before, after);
  const renamedFrom = new Set(renames.values());
  const sources = diffSources(from, to);
  const stale = new Set([...stalePortsOf(from, to).keys(), ...stalePortsOf(to, from).keys()]);
  const answers = diffHealthAnswers(from, to);
  const changes: ServiceChange[] = [...diffUnprogrammed(before, after, sources)];
  for (const [label, ports] of after.ports) {
    const name = serviceOfPorts(ports);
    const formerLabel = renames.get(label);
    const old = before.ports.get(formerLabel ?? label);
    const service = serviceOfPort(ports, after);
    const place = ports[0]?.places?.port ?? service?.place;
    const isStale = stale.has(label) || (formerLabel !== undefined && stale.has(formerLabel));
    const faultsSince = (earlier: readonly ServicePort[]) => (isStale ? [] : newFaults(earlier, ports, from, to));
    if (!old) {
      const other = serviceOfPort(ports, before);
      const reasons = [...whyOneSided('added', other), ...diffNames(other, service), ...faultsSince([])];
      changes.push({ label, service: name, change: 'added', reasons, place });
      continue;
    }
    const reasons = [
      ...(formerLabel === undefined ? [] : diffPortNames(old, ports)),
      ...diffServiceFields(serviceOfPort(old, before), service, ports[0]?.portName),
      ...sources(name),
      ...answers(name),
      ...ipModeReasons(name, from, to),
      ...diffPorts(old, ports, from, to, isStale),
    ];
    if (reasons.length === 0) continue;
    const all = [...reasons, ...faultsSince(old)];
    changes.push({ label, service: name, formerLabel, change: 'changed', reasons: all, place });
  }
  for (const [label, ports] of before.ports) {
    if (after.ports.has(label) || renamedFrom.has(label)) continue;
    const service = serviceOfPort(ports, after);
    const place = service?.place ?? ports[0]?.places?.port;
    const reasons = [...whyOneSided('removed', service), ...diffNames(serviceOfPort(ports, before), service)];
    changes.push({ label, service: serviceOfPorts(ports), change: 'removed', reasons, place });
  }
  return changes.sort((a, b) => compareText(a.label, b.label));
}

function newFaults(
  before: readonly ServicePort[],
  after: readonly ServicePort[],
  from: CompiledSnapshot,
  to: CompiledSnapshot,
): readonly ServiceReason[] {
  const known = new Set(before.flatMap((port) => faultsOfPort(port, from).map(keyOfPortFault)));
  const fresh = after.flatMap((port) => faultsOfPort(port, to)).filter((fault) => !known.has(keyOfPortFault(fault)));
  return uniqueBy(fresh, keyOfPortFault).map((fault) => ({ kind: 'fault', fault }));
}

/** Returns a key that ignores which other Services have the same fault and, for selects-nothing, which Pods nearly match. */
function keyOfPortFault({ code, arguments: details }: PortFault): string {
  return code === 'selects-nothing' ? code : JSON.stringify([code, { ...details, services: undefined }]);
}

interface ClusterIndex {
  readonly services: ReadonlyMap<string, ServiceInfo>;
  readonly ports: ReadonlyMap<string, readonly ServicePort[]>;
}

function indexByLabel(cluster: Cluster): ClusterIndex {
  return {
    services: new Map(cluster.services.map((service) => [fullName(service), service])),
    ports: groupBy(cluster.servicePorts, ({ label }) => label),
  };
}

function serviceOfPort(ports: readonly ServicePort[], index: ClusterIndex): ServiceInfo | undefined {
  return index.services.get(serviceOfPorts(ports));
}

function serviceOfPorts([port]: readonly ServicePort[]): string {
  return port ? serviceName(port) : '';
}

export const sourceFields = ['selector', 'publishNotReadyAddresses', 'targetPort'] as const;

export const zoneFields = ['trafficDistribution', 'topology-mode'] as const;

function diffSources(from: CompiledSnapshot, to: CompiledSnapshot): (service: string) => readonly ServiceReason[] {
  return (service) => {
    const [old, fresh] = [from, to].map((side) => side.info(service)?.sources);
    if (!old || !fresh) return [];
    return changedSources(old, fresh).flatMap((name) => fieldReason(name, old[name], fresh[name]));
  };
}

/** Compares kube-proxy's answers to load balancers' health checks, if both sides have a check. No rule shows these answers. */
function diffHealthAnswers(
  from: CompiledSnapshot,
  to: CompiledSnapshot,
): (service: string) => readonly ServiceReason[] {
  const [before, after] = [from, to].map(({ cluster }) => groupBy(cluster.healthChecks, serviceName));
  return (service) => {
    const reasons = (before?.get(service) ?? []).flatMap((check) => {
      const other = after?.get(service)?.find(({ family }) => family === check.family);
      if (!other) return [];
      const [old, fresh] = [healthAnswerOf(check, from), healthAnswerOf(other, to)];
      return isSameAnswer(old, fresh) ? [] : fieldReason('health check', String(old.status), String(fresh.status));
    });
    return uniqueReasons(reasons);
  };
}

/** Maps new labels to old ones, for renamed ports that kept their number and protocol. To kube-proxy, these are different ports. */
function findRenames(before: ClusterIndex, after: ClusterIndex): ReadonlyMap<string, string> {
  const numberOf = ([port]: readonly ServicePort[]) =>
    port ? `${port.namespace}/${port.service} ${port.port}/${port.protocol}` : '';
  const gone = new Map<string, string>();
  for (const [label, ports] of before.ports) if (!after.ports.has(label)) gone.set(numberOf(ports), label);
  const renames = new Map<string, string>();
  for (const [label, ports] of after.ports) {
    const old = before.ports.has(label) ? undefined : gone.get(numberOf(ports));
    if (old === undefined) continue;
    renames.set(label, old);
    gone.delete(numberOf(ports));
  }
  return renames;
}

function diffPortNames([old]: readonly ServicePort[], [fresh]: readonly ServicePort[]): readonly ServiceReason[] {
  return [{ kind: 'port-renamed', from: old?.portName ?? '', to: fresh?.portName ?? '' }];
}

function whyOneSided(change: 'added' | 'removed', other: ServiceInfo | undefined): readonly ServiceReason[] {
  if (!other) return [{ kind: `service-${change}` }];
  if (other.skipped === undefined) return [{ kind: `port-${change}` }];
  return change === 'added' ? programmed(other.skipped, undefined) : programmed(undefined, other.skipped);
}

/** Compares Services that kube-proxy programs on neither side but that have DNS names. */
function diffUnprogrammed(
  before: ClusterIndex,
  after: ClusterIndex,
  sources: (service: string) => readonly ServiceReason[],
): readonly ServiceChange[] {
  return [...new Set([...before.services.keys(), ...after.services.keys()])].flatMap((label) => {
    const [from, to] = [before.services.get(label), after.services.get(label)];
    if ([from, to].some((service) => service && service.skipped === undefined)) return [];
    const counts = [from, to].map((service) => service?.headlessEndpoints.length ?? 0);
    const reasons: readonly ServiceReason[] = [
      ...(from && to ? [] : [{ kind: to ? 'service-added' : 'service-removed' } as const]),
      ...programmed(from ? from.skipped : 'absent', to ? to.skipped : 'absent'),
      ...(from && to
        ? [...fieldReason('type', from.type, to.type), ...listReason('ports', portsOf(from), portsOf(to))]
        : []),
      ...fieldReason('externalName', from?.externalName ?? '', to?.externalName ?? ''),
      ...sources(label),
      ...(from && to ? diffNames(from, to) : scaled(counts[0] ?? 0, counts[1] ?? 0)),
    ];
    return reasons.length === 0
      ? []
      : [{ label, service: label, change: kindOfChange(from, to), reasons, place: (to ?? from)?.place }];
  });
}

function portsOf({ ports }: ServiceInfo): readonly string[] {
  return ports.map(({ name, port, protocol }) => `${name === '' ? '' : `${name} `}${port}/${protocol}`);
}

/** Compares the DNS names of Pods, which only a headless Service has. Returns nothing for an added or removed Service. */
function diffNames(from: ServiceInfo | undefined, to: ServiceInfo | undefined): readonly ServiceReason[] {
  if (!from || !to) return [];
  const ready = [from, to].map((service) => service.headlessEndpoints.filter((endpoint) => endpoint.ready));
  const [names = [], others = []] = ready.map((endpoints) => endpoints.map(({ address }) => address));
  const [hosts = [], otherHosts = []] = ready.map((endpoints) =>
    endpoints.flatMap(({ hostname, address }) => (hostname === undefined ? [] : [`${hostname} ${address}`])),
  );
  return [...listReason('addresses in DNS', names, others), ...listReason('hostnames', hosts, otherHosts)];
}

function diffServiceFields(
  from: ServiceInfo | undefined,
  to: ServiceInfo | undefined,
  name: string | undefined,
): readonly ServiceReason[] {
  if (!from || !to) return [];
  const targetOf = ({ ports }: ServiceInfo) =>
    String((ports.find((port) => port.name === name) ?? ports[0])?.targetPort ?? '');
  return [
    ...fieldReason('type', from.type, to.type),
    ...diffPrimaryFamily(from, to),
    // If the port was renamed, `from` has no port of this name, so targetPort is not compared.
    ...(from.ports.some((port) => port.name === name) ? fieldReason('targetPort', targetOf(from), targetOf(to)) : []),
  ];
}

/**
 * Compares the order of families. clusterIP has the first family, and pods get clusterIP in their environment. Families that only one side
 * has are reported with the ports.
 */
function diffPrimaryFamily(from: ServiceInfo, to: ServiceInfo): readonly ServiceReason[] {
  if (from.clusterIPs.length < 2 && to.clusterIPs.length < 2) return [];
  const [old, fresh] = [from, to].map(({ clusterIPs }) =>
    clusterIPs.flatMap((text) => parseAddress(text)?.family ?? []),
  );
  if (!old || !fresh || old.toSorted().join() !== fresh.toSorted().join()) return [];
  const words = (order: readonly Family[]) => order.map((family) => familyNames[family]).join(', ');
  return fieldReason('ipFamilies', words(old), words(fresh));
}

/** Compares the ports with one label in each family. Skips the endpoints of stale ports. Lists a reason that both families share once. */
function diffPorts(
  from: readonly ServicePort[],
  to: readonly ServicePort[],
  fromSide: CompiledSnapshot,
  toSide: CompiledSnapshot,
  isStale: boolean,
): readonly ServiceReason[] {
  const reasons: ServiceReason[] = [];
  for (const port of to) {
    const ofFamily = from.filter(({ family }) => family === port.family);
    const old =
      ofFamily.find(({ protocol }) => protocol === port.protocol) ?? (ofFamily.length === 1 ? ofFamily[0] : undefined);
    if (!old) {
      reasons.push(...listReason('families', [], [port.family]));
      continue;
    }
    const ofPort = [...fieldReason('protocol', old.protocol, port.protocol), ...diffFields(old, port)];
    reasons.push(...ofPort);
    // Endpoints are compared only if the port or the node's use of it differs. For most Service ports, neither does.
    if (!isStale && (ofPort.length > 0 || !isSameUse(old, port, fromSide, toSide))) {
      const [before, after] = [endpointStates(old, fromSide, toSide), endpointStates(port, toSide, fromSide)];
      for (const each of diffEndpointStates(before, after)) reasons.push(each);
    }
  }
  for (const port of from) {
    if (to.every(({ family }) => family !== port.family)) reasons.push(...listReason('families', [port.family], []));
  }
  return uniqueReasons(reasons);
}

function isSameUse(from: ServicePort, to: ServicePort, fromSide: CompiledSnapshot, toSide: CompiledSnapshot): boolean {
  const isSameNode = fromSide.node.name === toSide.node.name && fromSide.node.zone === toSide.node.zone;
  const isSameReach = from.hasIgnoredExternalIPs === to.hasIgnoredExternalIPs;
  if (!isSameNode || !isSameReach || from.endpoints.length !== to.endpoints.length) return false;
  if (from.endpoints.length === 0 && isUngiven(serviceName(from), fromSide) !== isUngiven(serviceName(to), toSide))
    return false;
  return from.endpoints.every(({ label, status }, i) => {
    const other = to.endpoints[i];
    return (
      other?.label === label &&
      (['nodeName', 'zone', 'ready', 'serving', 'terminating', 'nodeHints', 'zoneHints'] as const).every(
        (name) => String(status[name]) === String(other.status[name]),
      )
    );
  });
}

export function isUngiven(service: string, side: CompiledSnapshot): boolean {
  return side.info(service)?.endpointsGiven === false;
}

function endpointStates(
  port: ServicePort,
  side: CompiledSnapshot,
  other: CompiledSnapshot,
): ReadonlyMap<string, EndpointState> | undefined {
  if (side.kind === other.kind && isUngiven(serviceName(port), side)) return undefined;
  return new Map(
    explainEndpoints(port, side.node).map(({ endpoint, cluster, local }) => {
      const { nodeName, zone, nodeHints, zoneHints } = endpoint.status;
      const used = isUsedFor(cluster) || isUsedFor(local);
      const ofOwn = !used && side.node.name === '' && endpoint.status.ready ? { usedByOwnNode: true as const } : {};
      const hints = [...nodeHints, ...zoneHints];
      return [endpoint.label, { condition: conditionOf(endpoint), node: nodeName, zone, hints, used, ...ofOwn }];
    }),
  );
}

export function conditionOf({ status: { ready, serving, terminating } }: Endpoint): EndpointState['condition'] {
  if (ready) return 'ready';
  if (!terminating) return 'not ready';
  return serving ? 'terminating' : 'terminating, unready';
}
