import type { PortChange } from '../base/findings/services.ts';
import type { Address } from '../kernel/address.ts';
import type { Place } from '../kernel/place.ts';
import { diagnose, type Finding, keyOfFault, distinct } from '../base/findings/finding.ts';
import { hasSelector, type ServiceWithSlices } from './endpoints.ts';
import type { Cluster, ServicePort } from './model.ts';
import { compareFullNames, fullName, type EndpointSlice, type Service, type Sourced } from './objects.ts';
import { schedulers, type ForwardingMethod } from '../kernel/ipvs/ipvs.ts';
import { foundOf } from '../base/findings/fields.ts';

/** Makes one warning for all Services with a selector for which the input has neither slices nor Endpoints. */
export function findUnserved(
  services: readonly ServiceWithSlices[],
  cluster: Cluster,
  hasWorkloads: boolean,
): readonly Finding[] {
  if (services.every(({ object, isServed }) => isServed || !hasSelector(object))) return [];
  const programmed = new Set(
    cluster.servicePorts.map(({ namespace, service }) => fullName({ namespace, name: service })),
  );
  const selecting = services.filter(({ object }) => hasSelector(object) && programmed.has(fullName(object.metadata)));
  const unserved = selecting.filter(({ isServed }) => !isServed).sort(compareFullNames);
  const [first] = unserved;
  if (!first) return [];
  const names = unserved.map(({ object }) => fullName(object.metadata));
  const details = { services: names, selecting: selecting.length, hasWorkloads };
  return [diagnose('no-endpoints-given', details, first.source.place(['metadata', 'name']))];
}

/**
 * Finds source ranges of length zero, which kube-proxy up to v1.33 puts into an ipset (open-source-range in releases.ts). The kernel
 * refuses such ranges in hash sets. kube-proxy logs the error and continues, but `ipset restore` stops.
 */
export function findUnloadableRanges({ servicePorts }: Cluster): readonly Finding[] {
  return servicePorts
    .filter(({ loadBalancerIPs }) => loadBalancerIPs.length > 0)
    .flatMap((port) =>
      port.sourceRanges.flatMap((range, index): readonly Finding[] => {
        if (range.prefixLength > 0) return [];
        const details = { servicePort: port.label, range: range.text, family: range.family };
        return [diagnose('unloadable-range', details, port.places?.sourceRange(index))];
      }),
    );
}

/**
 * Warns of Service ports with the same address, port and protocol. kube-proxy serves the Service port that it programs last, kpc the first
 * by name. The API server refuses a cluster IP or node port that is already allocated.
 */
export function findPortConflicts({ servicePorts }: Cluster): readonly Finding[] {
  const holders = new Map<string, { readonly port: ServicePort; readonly isAllocated: boolean }>();
  const diagnostics = new Map<string, Finding>();
  for (const port of servicePorts) {
    const { protocol, label } = port;
    const claim = (
      socket: { address?: string; port: number },
      findPlace: () => Place | undefined,
      isAllocated: boolean,
    ): void => {
      const what = `${socket.address ?? ''} ${socket.port} ${protocol}`;
      const holder = holders.get(what);
      if (!holder) holders.set(what, { port, isAllocated });
      else if (holder.port.label !== label || holder.port.protocol !== protocol) {
        const refused = holder.isAllocated && isAllocated ? { isRefused: true as const } : {};
        const details = { ...socket, protocol, holder: holder.port.label, rival: label, ...refused };
        const diagnostic = diagnose('address-conflict', details, findPlace());
        diagnostics.set(keyOfFault(diagnostic), diagnostic);
      }
    };
    const claimAddress = ({ text }: Address, findPlace: () => Place | undefined, isAllocated = false): void => {
      claim({ address: text, port: port.port }, findPlace, isAllocated);
    };
    claimAddress(port.clusterIP, () => port.places?.clusterIP, true);
    port.externalIPs.forEach((address, i) => claimAddress(address, () => port.places?.externalIP(i)));
    port.loadBalancerIPs.forEach((address, i) => claimAddress(address, () => port.places?.ingress(i)));
    if (port.nodePort !== 0) claim({ port: port.nodePort }, () => port.places?.nodePort, true);
  }
  return [...diagnostics.values()];
}

/** The number of rules allowed for every input. Each port, endpoint, address and source range adds `linesPerEntry` rules to this limit. */
const freeLines = 2_000_000;
const linesPerEntry = 100;

interface Size {
  readonly service: Sourced<Service>;
  readonly pairs: number;
  readonly lines: number;
}

/** Refuses input that would compile to too many rules. Their number is the product of ports, endpoints, addresses and source ranges. */
export function checkTotalSize(
  services: readonly ServiceWithSlices[],
  slices: readonly Sourced<EndpointSlice>[],
  nodeAddresses: number,
): readonly Finding[] {
  let lines = 0;
  let largest: Size | undefined;
  for (const service of services) {
    const size = measureService(service, nodeAddresses);
    lines += size.lines;
    if (!largest || size.lines > largest.lines) largest = size;
  }
  if (!largest || lines <= freeLines) return [];
  const entries = [...services.map(({ object }) => countEntries(object)), ...slices.map(countSliceEntries)].reduce(
    (sum, each) => sum + each,
    0,
  );
  const limit = freeLines + linesPerEntry * entries;
  return lines <= limit ? [] : [describeSize(largest, lines, limit)];
}

function measureService(service: ServiceWithSlices, nodeAddresses: number): Size {
  const { spec, ingress } = service.object;
  let pairs = 0;
  service.slices.forEach(({ object }) => {
    pairs += object.ports.length * object.endpoints.length;
  });
  const addresses = spec.clusterIPs.length + spec.externalIPs.length + ingress.length;
  const perPort = addresses + (spec.type === 'ClusterIP' ? 0 : nodeAddresses);
  const ranges = ingress.length * spec.loadBalancerSourceRanges.length;
  return { service, pairs, lines: spec.ports.length * (perPort + ranges) + pairs * Math.max(1, perPort) };
}

function countEntries({ spec, ingress }: Service): number {
  return spec.ports.length + spec.externalIPs.length + ingress.length + spec.loadBalancerSourceRanges.length;
}

function countSliceEntries({ object }: Sourced<EndpointSlice>): number {
  return object.ports.length + object.endpoints.length;
}

function describeSize({ service, pairs }: Size, lines: number, limit: number): Finding {
  const { metadata, spec, ingress } = service.object;
  const factors = {
    ports: spec.ports.length,
    pairs,
    addresses: spec.clusterIPs.length + spec.externalIPs.length + ingress.length,
    sourceRanges: spec.loadBalancerSourceRanges.length,
  };
  return diagnose('too-large', { lines, limit, service: fullName(metadata), factors }, service.source.place([]));
}

/** kpc's own annotations. Most of them set IPVS options of a Service. */
export const ownAnnotations = {
  /** The codes of findings that kpc lint accepts on this object, such as "external-ips, open-node-port". */
  ignore: 'kpc.dev/ignore',
  scheduler: 'kpc.dev/ipvs-scheduler',
  forwarding: 'kpc.dev/ipvs-forwarding-method',
} as const;

const names: readonly string[] = Object.values(ownAnnotations);

export function isStrayAnnotation(name: string): boolean {
  return name.startsWith('kpc.dev/') && !names.includes(name);
}

const { scheduler: schedulerAnnotation, forwarding: forwardingAnnotation } = ownAnnotations;

const forwardingMethods: readonly ForwardingMethod[] = ['masquerade', 'direct', 'tunnel'];

type Annotations = Readonly<Record<string, string>>;

export function readScheduler(annotations: Annotations): string | undefined {
  const scheduler = annotations[schedulerAnnotation];
  return schedulers.find((known) => known === scheduler);
}

export function readForwardingMethod(annotations: Annotations): ForwardingMethod | undefined {
  const method = annotations[forwardingAnnotation];
  return forwardingMethods.find((known) => known === method);
}

/**
 * Checks kpc's annotations on Services. Only masquerading can change a port, so with direct routing or tunnels the target port must equal
 * the port.
 */
export function checkAnnotations(services: readonly Sourced<Service>[], cluster: Cluster): readonly Finding[] {
  const annotated = services.filter(({ object: { metadata } }) =>
    [schedulerAnnotation, forwardingAnnotation].some((name) => name in metadata.annotations),
  );
  if (annotated.length === 0) return [];
  return annotated.flatMap((service) => {
    return [
      ...checkValue(service, schedulerAnnotation, schedulers),
      ...checkValue(service, forwardingAnnotation, forwardingMethods),
      ...checkPortChanges(service, cluster.addresses.portsOf(fullName(service.object.metadata))),
    ];
  });
}

function checkValue(
  { object, source }: Sourced<Service>,
  annotation: string,
  known: readonly string[],
): readonly Finding[] {
  const value = object.metadata.annotations[annotation];
  if (value === undefined || known.includes(value)) return [];
  const details = { field: annotation, found: foundOf(value), form: 'one-of', expected: known.join(', ') } as const;
  return [diagnose('bad-value', details, annotationPlace(source, annotation))];
}

function checkPortChanges({ object, source }: Sourced<Service>, ports: readonly ServicePort[]): readonly Finding[] {
  const method = readForwardingMethod(object.metadata.annotations);
  if (method === undefined || method === 'masquerade') return [];
  const place = annotationPlace(source, forwardingAnnotation);
  const changes = ports.flatMap(portChanges);
  return distinct(changes.map((change) => diagnose('forwarding-changes-port', { method, ...change }, place)));
}

export function portChanges({ label, port, nodePort, endpoints }: ServicePort): readonly PortChange[] {
  const targets = [...new Set(endpoints.map((endpoint) => endpoint.port))].filter((target) => target !== port);
  return [...targets.map((target) => ({ label, port, target })), ...(nodePort === 0 ? [] : [{ label, nodePort }])];
}

function annotationPlace(source: Sourced<Service>['source'], annotation: string) {
  return source.place(['metadata', 'annotations', annotation]);
}
