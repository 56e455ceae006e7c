// EndpointSlices that both sides give alike, although a Service changes in a field that the controller makes them from.
import { hasSelector, serviceNameLabel, writtenAddresses } from './endpoints.ts';
import { groupBy } from './grouping.ts';
import {
  endpointSources,
  fullName,
  topologyMode,
  type Endpoints,
  type EndpointSlice,
  type Pod,
  type Service,
  type Sourced,
} from './objects.ts';

/**
 * Services ("namespace/name") whose given slices were made for other fields of the Service: they are made again from Pods, or the endpoints
 * are unknown.
 */
export type StaleSlices = ReadonlyMap<string, 'made-again' | 'unknown'>;

interface GivenObjects {
  readonly services: readonly Sourced<Service>[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly endpoints: readonly Sourced<Endpoints>[];
  readonly pods: readonly Sourced<Pod>[];
}

/** "namespace/name" of Services with such slices or Endpoints: they describe at most one of the sides. */
function findStale(from: GivenObjects, to: GivenObjects): readonly string[] {
  const before = new Map(from.services.map(({ object }) => [fullName(object.metadata), object]));
  const changed = to.services.flatMap(({ object }) => {
    const name = fullName(object.metadata);
    const old = before.get(name);
    return old && hasSelector(old) && hasSelector(object) && sourceText(old) !== sourceText(object) ? name : [];
  });
  if (changed.length === 0) return [];
  const [old, fresh] = [givenByService(from), givenByService(to)];
  return changed.filter((name) => old.has(name) && textOf(old.get(name)) === textOf(fresh.get(name)));
}

/** Slices can be made again if the input has a Pod with a status for each of their addresses. Undefined if none is stale. */
export function staleSlicesOf(from: GivenObjects, to: GivenObjects): StaleSlices | undefined {
  const stale = findStale(from, to);
  if (stale.length === 0) return undefined;
  const given = givenByService(from);
  const known = [from, to].map(
    ({ pods }) => new Set(pods.flatMap(({ object: { status } }) => (status?.addresses ?? []).map(({ text }) => text))),
  );
  const isKnown = (address: string) => known.every((own) => own.has(address));
  const hasPods = (name: string) => (given.get(name) ?? []).every(({ addresses }) => addresses.every(isKnown));
  return new Map(stale.map((name) => [name, hasPods(name) ? 'made-again' : 'unknown']));
}

interface Given {
  readonly service: string;
  readonly object: object;
  readonly addresses: readonly string[];
}

function givenByService({ slices, endpoints }: GivenObjects): ReadonlyMap<string, readonly Given[]> {
  const ofSlices = slices.map(({ object }): Given => {
    const { namespace, labels } = object.metadata;
    const addresses = object.endpoints.flatMap(writtenAddresses);
    return { service: fullName({ namespace, name: labels[serviceNameLabel] ?? '' }), object, addresses };
  });
  const ofEndpoints = endpoints.map(({ object }): Given => {
    const all = object.subsets.flatMap(({ addresses, notReadyAddresses }) => [...addresses, ...notReadyAddresses]);
    return { service: fullName(object.metadata), object, addresses: all.map(({ ip }) => ip) };
  });
  return groupBy([...ofSlices, ...ofEndpoints], ({ service }) => service);
}

function textOf(given: readonly Given[] = []): string {
  return given
    .map(({ object }) => JSON.stringify(object))
    .toSorted()
    .join();
}

/** The fields that the EndpointSlice controller reads. */
function sourceText(service: Service): string {
  return [endpointSources(service), service.spec.trafficDistribution, topologyMode(service)].join();
}
