import {
  type EndpointStatus,
  type EndpointSlice,
  type Service,
  type SliceEndpoint,
  type Sourced,
  fullName,
  type Endpoints,
} from './objects.ts';
import { type Address, type Family, joinHostPort, protocols } from '../kernel/address.ts';
import type { Location, Place } from '../kernel/place.ts';
import { compareText } from '../kernel/compare.ts';
import { ByName, type ReadonlyByName } from './grouping.ts';
import type { Behaviours } from '../kube-proxy/releases.ts';
import { headlessLabel, proxyNameLabel } from '../kube-proxy/skipped.ts';
import type { Endpoint } from './model.ts';

/** Gives endpoints on one node with equal status the same status object, which saves memory and later comparisons. */
export class StatusSharing {
  readonly #last = new Map<string | undefined, EndpointStatus>();

  share(status: EndpointStatus): EndpointStatus {
    const last = this.#last.get(status.nodeName);
    if (last && areSameStatuses(last, status)) return last;
    this.#last.set(status.nodeName, status);
    return status;
  }
}

/** Returns false if either status has hints, because comparing hints is not worth it for the few endpoints that have them. */
function areSameStatuses(a: EndpointStatus, b: EndpointStatus): boolean {
  return (
    a.zone === b.zone &&
    a.ready === b.ready &&
    a.serving === b.serving &&
    a.terminating === b.terminating &&
    a.assumed === b.assumed &&
    a.zoneHints.length + a.nodeHints.length + b.zoneHints.length + b.nodeHints.length === 0
  );
}

export const serviceNameLabel = 'kubernetes.io/service-name';

export interface ServiceWithSlices extends Sourced<Service> {
  readonly slices: readonly Sourced<EndpointSlice>[];
  /** Slices in the input, and slices mirrored from Endpoints in the input, but no slices made from Pods. */
  readonly given: readonly Sourced<EndpointSlice>[];
  /** Whether the endpoints are known, even if there are none. */
  readonly isServed: boolean;
}

export function serviceOfSlice({ metadata: { namespace, labels } }: EndpointSlice): string {
  return fullName({ namespace, name: labels[serviceNameLabel] ?? '' });
}

export function addressesOfEndpoints({ subsets }: Endpoints): readonly string[] {
  return subsets.flatMap(({ addresses, notReadyAddresses }) =>
    [...addresses, ...notReadyAddresses].map(({ ip }) => ip),
  );
}

/** Reports whether a Service has a selector. An empty selector counts as none. */
export function hasSelector({ spec }: Service): boolean {
  return Object.keys(spec.selector ?? {}).length > 0;
}

/** Groups slices by Service and sorts each group by name, which decides between equal endpoints. Skips slices without the label. */
export function groupSlices(
  slices: readonly Sourced<EndpointSlice>[],
): ReadonlyByName<readonly Sourced<EndpointSlice>[]> {
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

/** Reports whether kube-proxy's informer filters the slice out by its labels. */
function isUnwatched({ metadata: { labels } }: EndpointSlice, behaviours: Behaviours): boolean {
  return headlessLabel in labels || (proxyNameLabel in labels && !behaviours.has('separate-watches'));
}

export function writtenAddresses({ address, written }: SliceEndpoint): readonly string[] {
  return written ?? (address ? [address.text] : []);
}

/** Returns the family whose proxier reads the slice; undefined for a slice of host names. */
export function sliceFamily(slice: EndpointSlice): Family | undefined {
  switch (slice.addressType) {
    case 'IPv4':
      return 'ipv4';
    case 'IPv6':
      return 'ipv6';
    case 'FQDN':
      return undefined;
  }
}

/** "name/protocol". A slice port belongs to the Service port with the same key. */
export type EndpointPortKey = `${string}/${string}`;

export interface HintReading {
  readonly zones: boolean;
  readonly nodes: boolean;
}

/**
 * Returns the endpoints of one family by port. Among several endpoints with the same address and port, kube-proxy uses one
 * (EndpointSliceCache.addEndpoints): the last one that is not terminating. Releases before running-endpoint-first use the first one, or a
 * node's own, so the other endpoints become rivals of the first.
 */
export function endpointsByPort(
  slices: readonly Sourced<EndpointSlice>[],
  family: Family,
  behaviours: Behaviours,
  hints: HintReading,
): ReadonlyMap<EndpointPortKey, readonly Endpoint[]> {
  const byPort = new Map<EndpointPortKey, SlicedEndpoint[]>();
  for (const sourced of slices) {
    const slice = sourced.object;
    if (sliceFamily(slice) !== family || isUnwatched(slice, behaviours)) continue;
    for (let p = 0; p < slice.ports.length; p++) {
      const port = slice.ports[p];
      if (!port?.port) continue;
      const key: EndpointPortKey = `${port.name}/${port.protocol}`;
      let found = byPort.get(key);
      if (!found) byPort.set(key, (found = []));
      for (const { address, status } of slice.endpoints) {
        if (address) found.push(new SlicedEndpoint(address, port.port, keepHints(status, hints), sourced));
      }
    }
  }
  if (!behaviours.has('endpoint-slices')) return joinProtocols(byPort);
  const chooseTwin = behaviours.has('running-endpoint-first') ? takeRunning : keepAsRival;
  byPort.forEach((found, key) => byPort.set(key, sortOnce(found, chooseTwin)));
  return byPort;
}

/**
 * Matches ports as kube-proxy does for v1 Endpoints: a Service port gets the endpoints of its name, whatever their protocol
 * (BuildPortsToEndpointsMap in pkg/proxy/util/utils.go). An address that is both ready and unready is unready (RepackSubsets in
 * pkg/api/v1/endpoints/util.go).
 */
function joinProtocols(
  byPort: ReadonlyMap<EndpointPortKey, SlicedEndpoint[]>,
): ReadonlyMap<EndpointPortKey, readonly Endpoint[]> {
  const byName = new Map<string, SlicedEndpoint[]>();
  for (const [key, found] of byPort) {
    const name = key.slice(0, key.lastIndexOf('/'));
    byName.set(name, [
      ...(byName.get(name) ?? []),
      ...sortOnce(found, (known, other) => (known.status.ready ? other : known)),
    ]);
  }
  return new Map(
    [...byName].flatMap(([name, found]) => {
      const all = sortOnce(found, (known, other) => (known.status.ready ? known : other));
      return protocols.map((protocol): [EndpointPortKey, readonly Endpoint[]] => [`${name}/${protocol}`, all]);
    }),
  );
}

function keepHints(status: EndpointStatus, hints: HintReading): EndpointStatus {
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

type ChooseTwin = (known: SlicedEndpoint, other: SlicedEndpoint) => SlicedEndpoint;

const takeRunning: ChooseTwin = (known, other) => (other.status.terminating ? known : other);

const keepAsRival: ChooseTwin = (known, other) => {
  known.addRival(other);
  return known;
};

function sortOnce(found: SlicedEndpoint[], chooseTwin: ChooseTwin): SlicedEndpoint[] {
  let hasTwins = false;
  // sort is stable, so equal endpoints keep their order.
  found.sort((a, b) => {
    const order = compareEndpoints(a, b);
    hasTwins ||= order === 0;
    return order;
  });
  if (!hasTwins) return found;
  const sorted: SlicedEndpoint[] = [];
  for (const endpoint of found) {
    const last = sorted.at(-1);
    if (last === undefined || compareEndpoints(last, endpoint) !== 0) sorted.push(endpoint);
    else sorted[sorted.length - 1] = chooseTwin(last, endpoint);
  }
  return sorted;
}

/** Returns the part of an endpoint's status that kube-proxy uses, as a text to compare. */
export function usedOfStatus({ ready, serving, terminating, nodeName, zoneHints, nodeHints }: EndpointStatus): string {
  return JSON.stringify([ready, serving, terminating, nodeName, zoneHints, nodeHints]);
}

/** Chooses among rivals: up to v1.35, the last one on the node, else the first (isLocal in EndpointSliceCache.addEndpoints). */
export function pickFromRivals(
  endpoints: readonly Endpoint[],
  isLocal: (endpoint: Endpoint) => boolean,
): readonly Endpoint[] {
  if (endpoints.every(({ rivals }) => rivals === undefined)) return endpoints;
  return endpoints.map((endpoint) => endpoint.rivals?.findLast(isLocal) ?? endpoint);
}

/**
 * One endpoint of a slice at one port. The object is also the endpoint's Place. It stores only data that the slice lacks, because a cluster
 * may have millions.
 */
class SlicedEndpoint implements Endpoint, Place {
  readonly address: Address;
  readonly port: number;
  readonly status: EndpointStatus;
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

  addRival(rival: Endpoint): void {
    (this.rivals ??= []).push(rival);
  }

  get place(): Place {
    return this;
  }

  get file(): string {
    return placeInSlice(this.#slice, this.address).file;
  }

  locate(): Location {
    return placeInSlice(this.#slice, this.address).locate();
  }
}

function placeInSlice({ object, source }: Sourced<EndpointSlice>, own: Address): Place {
  return source.place(['endpoints', object.endpoints.findIndex(({ address }) => address === own)]);
}

/** Orders endpoints like kube-proxy, which compares the text "ip:port". Compares IPv4 as numbers, for speed. */
export function compareEndpoints(a: Endpoint, b: Endpoint): number {
  if (a.address.family === 'ipv4' && b.address.family === 'ipv4') {
    return textRank(a.address) - textRank(b.address) || compareText(String(a.port), String(b.port));
  }
  return compareText(a.label, b.label);
}

/** Ranks of the bytes 0 to 255 when sorted as the text of the number followed by this character. */
const rankBeforeDot = rankBytes('.');
const rankBeforeColon = rankBytes(':');

function rankBytes(sign: string): Uint8Array {
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const sorted = bytes.toSorted((a, b) => compareText(`${a}${sign}`, `${b}${sign}`));
  const ranks = new Uint8Array(256);
  for (const [rank, byte] of sorted.entries()) ranks[byte] = rank;
  return ranks;
}

function textRank({ bits }: Extract<Address, { family: 'ipv4' }>): number {
  const first = rankBeforeDot[bits >>> 24] ?? 0;
  const second = rankBeforeDot[(bits >>> 16) & 255] ?? 0;
  const third = rankBeforeDot[(bits >>> 8) & 255] ?? 0;
  const fourth = rankBeforeColon[bits & 255] ?? 0;
  return ((first - 128) << 24) | (second << 16) | (third << 8) | fourth;
}
