import { explainEndpoints, isLocalNode, isUsed, type EndpointUse } from '../cluster/endpoint-choice.ts';
import { compareText } from '../kernel/compare-text.ts';
import type { EndpointStatus } from '../cluster/objects.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { Cluster, Endpoint, ServiceInfo, ServicePort } from '../cluster/model.ts';
import type { Behaviour, Release } from '../kube-proxy/releases.ts';
import type { Place } from '../kernel/place.ts';
import type { ChangeKind } from './changes/kernel-change.ts';
import type { PortFacts } from './port-facts.ts';
import type { SideServices } from './compared-side.ts';

/** One reason, in the words of Kubernetes, why a Service port differs. */
export type ServiceReason =
  /** What the kube-proxies of two releases do of the same manifests. */
  | {
      readonly kind: 'behaviour';
      readonly behaviour: Behaviour;
      readonly from: { readonly release: Release; readonly does: string };
      readonly to: { readonly release: Release; readonly does: string };
      /** To kubernetes/kubernetes. */
      readonly pullRequests: readonly number[];
      /** Set where the rules differ and what becomes of packets does not. */
      readonly samePackets?: true;
    }
  /** What a Service port has that is there on one side alone, family by family. */
  | { readonly kind: 'facts'; readonly families: readonly PortFacts[] }
  /** The whole Service, or one port of it. */
  | { readonly kind: 'service-added' | 'service-removed' | 'port-added' | 'port-removed' }
  | { readonly kind: 'port-renamed'; readonly from: string; readonly to: string }
  /** kube-proxy programs nothing for it on one side: why, there. */
  | { readonly kind: 'programmed'; readonly from: Skip; readonly to: Skip }
  | { readonly kind: 'field'; readonly field: string; readonly from: string; readonly to: string }
  /** An item of a list: externalIPs, for example. */
  | {
      readonly kind: 'list';
      readonly field: string;
      readonly added: readonly string[];
      readonly removed: readonly string[];
    }
  | { readonly kind: 'scaled'; readonly from: number; readonly to: number }
  | { readonly kind: 'endpoint-added' | 'endpoint-removed'; readonly endpoint: string; readonly state: EndpointState }
  | {
      readonly kind: 'endpoint-changed';
      readonly endpoint: string;
      readonly from: EndpointState;
      readonly to: EndpointState;
    };

export type Skip = ServiceInfo['skipped'] | 'absent';

/** What there is to say of an endpoint on one side. */
export interface EndpointState {
  readonly condition: 'ready' | 'not ready' | 'terminating' | 'terminating, not serving';
  readonly node: string | undefined;
  readonly zone?: string | undefined;
  /** Zones and nodes that are to use it, by its hints. */
  readonly hints: readonly string[];
  /** Whether the node sends it any traffic. */
  readonly used: boolean;
}

/** All that differs of one Service port, or of a Service that has none that kube-proxy knows. */
export interface ServicePortChange {
  /** "namespace/name:port" as it is called on the side TO, or FROM where it is gone. */
  readonly label: string;
  /** What it was called before, where its port was renamed. */
  readonly formerLabel: string | undefined;
  readonly change: ChangeKind;
  readonly reasons: readonly ServiceReason[];
  /** The port in the manifests of the side TO, else FROM; undefined where neither was manifests. */
  readonly place: Place | undefined;
}

/** Compares two clusters Service port by Service port; those without a difference are left out. Sorted by label. */
export function diffServices(from: SideServices, to: SideServices): readonly ServicePortChange[] {
  const before = indexCluster(from.cluster);
  const after = indexCluster(to.cluster);
  const renames = findRenames(before, after);
  const renamedFrom = new Set(renames.values());
  const changes: ServicePortChange[] = [];
  for (const [label, ports] of after.ports) {
    const formerLabel = renames.get(label);
    const old = before.ports.get(formerLabel ?? label);
    const service = serviceOf(ports, after);
    const place = ports[0]?.places?.port ?? service?.place;
    if (!old) {
      changes.push({ label, formerLabel: undefined, change: 'added', reasons: [whyAdded(ports, before)], place });
      continue;
    }
    const reasons = [
      ...(formerLabel === undefined ? [] : [renameOf(old, ports)]),
      ...diffServiceFields(serviceOf(old, before), service, ports),
      ...diffPorts(old, ports, from, to),
    ];
    if (reasons.length > 0) changes.push({ label, formerLabel, change: 'changed', reasons, place });
  }
  for (const [label, ports] of before.ports) {
    if (after.ports.has(label) || renamedFrom.has(label)) continue;
    const place = serviceOf(ports, after)?.place ?? ports[0]?.places?.port;
    changes.push({
      label,
      formerLabel: undefined,
      change: 'removed',
      reasons: [whyRemoved(ports, before, after)],
      place,
    });
  }
  for (const unprogrammed of diffUnprogrammed(before, after)) changes.push(unprogrammed);
  return changes.sort((a, b) => compareText(a.label, b.label));
}

interface ClusterIndex {
  /** "namespace/name" → Service. */
  readonly services: ReadonlyMap<string, ServiceInfo>;
  /** Label → the port in each family and protocol. */
  readonly ports: ReadonlyMap<string, readonly ServicePort[]>;
}

function indexCluster(cluster: Cluster): ClusterIndex {
  return {
    services: new Map(cluster.services.map((service) => [`${service.namespace}/${service.name}`, service])),
    ports: groupBy(cluster.servicePorts, ({ label }) => label),
  };
}

function serviceOf([port]: readonly ServicePort[], index: ClusterIndex): ServiceInfo | undefined {
  return port && index.services.get(`${port.namespace}/${port.service}`);
}

/**
 * New label → old label, where one port of a Service has another name and else the same number and protocol: kube-proxy
 * takes it for another Service port.
 */
function findRenames(before: ClusterIndex, after: ClusterIndex): ReadonlyMap<string, string> {
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

function numberOf([port]: readonly ServicePort[]): string {
  return port ? `${port.namespace}/${port.service} ${port.port}/${port.protocol}` : '';
}

function renameOf([from]: readonly ServicePort[], [to]: readonly ServicePort[]): ServiceReason {
  return { kind: 'port-renamed', from: from?.portName ?? '', to: to?.portName ?? '' };
}

function whyAdded(ports: readonly ServicePort[], before: ClusterIndex): ServiceReason {
  const old = serviceOf(ports, before);
  if (!old) return { kind: 'service-added' };
  if (old.skipped !== undefined) return { kind: 'programmed', from: old.skipped, to: undefined };
  return { kind: 'port-added' };
}

function whyRemoved(ports: readonly ServicePort[], before: ClusterIndex, after: ClusterIndex): ServiceReason {
  const service = serviceOf(ports, after);
  if (!service) return { kind: serviceOf(ports, before) ? 'service-removed' : 'port-removed' };
  if (service.skipped !== undefined) return { kind: 'programmed', from: undefined, to: service.skipped };
  return { kind: 'port-removed' };
}

/** Services that kube-proxy programs on neither side: they have names in DNS all the same. */
function diffUnprogrammed(before: ClusterIndex, after: ClusterIndex): readonly ServicePortChange[] {
  const changes: ServicePortChange[] = [];
  for (const label of new Set([...before.services.keys(), ...after.services.keys()])) {
    const from = before.services.get(label);
    const to = after.services.get(label);
    if ((from && from.skipped === undefined) || (to && to.skipped === undefined)) continue;
    const reasons = from && to ? diffHeadless(from, to) : diffPresence(from, to);
    if (reasons.length === 0) continue;
    const change = !from ? 'added' : !to ? 'removed' : 'changed';
    changes.push({ label, formerLabel: undefined, change, reasons, place: (to ?? from)?.place });
  }
  return changes;
}

function diffPresence(from: ServiceInfo | undefined, to: ServiceInfo | undefined): readonly ServiceReason[] {
  const endpoints = (service: ServiceInfo | undefined) => service?.headlessEndpoints.length ?? 0;
  return [
    { kind: to ? 'service-added' : 'service-removed' },
    { kind: 'programmed', from: from ? from.skipped : 'absent', to: to ? to.skipped : 'absent' },
    ...field('externalName', from?.externalName ?? '', to?.externalName ?? ''),
    ...(endpoints(from) === endpoints(to)
      ? []
      : [{ kind: 'scaled', from: endpoints(from), to: endpoints(to) } as const]),
  ];
}

function diffHeadless(from: ServiceInfo, to: ServiceInfo): readonly ServiceReason[] {
  const names = (service: ServiceInfo) =>
    service.headlessEndpoints.filter(({ ready }) => ready).map(({ address }) => address);
  const ports = (service: ServiceInfo) =>
    service.ports.map(({ name, port, protocol }) => `${name} ${port}/${protocol}`);
  const hosts = (service: ServiceInfo) =>
    service.headlessEndpoints.flatMap(({ hostname, address, ready }) =>
      hostname === undefined || !ready ? [] : [`${hostname} ${address}`],
    );
  return [
    ...(from.skipped === to.skipped ? [] : [{ kind: 'programmed', from: from.skipped, to: to.skipped } as const]),
    ...field('type', from.type, to.type),
    ...list('ports', ports(from), ports(to)),
    ...field('externalName', from.externalName ?? '', to.externalName ?? ''),
    ...list('addresses in DNS', names(from), names(to)),
    ...list('host names in DNS', hosts(from), hosts(to)),
  ];
}

function diffServiceFields(
  from: ServiceInfo | undefined,
  to: ServiceInfo | undefined,
  ports: readonly ServicePort[],
): readonly ServiceReason[] {
  if (!from || !to) return [];
  const name = ports[0]?.portName;
  const targetOf = (service: ServiceInfo) => {
    const found = service.ports.find((port) => port.name === name) ?? service.ports[0];
    return String(found?.targetPort ?? '');
  };
  return [
    ...field('type', from.type, to.type),
    // A port that was renamed has its target under another name.
    ...(from.ports.some((port) => port.name === name) ? field('targetPort', targetOf(from), targetOf(to)) : []),
  ];
}

/** The ports of one label on both sides, family by family; what both families say alike is said once. */
function diffPorts(
  from: readonly ServicePort[],
  to: readonly ServicePort[],
  fromSide: SideServices,
  toSide: SideServices,
): readonly ServiceReason[] {
  const reasons = new Map<string, ServiceReason>();
  const add = (reason: ServiceReason) => reasons.set(JSON.stringify(reason), reason);
  for (const port of to) {
    const old = from.find((each) => isTwin(each, port)) ?? sole(from.filter(({ family }) => family === port.family));
    if (!old) {
      add({ kind: 'list', field: 'families', added: [port.family], removed: [] });
      continue;
    }
    const ofPort = diffPort(old, port);
    for (const reason of ofPort) add(reason);
    // Nearly all Service ports are the same on both sides, and so is then what a node makes of their endpoints.
    if (ofPort.length > 0 || !isSameUse(old, port, fromSide, toSide)) {
      for (const reason of diffEndpoints(old, port, fromSide, toSide)) add(reason);
    }
    for (const reason of diffHealthCheck(old, port, fromSide, toSide)) add(reason);
  }
  for (const port of from) {
    if (to.every(({ family }) => family !== port.family))
      add({ kind: 'list', field: 'families', added: [], removed: [port.family] });
  }
  return [...reasons.values()];
}

function isTwin(a: ServicePort, b: ServicePort): boolean {
  return a.family === b.family && a.protocol === b.protocol;
}

function sole<T>(items: readonly T[]): T | undefined {
  return items.length === 1 ? items[0] : undefined;
}

function diffPort(from: ServicePort, to: ServicePort): readonly ServiceReason[] {
  const texts = (items: readonly { readonly text: string }[]) => items.map(({ text }) => text);
  return [
    ...field('protocol', from.protocol, to.protocol),
    ...field('clusterIP', from.clusterIP.text, to.clusterIP.text),
    ...field('port', String(from.port), String(to.port)),
    ...field('nodePort', numberText(from.nodePort), numberText(to.nodePort)),
    ...field('internalTrafficPolicy', policy(from.internalPolicyLocal), policy(to.internalPolicyLocal)),
    ...field('externalTrafficPolicy', policy(from.externalPolicyLocal), policy(to.externalPolicyLocal)),
    ...field('healthCheckNodePort', numberText(from.healthCheckNodePort), numberText(to.healthCheckNodePort)),
    ...field('sessionAffinity', affinity(from.affinitySeconds), affinity(to.affinitySeconds)),
    ...field('scheduler', from.scheduler ?? '', to.scheduler ?? ''),
    ...field('forwarding method', from.forwarding, to.forwarding),
    ...list('externalIPs', texts(from.externalIPs), texts(to.externalIPs)),
    ...list('load balancer addresses', texts(from.loadBalancerIPs), texts(to.loadBalancerIPs)),
    ...list('loadBalancerSourceRanges', texts(from.sourceRanges), texts(to.sourceRanges)),
  ];
}

/** A value that differs. */
export function field(name: string, from: string, to: string): readonly ServiceReason[] {
  return from === to ? [] : [{ kind: 'field', field: name, from, to }];
}

/** What a list has on one side alone; nothing where both sides have the same. */
export function list(name: string, from: readonly string[], to: readonly string[]): readonly ServiceReason[] {
  const before = new Set(from);
  const after = new Set(to);
  const added = to.filter((item) => !before.has(item));
  const removed = from.filter((item) => !after.has(item));
  return added.length + removed.length === 0 ? [] : [{ kind: 'list', field: name, added, removed }];
}

/** '' for none. */
function numberText(number: number): string {
  return number === 0 ? '' : String(number);
}

function policy(local: boolean): string {
  return local ? 'Local' : 'Cluster';
}

/** The session affinity as a Service has it. */
export function affinity(seconds: number | undefined): string {
  return seconds === undefined ? 'None' : `ClientIP for ${seconds} s`;
}

/** Whether two ports that differ in no field of their own have the same endpoints, and the same node looks at them. */
function isSameUse(from: ServicePort, to: ServicePort, fromSide: SideServices, toSide: SideServices): boolean {
  const isSameNode = fromSide.node.name === toSide.node.name && fromSide.node.zone === toSide.node.zone;
  const isSameReach = from.hasIgnoredExternalIPs === to.hasIgnoredExternalIPs;
  if (!isSameNode || !isSameReach || from.endpoints.length !== to.endpoints.length) return false;
  return from.endpoints.every((endpoint, i) => {
    const other = to.endpoints[i];
    return other !== undefined && endpoint.label === other.label && isSameStatus(endpoint.status, other.status);
  });
}

function isSameStatus(one: EndpointStatus, other: EndpointStatus): boolean {
  return (
    one.nodeName === other.nodeName &&
    one.zone === other.zone &&
    one.ready === other.ready &&
    one.serving === other.serving &&
    one.terminating === other.terminating &&
    isSameList(one.nodeHints, other.nodeHints) &&
    isSameList(one.zoneHints, other.zoneHints)
  );
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, i) => item === other[i]);
}

function diffEndpoints(
  from: ServicePort,
  to: ServicePort,
  fromSide: SideServices,
  toSide: SideServices,
): readonly ServiceReason[] {
  const statesOf = (port: ServicePort, { node }: SideServices): EndpointStates =>
    new Map(explainEndpoints(port, node).map((use) => [use.endpoint.label, describeUse(use)]));
  return diffEndpointStates(statesOf(from, fromSide), statesOf(to, toSide));
}

/** By "ip:port". */
type EndpointStates = ReadonlyMap<string, EndpointState>;

/** How many endpoints there are, and which come, go and change. */
export function diffEndpointStates(before: EndpointStates, after: EndpointStates): readonly ServiceReason[] {
  const reasons: ServiceReason[] = [];
  if (before.size !== after.size) reasons.push({ kind: 'scaled', from: before.size, to: after.size });
  for (const [endpoint, state] of after) {
    const old = before.get(endpoint);
    if (!old) reasons.push({ kind: 'endpoint-added', endpoint, state });
    else if (JSON.stringify(old) !== JSON.stringify(state)) {
      reasons.push({ kind: 'endpoint-changed', endpoint, from: old, to: state });
    }
  }
  for (const [endpoint, state] of before) {
    if (!after.has(endpoint)) reasons.push({ kind: 'endpoint-removed', endpoint, state });
  }
  return reasons;
}

/** kube-proxy answers on the health check node port by how many of the Service's ready endpoints are on the node. */
function diffHealthCheck(
  from: ServicePort,
  to: ServicePort,
  fromSide: SideServices,
  toSide: SideServices,
): readonly ServiceReason[] {
  if (from.healthCheckNodePort === 0 || to.healthCheckNodePort === 0) return [];
  const name = `ready endpoints on this node that health check node port ${to.healthCheckNodePort} answers for`;
  return field(name, String(countLocal(from, fromSide)), String(countLocal(to, toSide)));
}

function countLocal({ namespace, service, family }: ServicePort, { cluster, node }: SideServices): number {
  return cluster.healthChecks
    .filter((check) => check.namespace === namespace && check.service === service && check.family === family)
    .reduce((sum, check) => sum + check.readyEndpoints.filter(({ nodeName }) => isLocalNode(nodeName, node)).length, 0);
}

function describeUse({ endpoint, cluster, local }: EndpointUse): EndpointState {
  return {
    condition: conditionOf(endpoint),
    node: endpoint.status.nodeName,
    zone: endpoint.status.zone,
    hints: [...endpoint.status.nodeHints, ...endpoint.status.zoneHints],
    used: isUsed(cluster) || isUsed(local),
  };
}

/** An endpoint's conditions in words. */
export function conditionOf({ status: { ready, serving, terminating } }: Endpoint): EndpointState['condition'] {
  if (ready) return 'ready';
  if (!terminating) return 'not ready';
  return serving ? 'terminating' : 'terminating, not serving';
}
