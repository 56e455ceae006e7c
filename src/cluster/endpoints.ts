import type { Address } from '../kernel/address.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Location, Place } from '../kernel/origin.ts';
import { compareText } from './compare-text.ts';
import { compareEndpoints } from './endpoint-order.ts';
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
  const ofServices = slices.filter(({ object }) => Boolean(object.metadata.labels[serviceNameLabel]));
  const groups = groupBy(
    ofServices,
    ({ object: { metadata } }) => `${metadata.namespace}/${metadata.labels[serviceNameLabel]}`,
  );
  for (const group of groups.values()) {
    if (group.length > 1) group.sort((a, b) => compareText(a.object.metadata.name, b.object.metadata.name));
  }
  return groups;
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
  const byPort = new Map<PortKey, Endpoint[]>();
  for (const { object: slice, source } of slices) {
    if (sliceFamily(slice) !== family || isHeadlessSlice(slice)) continue;
    for (const port of slice.ports) {
      if (!port.port) continue;
      const key: PortKey = `${port.name}/${port.protocol}`;
      let found = byPort.get(key);
      if (!found) byPort.set(key, (found = []));
      for (let index = 0; index < slice.endpoints.length; index++) {
        const from = slice.endpoints[index];
        if (from?.address) found.push(new SlicedEndpoint(from, from.address, port.port, source, index));
      }
    }
  }
  for (const [key, found] of byPort) byPort.set(key, sortOnce(found));
  return byPort;
}

/** Sorted, with one endpoint for each address and port. */
function sortOnce(found: Endpoint[]): Endpoint[] {
  // Where two are equal, the order in which they came decides: sort keeps it.
  found.sort(compareEndpoints);
  const sorted: Endpoint[] = [];
  let last: Endpoint | undefined;
  for (const endpoint of found) {
    const isNew = last === undefined || compareEndpoints(last, endpoint) !== 0;
    if (isNew) sorted.push(endpoint);
    else if (!endpoint.terminating) sorted[sorted.length - 1] = endpoint;
    last = endpoint;
  }
  return sorted;
}

/**
 * An endpoint of a slice at one of its ports, and its own place. There are so many of them that only what the slice does
 * not say is kept.
 */
class SlicedEndpoint implements Endpoint, Place {
  readonly address: Address;
  readonly port: number;
  readonly #from: SliceEndpoint;
  readonly #source: Source;
  readonly #index: number;

  constructor(from: SliceEndpoint, address: Address, port: number, source: Source, index: number) {
    this.address = address;
    this.port = port;
    this.#from = from;
    this.#source = source;
    this.#index = index;
  }

  get label(): string {
    return joinHostPort(this.address.text, this.port);
  }

  get nodeName(): string | undefined {
    return this.#from.nodeName;
  }

  get zone(): string | undefined {
    return this.#from.zone;
  }

  get ready(): boolean {
    return this.#from.ready;
  }

  get serving(): boolean {
    return this.#from.serving;
  }

  get terminating(): boolean {
    return this.#from.terminating;
  }

  get zoneHints(): readonly string[] {
    return this.#from.zoneHints;
  }

  get nodeHints(): readonly string[] {
    return this.#from.nodeHints;
  }

  get place(): Place {
    return this;
  }

  get file(): string {
    return this.#source.place([]).file;
  }

  locate(): Location {
    return this.#source.place(['endpoints', this.#index]).locate();
  }
}
