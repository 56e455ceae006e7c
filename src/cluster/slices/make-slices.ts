import { compareText } from '../../kernel/compare.ts';
import type { Place } from '../../kernel/place.ts';
import { serviceNameLabel } from '../endpoints.ts';
import { headlessLabel } from '../../kube-proxy/skipped.ts';
import { groupBy } from '../grouping.ts';
import { zoneLabel } from '../node-context.ts';
import {
  type EndpointPort,
  type EndpointSlice,
  type FieldPath,
  type Node,
  type Pod,
  type Service,
  type ServicePortSpec,
  type SliceEndpoint,
  type Sourced,
  topologyMode,
} from '../objects.ts';
import { families, type Family, familyNames, parseAddress } from '../../kernel/address.ts';

const distributions: ReadonlySet<string> = new Set(['PreferClose', 'PreferSameZone', 'PreferSameNode']);

function addHints(
  service: Service,
  endpoints: readonly SliceEndpoint[],
  ratios: ZoneRatios | undefined,
): readonly SliceEndpoint[] {
  if (asksForZones(service)) return addZoneHints(endpoints, ratios);
  const { trafficDistribution } = service.spec;
  if (!distributions.has(trafficDistribution)) return endpoints;
  const wantsNodes = trafficDistribution === 'PreferSameNode';
  return endpoints.map((endpoint) => {
    const { ready, zone, nodeName } = endpoint.status;
    if (!ready) return endpoint;
    const zoneHints = zone === undefined ? [] : [zone];
    const nodeHints = wantsNodes && nodeName !== undefined ? [nodeName] : [];
    return { ...endpoint, status: { ...endpoint.status, zoneHints, nodeHints } };
  });
}

function asksForZones(service: Service): boolean {
  return /^[Aa]uto$/.test(topologyMode(service));
}

function addZoneHints(endpoints: readonly SliceEndpoint[], ratios: ZoneRatios | undefined): readonly SliceEndpoint[] {
  const ready = endpoints.filter(({ status }) => status.ready);
  const allocated = allocateZones(
    ready.map(({ status }) => status.zone),
    ratios,
  );
  if (!allocated) return endpoints;
  const zones = allocated.values();
  return endpoints.map((endpoint) => {
    const zone = endpoint.status.ready ? zones.next().value : undefined;
    return zone === undefined ? endpoint : { ...endpoint, status: { ...endpoint.status, zoneHints: [zone] } };
  });
}

/** How far a zone's load may exceed its share before the controller drops hints (overloadThreshold in topologycache). */
const overloadThreshold = 0.2;

const excludedLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** Zone → its share of the cluster's CPUs, sorted by zone. */
type ZoneRatios = ReadonlyMap<string, number>;

/** Returns each zone's share (TopologyCache.SetNodes); undefined if a Node lacks a zone or CPUs, or if there is only one zone. */
function readZoneRatios(nodes: readonly Node[]): ZoneRatios | undefined {
  const byZone = new Map<string, bigint>();
  let total = 0n;
  for (const { metadata, ready, nanoCPUs } of nodes) {
    if (!ready || excludedLabels.some((label) => Object.hasOwn(metadata.labels, label))) continue;
    const zone = metadata.labels[zoneLabel];
    if (!zone || nanoCPUs === 0n) return undefined;
    total += nanoCPUs;
    byZone.set(zone, (byZone.get(zone) ?? 0n) + nanoCPUs);
  }
  if (byZone.size < 2) return undefined;
  const sorted = [...byZone].toSorted(([a], [b]) => compareText(a, b));
  return new Map(sorted.map(([zone, nano]) => [zone, milliOf(nano) / milliOf(total)]));
}

function milliOf(nano: bigint): number {
  return Number((nano + 999_999n) / 1_000_000n);
}

/**
 * Returns the zone that each endpoint serves, in the order of `zones`, the zones that the endpoints are in. Undefined if hints are unknown,
 * or if the controller would set none because a zone would be overloaded (TopologyCache.AddHints). Chooses the first zone by name where the
 * controller's choice depends on map order.
 */
function allocateZones(
  zones: readonly (string | undefined)[],
  ratios: ZoneRatios | undefined,
): readonly string[] | undefined {
  const desired = ratios && desiredByZone(zones.length, ratios);
  if (!desired) return undefined;
  const own: string[] = [];
  for (const zone of zones) {
    if (zone === undefined) return undefined;
    own.push(zone);
  }
  const { giving, receiving } = findMoves(desired, countByZone(own));
  return own.map((zone) => {
    const receiver = takeOne(giving, zone) ? [...receiving.keys()].toSorted(compareText)[0] : undefined;
    if (receiver === undefined) return zone;
    takeOne(receiving, receiver);
    return receiver;
  });
}

/** Returns how many endpoints each zone should have; undefined if no number is close enough (getAllocations). */
function desiredByZone(endpoints: number, ratios: ZoneRatios): ReadonlyMap<string, number> | undefined {
  if (ratios.size > endpoints) return undefined;
  const desired = new Map<string, number>();
  let left = endpoints;
  for (const [zone, ratio] of ratios) {
    const exact = ratio * endpoints;
    const minimum = Math.ceil(exact * (1 / (1 + overloadThreshold)));
    desired.set(zone, Math.max(exact, minimum));
    left -= minimum;
  }
  return left < 0 ? undefined : desired;
}

function countByZone(zones: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const zone of zones) counts.set(zone, (counts.get(zone) ?? 0) + 1);
  return counts;
}

type ZoneCounts = Map<string, number>;

/** Returns how many endpoints each zone gives away or receives (getGivingAndReceivingZones). */
function findMoves(desired: ReadonlyMap<string, number>, allocated: ReadonlyMap<string, number>) {
  const toGive: ZoneCounts = new Map();
  const toReceive: ZoneCounts = new Map();
  for (const [zone, target] of desired) {
    const has = allocated.get(zone) ?? 0;
    if (has > target) toGive.set(zone, has - target);
    else if (has < target) toReceive.set(zone, target - has);
  }
  const giving: ZoneCounts = new Map();
  const receiving: ZoneCounts = new Map();
  for (;;) {
    const [giver, give] = findMost(toGive);
    const [receiver, receive] = findMost(toReceive);
    if ((give < 1 && receive < 1) || give < 0.5 || receive < 0.5) return { giving, receiving };
    move(toGive, giving, giver);
    move(toReceive, receiving, receiver);
  }
}

function findMost(zones: ReadonlyMap<string, number>): readonly [zone: string, number: number] {
  let most: readonly [string, number] = ['', 0];
  for (const entry of zones) if (entry[1] > most[1]) most = entry;
  return most;
}

function move(from: ZoneCounts, to: ZoneCounts, zone: string): void {
  from.set(zone, (from.get(zone) ?? 0) - 1);
  to.set(zone, (to.get(zone) ?? 0) + 1);
}

function takeOne(counts: ZoneCounts, zone: string): boolean {
  const left = counts.get(zone) ?? 0;
  if (left > 1) counts.set(zone, left - 1);
  else counts.delete(zone);
  return left > 0;
}

export interface KnownNodes {
  /** Undefined if the input has no Nodes. Every Pod's node name is then trusted. */
  readonly byName: ReadonlyMap<string, Node> | undefined;
  readonly zoneRatios: ZoneRatios | undefined;
}

export function makeKnownNodes(nodes: readonly Sourced<Node>[]): KnownNodes {
  const objects = nodes.map(({ object }) => object);
  return {
    byName: objects.length === 0 ? undefined : new Map(objects.map((node) => [node.metadata.name, node])),
    zoneRatios: readZoneRatios(objects),
  };
}

interface PodEndpoint {
  readonly pod: Sourced<Pod>;
  readonly ports: readonly EndpointPort[];
  readonly endpoint: SliceEndpoint;
}

/**
 * Makes slices like the endpointslice controller (Reconcile in k8s.io/endpointslice): in each family one slice for each set of port
 * numbers, or an empty one. The controller fills slices in map order, with 100 endpoints each. This function sorts endpoints by Pod name
 * and does not limit slices. The order also decides which endpoints serve another zone.
 */
export function makeSlices(
  service: Sourced<Service>,
  pods: readonly Sourced<Pod>[],
  nodes: KnownNodes,
): readonly Sourced<EndpointSlice>[] {
  if (service.object.terminating) return [];
  return sliceFamilies(service.object).flatMap((family) => {
    const made = pods.flatMap((pod) => makePodEndpoint(service.object, pod, family, nodes) ?? []);
    const groups = [...groupBy(made, ({ ports }) => describePorts(ports)).values()];
    const sorted = groups.flat();
    const hinted = addHints(
      service.object,
      sorted.map(({ endpoint }) => endpoint),
      nodes.zoneRatios,
    ).values();
    const slices = groups.map((group) =>
      group.map((each) => ({ ...each, endpoint: hinted.next().value ?? each.endpoint })),
    );
    return (slices.length === 0 ? [[]] : slices).map((group, i) => makeSlice(service, family, i, group));
  });
}

/** Reports whether the controller would put the Pod into a slice, if its Node is known (ShouldPodBeInEndpoints). */
export function isEndpoint({ status }: Pod): boolean {
  return status !== undefined && !status.ended && status.addresses.length > 0;
}

/** Reports whether the controller leaves the Pod out because its Node is unknown. */
export function isOnUnknownNode(
  { spec: { nodeName }, assumed }: Pod,
  service: Service,
  { byName }: KnownNodes,
): boolean {
  if (assumed || service.spec.publishNotReadyAddresses) return false;
  return nodeName === '' || (byName !== undefined && !byName.has(nodeName));
}

/** Returns the Service's families, or both if it has no address (getAddressTypesForService). */
function sliceFamilies({ spec }: Service): readonly Family[] {
  if (spec.ipFamilies.length > 0) return families.filter((family) => spec.ipFamilies.includes(familyNames[family]));
  const own = parseAddress(spec.clusterIP);
  return own ? [own.family] : families;
}

/** Follows podToEndpoint. Undefined if the controller leaves the Pod out, or if the Pod has no address of the family. */
function makePodEndpoint(
  service: Service,
  pod: Sourced<Pod>,
  family: Family,
  nodes: KnownNodes,
): PodEndpoint | undefined {
  const { metadata, spec, status, terminating, assumed } = pod.object;
  if (status === undefined || !isEndpoint(pod.object) || isOnUnknownNode(pod.object, service, nodes)) return undefined;
  // If a Pod has two addresses, the controller sorts them and kube-proxy uses the first.
  const addresses = status.addresses
    .filter((address) => address.family === family)
    .toSorted((a, b) => compareText(a.text, b.text));
  const [address] = addresses;
  if (!address) return undefined;
  const { nodeName, hostname, subdomain } = spec;
  const isNamed = subdomain === service.metadata.name && metadata.namespace === service.metadata.namespace;
  const endpoint: SliceEndpoint = {
    address,
    written: addresses.length === 1 ? undefined : addresses.map(({ text }) => text),
    hostname: (isNamed && hostname) || undefined,
    status: {
      nodeName: nodeName || undefined,
      zone: nodes.byName?.get(nodeName)?.metadata.labels[zoneLabel] || undefined,
      ready: service.spec.publishNotReadyAddresses || (status.ready && !terminating),
      serving: status.ready,
      terminating,
      zoneHints: [],
      nodeHints: [],
      ...(assumed ? { assumed } : {}),
    },
  };
  return { pod, ports: endpointPortsOf(service, pod.object), endpoint };
}

function endpointPortsOf(service: Service, { spec }: Pod): readonly EndpointPort[] {
  return service.spec.ports.flatMap((own) => {
    const port = resolveTargetPort(own, spec);
    return port === undefined ? [] : [{ name: own.name, protocol: own.protocol, port }];
  });
}

export function resolveTargetPort(
  { targetPort, protocol }: Pick<ServicePortSpec, 'targetPort' | 'protocol'>,
  { ports }: Pick<Pod['spec'], 'ports'>,
): number | undefined {
  if (typeof targetPort === 'number') return targetPort;
  return ports.find((port) => port.name === targetPort && port.protocol === protocol)?.port;
}

function describePorts(ports: readonly EndpointPort[]): string {
  return ports.map(({ name, protocol, port }) => `${name}/${protocol}/${port}`).join();
}

function makeSlice(
  { object: service, source }: Sourced<Service>,
  family: Family,
  index: number,
  group: readonly PodEndpoint[],
): Sourced<EndpointSlice> {
  const { metadata, spec } = service;
  const { [headlessLabel]: _, ...labels } = metadata.labels;
  const isHeadless = spec.clusterIP === 'None' || spec.clusterIP === '';
  const object: EndpointSlice = {
    metadata: {
      name: `${metadata.name}-${family}-${String(index).padStart(5, '0')}`,
      namespace: metadata.namespace,
      labels: { ...labels, ...(isHeadless ? { [headlessLabel]: '' } : {}), [serviceNameLabel]: metadata.name },
      annotations: {},
    },
    addressType: familyNames[family],
    ports: group[0]?.ports ?? [],
    endpoints: group.map(({ endpoint }) => endpoint),
  };
  // Locate an endpoint's fields in its Pod, and all other fields in the Service.
  const place = ([first, at]: FieldPath): Place => {
    const pod = first === 'endpoints' && typeof at === 'number' ? group[at]?.pod : undefined;
    return (pod?.source ?? source).place(['metadata', 'name']);
  };
  return { object, source: { place } };
}
