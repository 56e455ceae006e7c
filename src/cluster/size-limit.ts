import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { ServiceWithSlices } from './endpoints.ts';
import type { EndpointSlice, Service, Sourced } from './objects.ts';

/** What any input may come to, and for each port, endpoint, address and source range of the input as many more. */
const freeLines = 2_000_000;
const linesPerEntry = 100;

/** What one Service comes to. */
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
  return lines <= limit ? [] : [describe(largest, lines, limit)];
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

function describe({ service, pairs }: Size, lines: number, limit: number): Diagnostic {
  const { metadata, spec, ingress } = service.object;
  const factors = {
    ports: spec.ports.length,
    pairs,
    addresses: spec.clusterIPs.length + spec.externalIPs.length + ingress.length,
    sourceRanges: spec.loadBalancerSourceRanges.length,
  };
  const name = `${metadata.namespace}/${metadata.name}`;
  return diagnose('too-large', { lines, limit, service: name, factors }, service.source.place([]));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
