import { joinHostPort, type Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Location, Place } from '../kernel/place.ts';
import { compareText } from '../kernel/compare-text.ts';
import { ByName, type ReadonlyByName } from './by-name.ts';
import type { Behaviours } from '../kube-proxy/releases.ts';
import type { Endpoint } from './model.ts';
import type { EndpointSlice, EndpointStatus, Service, SliceEndpoint, Sourced } from './objects.ts';
import { sortAsGo } from './go-sort.ts';

/** The label by which a slice names its Service. */
export const serviceNameLabel = 'kubernetes.io/service-name';
/** The labels by which kube-proxy's watches leave objects out. */
export const headlessLabel = 'service.kubernetes.io/headless';

/** A Service with this label is left to another proxy (apis.LabelServiceProxyName in pkg/proxy/apis/well_known_labels.go). */
export const proxyNameLabel = 'service.kubernetes.io/service-proxy-name';

/** A Service with what is known of its endpoints, looked up once for all that asks for it. */
export interface ServiceWithSlices extends Sourced<Service> {
  /** All its slices, sorted by name. */
  readonly slices: readonly Sourced<EndpointSlice>[];
  /** Those of the input, and what the control plane makes of its Endpoints, but none made of Pods. */
  readonly given: readonly Sourced<EndpointSlice>[];
  /** Whether its endpoints are known, even if it has none. */
  readonly isServed: boolean;
}

/** Whether the Service selects Pods. An empty selector counts as none. */
export function hasSelector({ spec }: Service): boolean {
  return Object.keys(spec.selector ?? {}).length > 0;
}

/** All slices of one Service. */
type SlicesByService = ReadonlyByName<readonly Sourced<EndpointSlice>[]>;

/**
 * The slices by their Service, each list sorted by slice name, so that the order of the input has no say where
 * two slices name one endpoint. Slices without the service label belong to no Service and are left out.
 */
export function groupSlices(slices: readonly Sourced<EndpointSlice>[]): SlicesByService {
  const groups = new ByName<Sourced<EndpointSlice>[]>();
  const several = new Set<Sourced<EndpointSlice>[]>();
  for (const slice of slices) {
    const { namespace, labels } = slice.object.metadata;
    const service = labels[serviceNameLabel];
    if (!service) continue;
    const group = groups.get(namespace, service);
    if (!group) groups.set(namespace, service, [slice]);
    else if (group.push(slice) === 2) several.add(group);
  }
  for (const group of several) group.sort((a, b) => compareText(a.object.metadata.name, b.object.metadata.name));
  return groups;
}

/** Whether kube-proxy never sees the slice: its informer leaves slices out by their labels. */
function isUnwatched({ metadata: { labels } }: EndpointSlice, behaviours: Behaviours): boolean {
  return headlessLabel in labels || (proxyNameLabel in labels && !behaviours.has('separate-watches'));
}

/** The addresses or host names of an endpoint, as they are written. */
export function writtenAddresses({ address, written }: SliceEndpoint): readonly string[] {
  return written ?? (address ? [address.text] : []);
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

/** Which hints of a Service's endpoints a kube-proxy reads. */
export interface HintReading {
  readonly zones: boolean;
  readonly nodes: boolean;
}

/**
 * The endpoints behind each port of one Service, of one family. An endpoint named twice counts once (kube-proxy's
 * EndpointSliceCache.addEndpoints): the last that does not terminate, or, of the releases before that, the first with
 * the others as its rivals.
 */
export function endpointsByPort(
  slices: readonly Sourced<EndpointSlice>[],
  family: Family,
  behaviours: Behaviours,
  hints: HintReading,
): ReadonlyMap<PortKey, readonly Endpoint[]> {
  const byPort = new Map<PortKey, SlicedEndpoint[]>();
  for (const sourced of slices) {
    const slice = sourced.object;
    if (sliceFamily(slice) !== family || isUnwatched(slice, behaviours)) continue;
    const order = endpointOrder(slice, behaviours);
    for (let p = 0; p < slice.ports.length; p++) {
      const port = slice.ports[p];
      if (!port?.port) continue;
      const key: PortKey = `${port.name}/${port.protocol}`;
      let found = byPort.get(key);
      if (!found) byPort.set(key, (found = []));
      for (let i = 0; i < slice.endpoints.length; i++) {
        const index = order ? (order[i] ?? i) : i;
        const from = slice.endpoints[index];
        if (!from?.address) continue;
        found.push(new SlicedEndpoint(from.address, port.port, readHints(from.status, hints), sourced));
      }
    }
  }
  const keepsRivals = !behaviours.has('running-endpoint-first');
  byPort.forEach((found, key) => byPort.set(key, sortOnce(found, keepsRivals)));
  return byPort;
}

/** The status as a kube-proxy sees it that reads these hints: what it does not read says nothing to it. */
function readHints(status: EndpointStatus, hints: HintReading): EndpointStatus {
  const readsZones = hints.zones || status.zoneHints.length === 0;
  const readsNodes = hints.nodes || status.nodeHints.length === 0;
  if (readsZones && readsNodes) return status;
  return {
    ...status,
    zoneHints: readsZones ? status.zoneHints : noHints,
    nodeHints: readsNodes ? status.nodeHints : noHints,
  };
}

const noHints: readonly string[] = [];

/**
 * The indexes of a slice's endpoints in the order in which kube-proxy takes them up; undefined for the order as written. It matters only where two have one
 * address; up to v1.30 they were sorted before, by a sort that is not stable (newEndpointSliceInfo).
 */
function endpointOrder({ endpoints }: EndpointSlice, behaviours: Behaviours): readonly number[] | undefined {
  if (behaviours.has('slices-as-written')) return undefined;
  const labelled = endpoints.map((endpoint, index) => ({ label: writtenAddresses(endpoint).join(','), index }));
  return sortAsGo(labelled, (a, b) => compareText(a.label, b.label)).map(({ index }) => index);
}

/** Sorted, with one endpoint for each address and port. */
function sortOnce(found: SlicedEndpoint[], keepsRivals: boolean): SlicedEndpoint[] {
  let hasTwins = false;
  // Where two are equal, the order in which they came decides: sort keeps it.
  found.sort((a, b) => {
    const order = compareEndpoints(a, b);
    hasTwins ||= order === 0;
    return order;
  });
  if (!hasTwins) return found;
  const sorted: SlicedEndpoint[] = [];
  let last: SlicedEndpoint | undefined;
  for (const endpoint of found) {
    if (last === undefined || compareEndpoints(last, endpoint) !== 0) sorted.push((last = endpoint));
    else if (keepsRivals) last.addRival(endpoint);
    else if (!endpoint.status.terminating) sorted[sorted.length - 1] = endpoint;
  }
  return sorted;
}

/**
 * Settles which of the endpoints with one address and port a node takes: of the releases before v1.36 the last that is
 * on the node, else the first (isLocal in EndpointSliceCache.addEndpoints). Without rivals it is the same list.
 */
export function settleRivals(
  endpoints: readonly Endpoint[],
  isLocal: (endpoint: Endpoint) => boolean,
): readonly Endpoint[] {
  if (endpoints.every(({ rivals }) => rivals === undefined)) return endpoints;
  return endpoints.map((endpoint) => endpoint.rivals?.findLast(isLocal) ?? endpoint);
}

/**
 * An endpoint of a slice at one of its ports, and its own place. There are so many of them that only what the slice does
 * not say is kept.
 */
class SlicedEndpoint implements Endpoint, Place {
  readonly address: Address;
  readonly port: number;
  readonly status: EndpointStatus;
  /** There from the first rival on: hardly any endpoint has one. */
  declare rivals?: Endpoint[];
  readonly #slice: Sourced<EndpointSlice>;

  constructor(address: Address, port: number, status: EndpointStatus, slice: Sourced<EndpointSlice>) {
    this.address = address;
    this.port = port;
    this.status = status;
    this.#slice = slice;
  }

  get label(): string {
    return joinHostPort(this.address.text, this.port);
  }

  /** Another endpoint of this address and port. */
  addRival(rival: Endpoint): void {
    (this.rivals ??= []).push(rival);
  }

  get place(): Place {
    return this;
  }

  get file(): string {
    return placeIn(this.#slice, this.address).file;
  }

  locate(): Location {
    return placeIn(this.#slice, this.address).locate();
  }
}

/** The place of the endpoint with this address. Compares by identity, because two endpoints may have the same text. */
function placeIn({ object, source }: Sourced<EndpointSlice>, own: Address): Place {
  return source.place(['endpoints', object.endpoints.findIndex(({ address }) => address === own)]);
}

/**
 * Orders endpoints of one family as Go orders their labels ("ip:port"), which is kube-proxy's order. For
 * IPv4 it compares numbers instead of labels, which is faster.
 */
export function compareEndpoints(a: Endpoint, b: Endpoint): number {
  if (a.address.family === 'ipv4' && b.address.family === 'ipv4') {
    return textRank(a.address) - textRank(b.address) || compareText(String(a.port), String(b.port));
  }
  return compareText(a.label, b.label);
}

/** For each byte, how many others come before it as text, with the sign after it that follows it in a label. */
const rankBeforeDot = rankBytes('.');
const rankBeforeColon = rankBytes(':');

function rankBytes(sign: string): Uint8Array {
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const sorted = bytes.toSorted((a, b) => compareText(`${a}${sign}`, `${b}${sign}`));
  const ranks = new Uint8Array(256);
  for (const [rank, byte] of sorted.entries()) ranks[byte] = rank;
  return ranks;
}

/** A signed number of 32 bits that is greater where the address with a colon after it comes later as text. */
function textRank({ bits }: Extract<Address, { family: 'ipv4' }>): number {
  const first = rankBeforeDot[bits >>> 24] ?? 0;
  const second = rankBeforeDot[(bits >>> 16) & 255] ?? 0;
  const third = rankBeforeDot[(bits >>> 8) & 255] ?? 0;
  const fourth = rankBeforeColon[bits & 255] ?? 0;
  return ((first - 128) << 24) | (second << 16) | (third << 8) | fourth;
}
