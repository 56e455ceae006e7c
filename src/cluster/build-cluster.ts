import { uniqueBy } from './grouping.ts';
import { type Address, families, type Family, familyNames, parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Behaviours } from '../kube-proxy/releases.ts';
import { headlessLabel, proxyNameLabel, type SkipReason } from '../kube-proxy/skipped.ts';
import {
  endpointsByPort,
  pickFromRivals,
  sliceFamily,
  writtenAddresses,
  type HintReading,
  type ServiceWithSlices,
} from './endpoints.ts';
import { indexCluster } from './address-index.ts';
import { compareText } from '../kernel/compare.ts';
import { runsOnNode } from './endpoint-choice.ts';
import { readForwardingMethod, readScheduler } from './check-services.ts';
import {
  servicePortLabel,
  type Cluster,
  type Endpoint,
  type NodeContext,
  type ServiceHealthCheck,
  type ServiceInfo,
  type ServicePort,
  type ServicePortPlaces,
  type ServiceRange,
} from './model.ts';
import type { Place } from '../kernel/place.ts';
import {
  endpointSources,
  topologyMode,
  type EndpointSlice,
  type Service,
  type ObjectSource,
  type Sourced,
} from './objects.ts';

/** Builds the cluster that all modes compile from. The order of the input has no effect. Skips addresses that cannot be parsed. */
export function buildCluster(
  services: readonly ServiceWithSlices[],
  behaviours: Behaviours,
  ranges: readonly ServiceRange[] = [],
): Cluster {
  const described: ServiceInfo[] = [];
  const servicePorts: ServicePort[] = [];
  const healthChecks: ServiceHealthCheck[] = [];
  services.toSorted(compareServices).forEach((service) => {
    const info = makeServiceInfo(service, behaviours);
    described.push(info);
    if (info.skipped !== undefined) return;
    addServicePorts(service, behaviours, servicePorts);
    addHealthChecks(service.object, service.slices, behaviours, healthChecks);
  });
  return indexCluster({
    services: described,
    servicePorts: servicePorts.sort(compareServicePorts),
    healthChecks,
    serviceCidrs: behaviours.has('service-cidrs') ? ranges : [],
  });
}

/** Returns the cluster with one node's choice among endpoints with equal addresses; the same value if there was nothing to choose. */
export function clusterOfNode(cluster: Cluster, node: Pick<NodeContext, 'name'>, behaviours: Behaviours): Cluster {
  // In these releases, all nodes make the same choice, so it is already made.
  if (behaviours.has('running-endpoint-first')) return cluster;
  let changed = false;
  const servicePorts = cluster.servicePorts.map((port) => {
    const endpoints = pickFromRivals(port.endpoints, (endpoint) => runsOnNode(endpoint, node));
    if (endpoints === port.endpoints) return port;
    changed = true;
    return { ...port, endpoints };
  });
  return changed ? indexCluster({ ...cluster, servicePorts }) : cluster;
}

export function compareServicePorts(a: ServicePort, b: ServicePort): number {
  return (
    compareText(a.namespace, b.namespace) ||
    compareText(a.service, b.service) ||
    compareText(a.portName, b.portName) ||
    compareText(a.protocol, b.protocol) ||
    compareText(a.family, b.family)
  );
}

function compareServices({ object: a }: Sourced<Service>, { object: b }: Sourced<Service>): number {
  return compareText(a.metadata.namespace, b.metadata.namespace) || compareText(a.metadata.name, b.metadata.name);
}

/** Returns why kube-proxy programs nothing for a Service (its informer's labels, then ShouldSkipService); undefined if it does. */
function skipReason({ metadata: { labels }, spec }: Service, behaviours: Behaviours): SkipReason | undefined {
  // DNS answers for these Services in their own ways, whatever their labels.
  if (spec.type === 'ExternalName') return 'external-name';
  if (spec.clusterIP === 'None') return 'headless';
  if (proxyNameLabel in labels) return 'other-proxy';
  if (headlessLabel in labels && !behaviours.has('separate-watches')) return 'headless-label';
  return spec.clusterIP === '' ? 'no-cluster-ip' : undefined;
}

function makeServiceInfo(
  { object: service, source, slices, isServed }: ServiceWithSlices,
  behaviours: Behaviours,
): ServiceInfo {
  const skipped = skipReason(service, behaviours);
  const { namespace, name } = service.metadata;
  return {
    namespace,
    name,
    type: service.spec.type,
    skipped,
    clusterIPs: service.spec.clusterIPs,
    externalName: service.spec.externalName,
    ports: service.spec.ports,
    endpointsGiven: (skipped === undefined || skipped === 'headless') && !isServed ? false : undefined,
    sources: endpointSources(service),
    headlessEndpoints: skipped === 'headless' ? headlessEndpoints(slices) : none,
    place: source.place(paths.name),
  };
}

function headlessEndpoints(slices: readonly Sourced<EndpointSlice>[]): ServiceInfo['headlessEndpoints'] {
  const withAddresses = slices.filter(({ object }) => sliceFamily(object) !== undefined);
  const found = withAddresses.flatMap(({ object }) =>
    object.endpoints.flatMap((endpoint) =>
      writtenAddresses(endpoint).map((address) => ({
        address,
        hostname: endpoint.hostname,
        ready: endpoint.status.ready,
      })),
    ),
  );
  return uniqueBy(found, ({ address }) => address).sort((a, b) => compareText(a.address, b.address));
}

function addServicePorts(
  { object: service, source, slices }: ServiceWithSlices,
  behaviours: Behaviours,
  into: ServicePort[],
): void {
  const { namespace, name } = service.metadata;
  const hints = chooseHints(service, behaviours);
  const policies = readPolicies(service, behaviours);
  for (const family of families) {
    const clusterIP = clusterIPOf(service, family);
    if (!clusterIP) continue;
    const endpoints = endpointsByPort(slices, family, behaviours, hints);
    const all = indexServiceAddresses(service, family, behaviours);
    const ignored = !behaviours.has('external-ips') && all.externalIPs.length > 0;
    const addresses = ignored ? { ...all, externalIPs: [] } : all;
    distinctPorts(service).forEach(({ index, port }) => {
      into.push({
        namespace,
        service: name,
        portName: port.name,
        protocol: port.protocol,
        label: servicePortLabel(namespace, name, port.name),
        family,
        clusterIP,
        port: port.port,
        nodePort: port.nodePort,
        externalIPs: addresses.externalIPs,
        hasIgnoredExternalIPs: ignored ? true : undefined,
        loadBalancerIPs: addresses.loadBalancerIPs,
        sourceRanges: addresses.sourceRanges,
        affinitySeconds: policies.affinitySeconds,
        internalPolicyLocal: policies.internalPolicyLocal,
        externalPolicyLocal: policies.externalPolicyLocal,
        healthCheckNodePort: policies.healthCheckNodePort,
        scheduler: policies.scheduler,
        forwarding: policies.forwarding,
        endpoints: endpoints.get(`${port.name}/${port.protocol}`) ?? [],
        places: new FieldPlaces(source, index, addresses),
      });
    });
  }
}

/** Decides which hints kube-proxy reads (canUseTopology in pkg/proxy/topology.go, up to v1.32). */
function chooseHints(service: Service, behaviours: Behaviours): HintReading {
  const always = behaviours.has('zone-hints-without-annotation');
  return {
    zones: behaviours.has('zone-hints') && (always || !['', 'disabled', 'Disabled'].includes(topologyMode(service))),
    nodes: behaviours.has('node-hints'),
  };
}

/** If two ports have the same name and protocol, the later one wins, as in kube-proxy's map. */
function distinctPorts({ spec }: Service) {
  const ports = spec.ports.map((port, index) => ({ index, port }));
  if (ports.length < 2) return ports;
  return uniqueBy(ports, ({ port }) => `${port.name}/${port.protocol}`);
}

function readPolicies(service: Service, behaviours: Behaviours) {
  const { spec } = service;
  const follows = behaviours.has('traffic-policies');
  const external = follows && (spec.type !== 'ClusterIP' || spec.externalIPs.length > 0);
  return {
    affinitySeconds: spec.sessionAffinity === 'ClientIP' ? spec.sessionAffinityTimeout : 0,
    internalPolicyLocal: follows && spec.internalTrafficPolicy === 'Local',
    externalPolicyLocal: external && spec.externalTrafficPolicy === 'Local',
    healthCheckNodePort: needsHealthCheck(service, behaviours) ? spec.healthCheckNodePort : 0,
    scheduler: readScheduler(service.metadata.annotations) ?? '',
    forwarding: readForwardingMethod(service.metadata.annotations) ?? 'masquerade',
  } satisfies Partial<ServicePort>;
}

function needsHealthCheck(service: Service, behaviours: Behaviours): boolean {
  if (!behaviours.has('traffic-policies')) return false;
  return service.spec.type === 'LoadBalancer' && service.spec.externalTrafficPolicy === 'Local';
}

interface ServiceAddresses extends Pick<ServicePort, 'externalIPs' | 'loadBalancerIPs' | 'sourceRanges'> {
  readonly externalIPIndexes: readonly number[];
  readonly ingressIndexes: readonly number[];
  readonly rangeIndexes: readonly number[];
}

const noAddresses: ServiceAddresses = {
  externalIPs: [],
  externalIPIndexes: [],
  loadBalancerIPs: [],
  ingressIndexes: [],
  sourceRanges: [],
  rangeIndexes: [],
};

function indexServiceAddresses(service: Service, family: Family, behaviours: Behaviours): ServiceAddresses {
  const { externalIPs: external, loadBalancerSourceRanges } = service.spec;
  if (external.length + service.ingress.length + loadBalancerSourceRanges.length === 0) return noAddresses;
  const externalIPs = indexAddresses(external, family);
  const ingress = indexAddresses(
    service.ingress.map(({ ip, ipMode }) =>
      ipMode === 'VIP' || !behaviours.has('load-balancer-ip-mode') ? (ip ?? '') : '',
    ),
    family,
  );
  const followed = behaviours.has('traffic-policies') ? loadBalancerSourceRanges : [];
  const ranges = followed.flatMap((text, index) => {
    const range = parseNetwork(text.trim());
    return range?.family === family ? [[index, range] as const] : [];
  });
  // A range of length zero admits every client, as if there were no ranges.
  const isOpen = behaviours.has('open-source-range') && ranges.some(([, range]) => range.prefixLength === 0);
  return {
    externalIPs: externalIPs.map(([, address]) => address),
    externalIPIndexes: externalIPs.map(([index]) => index),
    loadBalancerIPs: ingress.map(([, address]) => address),
    ingressIndexes: ingress.map(([index]) => index),
    sourceRanges: isOpen ? [] : ranges.map(([, range]) => range),
    rangeIndexes: ranges.map(([index]) => index),
  };
}

function indexAddresses(texts: readonly string[], family: Family): readonly (readonly [number, Address])[] {
  return texts.flatMap((text, index) => {
    const address = parseAddress(text);
    return address?.family === family ? [[index, address] as const] : [];
  });
}

/** Returns the cluster IP of a family (GetClusterIPByFamily). Without ipFamilies, only the field clusterIP counts. */
function clusterIPOf({ spec }: Service, family: Family): Address | undefined {
  const text =
    spec.ipFamilies.length === 0 ? spec.clusterIP : spec.clusterIPs[spec.ipFamilies.indexOf(familyNames[family])];
  const address = text === undefined ? undefined : parseAddress(text);
  return address?.family === family ? address : undefined;
}

const none: readonly never[] = [];

const paths = {
  name: ['metadata', 'name'],
  clusterIP: ['spec', 'clusterIP'],
  firstPort: ['spec', 'ports', 0],
} as const;

class FieldPlaces implements ServicePortPlaces {
  readonly #source: ObjectSource;
  readonly #index: number;
  readonly #at: ServiceAddresses;

  constructor(source: ObjectSource, index: number, at: ServiceAddresses) {
    this.#source = source;
    this.#index = index;
    this.#at = at;
  }

  get port(): Place {
    return this.#source.place(this.#index === 0 ? paths.firstPort : ['spec', 'ports', this.#index]);
  }

  get clusterIP(): Place {
    return this.#source.place(paths.clusterIP);
  }

  get nodePort(): Place {
    return this.#source.place(['spec', 'ports', this.#index, 'nodePort']);
  }

  externalIP(i: number): Place {
    return this.#source.place(['spec', 'externalIPs', this.#at.externalIPIndexes[i] ?? 0]);
  }

  ingress(i: number): Place {
    return this.#source.place(['status', 'loadBalancer', 'ingress', this.#at.ingressIndexes[i] ?? 0, 'ip']);
  }

  sourceRange(i: number): Place {
    return this.#source.place(['spec', 'loadBalancerSourceRanges', this.#at.rangeIndexes[i] ?? 0]);
  }
}

/** Adds health checks with the ready endpoints of all ports, as kube-proxy counts them (LocalReadyEndpoints). */
function addHealthChecks(
  service: Service,
  slices: readonly Sourced<EndpointSlice>[],
  behaviours: Behaviours,
  into: ServiceHealthCheck[],
): void {
  const port = service.spec.healthCheckNodePort;
  if (!needsHealthCheck(service, behaviours) || port === 0 || service.spec.ports.length === 0) return;
  const { namespace, name } = service.metadata;
  for (const family of families) {
    if (clusterIPOf(service, family) === undefined) continue;
    const ready = readyEndpoints(slices, family, behaviours);
    into.push({ namespace, service: name, family, port, readyEndpoints: ready });
  }
}

/** Returns the endpoints that nodes might choose from an endpoint and its rivals: the last one on each node. */
function asOwnNodesSee(endpoint: Endpoint): readonly Endpoint[] {
  if (!endpoint.rivals) return [endpoint];
  return uniqueBy([endpoint, ...endpoint.rivals], ({ status }) => status.nodeName);
}

function readyEndpoints(
  slices: readonly Sourced<EndpointSlice>[],
  family: Family,
  behaviours: Behaviours,
): ServiceHealthCheck['readyEndpoints'] {
  const found = new Map<string, { readonly address: string; readonly nodeName: string }>();
  const hints = { zones: false, nodes: false };
  for (const endpoints of endpointsByPort(slices, family, behaviours, hints).values()) {
    for (const { address, status } of endpoints.flatMap(asOwnNodesSee)) {
      const { nodeName, ready } = status;
      if (!ready || nodeName === undefined) continue;
      found.set(`${address.text} ${nodeName}`, { address: address.text, nodeName });
    }
  }
  return [...found.values()].sort((a, b) => compareText(a.address, b.address) || compareText(a.nodeName, b.nodeName));
}
