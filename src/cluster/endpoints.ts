import type { Address } from '../kernel/address.ts';
import { joinHostPort, parseAddress } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Location, Place } from '../kernel/origin.ts';
import { compareText } from './compare-text.ts';
import { groupBy } from './group-by.ts';
import type { Endpoint } from './model.ts';
import type { EndpointSlice, SliceEndpoint, Source, Sourced } from './objects.ts';

/** The label by which a slice names its Service. */
export const serviceNameLabel = 'kubernetes.io/service-name';
const headlessLabel = 'service.kubernetes.io/headless';

/** All slices of one Service. */
export type SlicesByService = ReadonlyMap<string, readonly Sourced<EndpointSlice>[]>;

/**
 * The slices by "namespace/service", each list sorted by slice name, so that the order of the input has no say where
 * two slices name one endpoint. Slices without the service label belong to no Service and are left out.
 */
export function groupSlices(slices: readonly Sourced<EndpointSlice>[]): SlicesByService {
  const sorted = slices
    .filter(({ object }) => Boolean(object.metadata.labels[serviceNameLabel]))
    .sort((a, b) => compareText(a.object.metadata.name, b.object.metadata.name));
  return groupBy(sorted, ({ object: { metadata } }) => `${metadata.namespace}/${metadata.labels[serviceNameLabel]}`);
}

/** Whether kube-proxy never sees the slice: its informer leaves out slices of headless Services by their label. */
function isHeadlessSlice(slice: EndpointSlice): boolean {
  return headlessLabel in slice.metadata.labels;
}

/** The family whose proxier reads the slice; undefined for host names. */
function sliceFamily(slice: EndpointSlice): Family | undefined {
  switch (slice.addressType) {
    case 'IPv4':
      return 'ipv4';
    case 'IPv6':
      return 'ipv6';
    case 'FQDN':
      return undefined;
  }
}

/** "name/protocol": how slice ports are matched with Service ports. */
export type PortKey = `${string}/${string}`;

/**
 * The endpoints behind each port of one Service, of one family. An endpoint named twice counts once, and one that
 * terminates never replaces one already known (kube-proxy's EndpointSliceCache.addEndpoints).
 */
export function endpointsByPort(
  slices: readonly Sourced<EndpointSlice>[],
  family: Family,
): ReadonlyMap<PortKey, readonly Endpoint[]> {
  const byPort = new Map<PortKey, Map<string, Endpoint>>();
  for (const { object: slice, source } of slices) {
    if (sliceFamily(slice) !== family || isHeadlessSlice(slice)) continue;
    const addresses = slice.endpoints.map(firstAddress);
    for (const port of slice.ports) {
      if (!port.port) continue;
      const key: PortKey = `${port.name}/${port.protocol}`;
      let known = byPort.get(key);
      if (!known) byPort.set(key, (known = new Map<string, Endpoint>()));
      for (const [index, endpoint] of slice.endpoints.entries()) {
        const address = addresses[index];
        if (!address) continue;
        const label = joinHostPort(address.text, port.port);
        if (known.has(label) && endpoint.terminating) continue;
        known.set(label, {
          address,
          port: port.port,
          label,
          nodeName: endpoint.nodeName,
          zone: endpoint.zone,
          ready: endpoint.ready,
          serving: endpoint.serving,
          terminating: endpoint.terminating,
          zoneHints: endpoint.zoneHints,
          nodeHints: endpoint.nodeHints,
          place: new EndpointPlace(source, index),
        });
      }
    }
  }
  return new Map(
    [...byPort].map(([key, known]) => [key, [...known.values()].sort((a, b) => compareText(a.label, b.label))]),
  );
}

/** An endpoint of a slice. There are so many of them that the way to the field is only made when somebody asks. */
class EndpointPlace implements Place {
  readonly #source: Source;
  readonly #index: number;

  constructor(source: Source, index: number) {
    this.#source = source;
    this.#index = index;
  }

  get file(): string {
    return this.#place().file;
  }

  locate(): Location {
    return this.#place().locate();
  }

  #place(): Place {
    return this.#source.place(['endpoints', this.#index]);
  }
}

/** kube-proxy takes an endpoint's first address only: the API allows no second one any more. */
function firstAddress(endpoint: SliceEndpoint): Address | undefined {
  const [first] = endpoint.addresses;
  return first === undefined ? undefined : parseAddress(first);
}
