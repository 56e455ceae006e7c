// EndpointSlices that both sides give alike, although a Service changes in a field that the controller makes them from.
import { addressesOfEndpoints, hasSelector, serviceOfSlice, writtenAddresses } from './endpoints.ts';
import { groupBy } from './grouping.ts';
import {
  addressesOfPod,
  endpointSources,
  fullName,
  topologyMode,
  type EndpointObjects,
  type Service,
} from './objects.ts';

/**
 * Services ("namespace/name") whose given slices were made for other fields of the Service: they are made again from Pods, or the endpoints
 * are unknown.
 */
export type StaleSlices = ReadonlyMap<string, 'made-again' | 'unknown'>;

type GivenObjects = Pick<EndpointObjects, 'services' | 'slices' | 'endpoints' | 'pods'>;

/** "namespace/name" of Services with such slices or Endpoints: they describe at most one of the sides. */
function findStaleServices(from: GivenObjects, to: GivenObjects): readonly string[] {
  const before = new Map(from.services.map(({ object }) => [fullName(object.metadata), object]));
  const changed = to.services.flatMap(({ object }) => {
    const name = fullName(object.metadata);
    const old = before.get(name);
    return old && hasSelector(old) && hasSelector(object) && fieldsOfSlices(old) !== fieldsOfSlices(object) ? name : [];
  });
  if (changed.length === 0) return [];
  const [old, fresh] = [givenByService(from), givenByService(to)];
  const textIn = (given: typeof old, name: string) =>
    given
      .get(name)
      ?.map(({ object }) => JSON.stringify(object))
      .toSorted()
      .join();
  return changed.filter((name) => old.has(name) && textIn(old, name) === textIn(fresh, name));
}

/** Slices can be made again if the input has a Pod with a status for each of their addresses. Undefined if none is stale. */
export function staleSlicesOf(from: GivenObjects, to: GivenObjects): StaleSlices | undefined {
  const stale = findStaleServices(from, to);
  if (stale.length === 0) return undefined;
  const given = givenByService(from);
  const known = [from, to].map(({ pods }) => new Set(pods.flatMap(({ object }) => addressesOfPod(object))));
  const isKnown = (address: string) => known.every((own) => own.has(address));
  const hasPods = (name: string) => (given.get(name) ?? []).every(({ addresses }) => addresses.every(isKnown));
  return new Map(stale.map((name) => [name, hasPods(name) ? 'made-again' : 'unknown']));
}

function givenByService({ slices, endpoints }: GivenObjects) {
  const all = [
    ...slices.map(({ object }) => {
      return { service: serviceOfSlice(object), object, addresses: object.endpoints.flatMap(writtenAddresses) };
    }),
    ...endpoints.map(({ object }) => {
      return { service: fullName(object.metadata), object, addresses: addressesOfEndpoints(object) };
    }),
  ];
  return groupBy(all, ({ service }) => service);
}

/** The fields that the EndpointSlice controller reads. */
function fieldsOfSlices(service: Service): string {
  return [endpointSources(service), service.spec.trafficDistribution, topologyMode(service)].join();
}
