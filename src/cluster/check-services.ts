import { joinHostPort, type Address } from '../kernel/address.ts';
import { compareText } from '../kernel/compare-text.ts';
import type { Place } from '../kernel/place.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { hasSelector, type ServiceWithSlices } from './endpoints.ts';
import type { Cluster, ServicePort } from './model.ts';
import { fullName, type EndpointSlice, type Service, type Sourced } from './objects.ts';

/**
 * One warning for all Services with a selector that the input holds neither slices nor Endpoints of. In a cluster each has
 * one: their absence says that the input is not all there is.
 */
export function findUnserved(
  services: readonly ServiceWithSlices[],
  cluster: Cluster,
  /** Whether the input holds workloads that Pods could be assumed of. */
  hasWorkloads: boolean,
): readonly Diagnostic[] {
  // Mostly there are none, and then it does not matter how many select.
  if (services.every(({ object, isServed }) => isServed || !hasSelector(object))) return [];
  const programmed = new Set(
    cluster.servicePorts.map(({ namespace, service }) => fullName({ namespace, name: service })),
  );
  const selecting = services.filter(({ object }) => hasSelector(object) && programmed.has(fullName(object.metadata)));
  const unserved = selecting
    .filter(({ isServed }) => !isServed)
    .sort((a, b) => compareText(fullName(a.object.metadata), fullName(b.object.metadata)));
  const [first] = unserved;
  if (!first) return [];
  const names = unserved.map(({ object }) => fullName(object.metadata));
  const details = { services: names, selecting: selecting.length, hasWorkloads };
  return [diagnose('no-endpoints-given', details, first.source.place(['metadata', 'name']))];
}

/**
 * Source ranges of length zero, which IPVS mode puts into an ipset up to v1.33 of kube-proxy (open-source-range in the
 * table of releases). The kernel's hash sets take no such range: kube-proxy logs that and goes on without it, and
 * `ipset restore` stops there.
 */
export function findUnloadableRanges({ servicePorts }: Cluster): readonly Diagnostic[] {
  return servicePorts
    .filter(({ loadBalancerIPs }) => loadBalancerIPs.length > 0)
    .flatMap((port) =>
      port.sourceRanges.flatMap((range, index): readonly Diagnostic[] => {
        if (range.prefixLength > 0) return [];
        const details = { servicePort: port.label, range: range.text, family: range.family };
        return [diagnose('unloadable-range', details, port.places?.sourceRange(index))];
      }),
    );
}

/**
 * Warns of Service ports that claim the same address, port and protocol. kube-proxy serves whichever it happened to
 * program last; kpc serves the first by namespace, name, port name and protocol, in every mode.
 */
export function findConflicts({ servicePorts }: Cluster): readonly Diagnostic[] {
  const holders = new Map<string, ServicePort>();
  const diagnostics = new Map<string, Diagnostic>();
  for (const port of servicePorts) {
    const claim = (what: string, findPlace: () => Place | undefined): void => {
      const holder = holders.get(what);
      if (!holder) holders.set(what, port);
      else if (holder.label !== port.label || holder.protocol !== port.protocol) {
        const details = { what, holder: holder.label, rival: port.label };
        const diagnostic = diagnose('address-conflict', details, findPlace());
        diagnostics.set(diagnostic.text, diagnostic);
      }
    };
    // As people write it: "10.96.0.1:80/TCP".
    const claimAddress = ({ text }: Address, findPlace: () => Place | undefined): void => {
      claim(`${joinHostPort(text, port.port)}/${port.protocol}`, findPlace);
    };
    claimAddress(port.clusterIP, () => port.places?.clusterIP);
    port.externalIPs.forEach((address, i) => claimAddress(address, () => port.places?.externalIP(i)));
    port.loadBalancerIPs.forEach((address, i) => claimAddress(address, () => port.places?.ingress(i)));
    if (port.nodePort !== 0) claim(`node port ${port.nodePort}/${port.protocol}`, () => port.places?.nodePort);
  }
  return [...diagnostics.values()];
}

/** How many rules any input may give, and how many more for each of its ports, endpoints, addresses and source ranges. */
const freeLines = 2_000_000;
const linesPerEntry = 100;

/** How many rules one Service gives. */
interface Size {
  readonly service: Sourced<Service>;
  /** Pairs of a port and an endpoint. */
  readonly pairs: number;
  /** Virtual servers, their real servers, and pairs of a port and a source range. */
  readonly lines: number;
}

/**
 * Says what is too much to compile, before anything is made of it: ports, endpoints, addresses and source ranges multiply,
 * so that a small file can describe more than memory holds. `nodeAddresses` is the number of addresses on which node ports
 * listen.
 */
export function checkSize(
  services: readonly ServiceWithSlices[],
  slices: readonly Sourced<EndpointSlice>[],
  nodeAddresses: number,
): readonly Diagnostic[] {
  let lines = 0;
  let largest: Size | undefined;
  for (const service of services) {
    const size = measure(service, nodeAddresses);
    lines += size.lines;
    if (!largest || size.lines > largest.lines) largest = size;
  }
  // Mostly there is no need to count on.
  if (!largest || lines <= freeLines) return [];
  const entries = sum(services.map(({ object }) => countEntries(object))) + sum(slices.map(countSliceEntries));
  const limit = freeLines + linesPerEntry * entries;
  return lines <= limit ? [] : [describeSize(largest, lines, limit)];
}

function measure(service: ServiceWithSlices, nodeAddresses: number): Size {
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

function describeSize({ service, pairs }: Size, lines: number, limit: number): Diagnostic {
  const { metadata, spec, ingress } = service.object;
  const factors = {
    ports: spec.ports.length,
    pairs,
    addresses: spec.clusterIPs.length + spec.externalIPs.length + ingress.length,
    sourceRanges: spec.loadBalancerSourceRanges.length,
  };
  return diagnose('too-large', { lines, limit, service: fullName(metadata), factors }, service.source.place([]));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
