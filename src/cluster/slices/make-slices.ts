import { compareText } from '../../kernel/compare.ts';
import type { Place } from '../../kernel/place.ts';
import { headlessLabel, serviceNameLabel } from '../endpoints.ts';
import { groupBy } from '../grouping.ts';
import { zoneLabel } from '../node-context.ts';
import type {
  EndpointPort,
  EndpointSlice,
  FieldPath,
  Node,
  Pod,
  Service,
  ServicePortSpec,
  SliceEndpoint,
  Sourced,
} from '../objects.ts';
import { parseAddress } from '../../kernel/address.ts';
import { families, familyNames, type Family } from '../../kernel/family.ts';
import { addHints, readZoneRatios, type ZoneRatios } from './zone-hints.ts';

export interface KnownNodes {
  /** Undefined if the input has no Nodes: then every Pod's node name is trusted. */
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
 * Like the endpointslice controller (Reconcile in k8s.io/endpointslice): per family one slice per set of port numbers,
 * or an empty one. The controller fills slices in map order, 100 endpoints each; here they are sorted by Pod name and
 * unlimited. That order also decides which endpoints serve another zone.
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

/** Whether the controller would put the Pod into a slice if its Node is known (ShouldPodBeInEndpoints). */
export function isEndpoint({ status }: Pod): boolean {
  return status !== undefined && !status.ended && status.addresses.length > 0;
}

/** Whether the controller leaves the Pod out because its Node is unknown. */
export function isOnUnknownNode(
  { spec: { nodeName }, assumed }: Pod,
  service: Service,
  { byName }: KnownNodes,
): boolean {
  if (assumed || service.spec.publishNotReadyAddresses) return false;
  return nodeName === '' || (byName !== undefined && !byName.has(nodeName));
}

/** The Service's families; both if it has no address (getAddressTypesForService). */
function sliceFamilies({ spec }: Service): readonly Family[] {
  if (spec.ipFamilies.length > 0) return families.filter((family) => spec.ipFamilies.includes(familyNames[family]));
  const own = parseAddress(spec.clusterIP);
  return own ? [own.family] : families;
}

/** Follows podToEndpoint; undefined if the controller leaves the Pod out, or if the Pod has no address of the family. */
function makePodEndpoint(
  service: Service,
  pod: Sourced<Pod>,
  family: Family,
  nodes: KnownNodes,
): PodEndpoint | undefined {
  const { metadata, spec, status, terminating, assumed } = pod.object;
  if (status === undefined || !isEndpoint(pod.object) || isOnUnknownNode(pod.object, service, nodes)) return undefined;
  // If there are two, the controller sorts them and kube-proxy takes the first.
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

/** The numbers of the Service's ports in the Pod, without ports whose name no container has (FindPort). */
function endpointPortsOf(service: Service, { spec }: Pod): readonly EndpointPort[] {
  return service.spec.ports.flatMap((own) => {
    const port = resolveTargetPort(own, spec);
    return port === undefined ? [] : [{ name: own.name, protocol: own.protocol, port }];
  });
}

/** Undefined if no container has a port with its name. */
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
  // An endpoint's fields point at its Pod, all others at the Service.
  const place = ([first, at]: FieldPath): Place => {
    const pod = first === 'endpoints' && typeof at === 'number' ? group[at]?.pod : undefined;
    return (pod?.source ?? source).place(['metadata', 'name']);
  };
  return { object, source: { place } };
}
