// Finds EndpointSlices that fit only one of two sides, because the Service differs in a field that the controller uses to make slices,
// or selects other workloads.
import { addressesOfEndpoints, hasSelector, serviceOfSlice, writtenAddresses } from './endpoints.ts';
import { groupBy } from './grouping.ts';
import { compareText } from '../kernel/compare.ts';
import { serviceName, servicePortLabel, type Cluster, type ServiceInfo, type ServicePort } from './model.ts';
import {
  addressesOfPod,
  changedSources,
  endpointSources,
  fullName,
  hasLabels,
  type EndpointObjects,
  type EndpointPort,
  type Service,
  type ServicePortSpec,
  type Workload,
} from './objects.ts';

type GivenObjects = Pick<EndpointObjects, 'services' | 'slices' | 'endpoints' | 'pods' | 'workloads'>;

interface ServiceSide {
  readonly objects: GivenObjects;
  readonly cluster?: Pick<Cluster, 'services' | 'servicePorts'> | undefined;
}

/** Service ports of a side ("namespace/name:port") whose slices may belong to the other side, with the fields that changed. */
export type StalePorts = ReadonlyMap<string, { readonly service: string; readonly fields: readonly string[] }>;

/**
 * Returns the Services ("namespace/name") for which both sides give the same slices, although the fields that determine the slices differ.
 * Both inputs must have a Pod with a status for each address, so that the slices can be made again. Undefined if there are none.
 */
export function remadeSlices(from: GivenObjects, to: GivenObjects): ReadonlySet<string> | undefined {
  const before = new Map(from.services.map(({ object }) => [fullName(object.metadata), object]));
  const changed = to.services.flatMap(({ object }) => {
    const name = fullName(object.metadata);
    const old = before.get(name);
    return old && [old, object].every(hasSelector) && !areMadeAlike(old, object) ? name : [];
  });
  if (changed.length === 0) return undefined;
  const [old, fresh] = [givenByService(from), givenByService(to)];
  const known = [from, to].map(({ pods }) => new Set(pods.flatMap(({ object }) => addressesOfPod(object))));
  const isKnown = (address: string) => known.every((own) => own.has(address));
  const remade = changed.filter((name) => {
    const given = old.get(name);
    return given?.every(({ addresses }) => addresses.every(isKnown)) && contentOf(given) === contentOf(fresh.get(name));
  });
  return remade.length > 0 ? new Set(remade) : undefined;
}

/**
 * Finds a side's stale ports. A port is not stale on the side that its slices fit. A port is not stale either if only another port of the
 * Service changed.
 */
export function stalePortsOf(side: ServiceSide, other: ServiceSide): StalePorts {
  const [own, others] = [side.objects, other.objects];
  const areRecorded = [side, other].every(isRecorded);
  if (areRecorded ? side.cluster === other.cluster : own.services === others.services) return new Map();
  if (!areRecorded && own.slices.length + own.endpoints.length === 0) return new Map();
  const there = new Map(other.cluster?.services.map((info) => [fullName(info), info]));
  const differs = differInWorkloads(own, others);
  const changed = (side.cluster?.services ?? []).flatMap((info) => {
    const otherInfo = there.get(fullName(info));
    if (!otherInfo || [info, otherInfo].some(({ sources }) => sources?.selector === '')) return [];
    const sources = info.sources && otherInfo.sources ? changedSources(info.sources, otherInfo.sources) : [];
    const shared = sources.length === 0 && differs(fullName(info)) ? ['workloads'] : sources;
    const isSame =
      shared.length === 0 && info.ports.every((port) => otherInfo.ports.some((each) => isAlike(port, each)));
    return isSame ? [] : [{ info, otherInfo, shared }];
  });
  if (changed.length === 0) return new Map();
  const [given, givenThere] = areRecorded
    ? [recordedByService(side), recordedByService(other)]
    : [givenByService(own), givenByService(others)];
  const remade = remadeSlices(own, others);
  const recorded = groupBy(other.cluster?.servicePorts ?? [], serviceName);
  return new Map(
    changed.flatMap(({ info, otherInfo, shared }) => {
      const service = fullName(info);
      const slices = given.get(service) ?? [];
      const addresses = slices.flatMap((each) => each.addresses);
      if (addresses.length === 0 || remade?.has(service)) return [];
      // A golden records addresses instead of slices. Its ports are compared below.
      const isKept =
        areRecorded || others.services.length > 0
          ? contentOf(slices) === contentOf(givenThere.get(service))
          : shared.length === 0 || wordsOf(addresses) === wordsOf(addressesOf(otherInfo, recorded.get(service)));
      if (!isKept) return [];
      return info.ports.flatMap((port) => {
        const fields =
          shared.length > 0
            ? shared
            : changedOf(
                port,
                otherInfo.ports,
                slices.flatMap(({ ports }) => ports),
              );
        const label = servicePortLabel(info.namespace, info.name, port.name);
        return fields.length > 0 ? [[label, { service, fields }] as const] : [];
      });
    }),
  );
}

/**
 * Returns a function that reports whether a Service selects different workloads, or different numbers of replicas, on the two sides. Both
 * sides must have the Service's manifest.
 */
function differInWorkloads(...sides: readonly GivenObjects[]): (service: string) => boolean {
  const all = sides.map(({ services, workloads }) => ({
    services: new Map(services.map(({ object }) => [fullName(object.metadata), object])),
    workloads: new Map(workloads.map(({ object }) => [textOfWorkload(object), object])),
  }));
  const own = all.map(({ services, workloads }) => ({
    services,
    changed: [...workloads].flatMap(([text, workload]) =>
      workload.replicas === 0 || all.every((each) => each.workloads.has(text)) ? [] : workload,
    ),
  }));
  if (own.every(({ changed }) => changed.length === 0)) return () => false;
  return (name) => {
    const selected = own.flatMap(({ services, changed }) => {
      const service = services.get(name);
      if (!service) return [];
      const makers = changed.filter((workload) => selectsWorkload(service, workload));
      return wordsOf(makers.map(({ kind, metadata, replicas }) => `${kind}/${metadata.name}/${replicas}`));
    });
    return selected.length === sides.length && new Set(selected).size > 1;
  };
}

function textOfWorkload({ kind, metadata, replicas, template }: Workload): string {
  return JSON.stringify([kind, fullName(metadata), replicas, Object.entries(template.labels).toSorted()]);
}

export function selectsWorkload({ metadata, spec }: Service, { metadata: { namespace }, template }: Workload): boolean {
  return metadata.namespace === namespace && hasLabels(template.labels, Object.entries(spec.selector ?? {}));
}

function isAlike(one: ServicePortSpec, other: ServicePortSpec): boolean {
  return isMatch(one, other) && one.targetPort === other.targetPort;
}

function isMatch(
  one: Pick<EndpointPort, 'name' | 'protocol'>,
  other: Pick<EndpointPort, 'name' | 'protocol'>,
): boolean {
  return one.name === other.name && one.protocol === other.protocol;
}

function changedOf(
  port: ServicePortSpec,
  others: readonly ServicePortSpec[],
  slicePorts: readonly EndpointPort[],
): readonly string[] {
  const mayFit = (one: ServicePortSpec) =>
    slicePorts.some(
      (each) => isMatch(one, each) && (typeof one.targetPort === 'string' || each.port === one.targetPort),
    );
  // Only Pods show the number of a named port. If the slices fit no port of the other side, the number belongs to this side.
  const isOfOther = typeof port.targetPort === 'string' && others.some((each) => isMatch(port, each) && mayFit(each));
  if (others.some((each) => isAlike(port, each)) || (mayFit(port) && !isOfOther)) return [];
  const old = others.find(({ name }) => name === port.name);
  return old ? (['protocol', 'targetPort'] as const).filter((field) => old[field] !== port[field]) : ['ports'];
}

interface Given {
  readonly service: string;
  readonly ports: readonly EndpointPort[];
  readonly addresses: readonly string[];
}

function givenByService({ slices, endpoints }: GivenObjects): ReadonlyMap<string, readonly Given[]> {
  const all: readonly Given[] = [
    ...slices.map(({ object }) => {
      const addresses = object.endpoints.flatMap(writtenAddresses);
      return { service: serviceOfSlice(object), ports: object.ports, addresses };
    }),
    ...endpoints.map(({ object }) => {
      const ports = object.subsets.flatMap((subset) => subset.ports);
      return { service: fullName(object.metadata), ports, addresses: addressesOfEndpoints(object) };
    }),
  ];
  return groupBy(all, ({ service }) => service);
}

/** Reports whether a side is a bundle or golden, which records endpoints, whether from slices or Pods, but no objects. */
function isRecorded({ objects, cluster }: ServiceSide): boolean {
  return objects.services.length === 0 && (cluster?.services ?? []).length > 0;
}

function recordedByService({ cluster }: ServiceSide): ReadonlyMap<string, readonly Given[]> {
  const recorded = groupBy(cluster?.servicePorts ?? [], serviceName);
  const all = (cluster?.services ?? []).map((info): Given => {
    const service = fullName(info);
    const own = recorded.get(service) ?? [];
    const ports = own.flatMap(({ portName: name, protocol, endpoints }) =>
      endpoints.map(({ port }) => ({ name, protocol, port })),
    );
    return { service, ports, addresses: addressesOf(info, own) };
  });
  return groupBy(all, ({ service }) => service);
}

function addressesOf({ headlessEndpoints }: ServiceInfo, ports: readonly ServicePort[] = []): readonly string[] {
  const ofPorts = ports.flatMap(({ endpoints }) => endpoints.map(({ address }) => address.text));
  return [...ofPorts, ...headlessEndpoints.map(({ address }) => address)];
}

function wordsOf(texts: readonly string[]): string {
  return [...new Set(texts)].toSorted().join();
}

/** Returns the same text for slices with the same ports and addresses. Ignores order, readiness, and a controller's notes on slices. */
function contentOf(given: readonly Given[] = []): string {
  const ports = given.flatMap((each) => each.ports.map(({ name, protocol, port }) => `${name}/${protocol}/${port}`));
  const addresses = given.flatMap((each) => each.addresses);
  return [ports, addresses].map(wordsOf).join(' ');
}

/** Reports whether two Services agree in the fields that the EndpointSlice controller reads. */
export function areMadeAlike(old: Service, fresh: Service): boolean {
  const targetsOf = ({ spec: { ports } }: Service) =>
    ports.map(({ name, protocol, targetPort }) => JSON.stringify([name, protocol, targetPort])).toSorted(compareText);
  const isSame = changedSources(endpointSources(old), endpointSources(fresh)).length === 0;
  return isSame && targetsOf(old).join() === targetsOf(fresh).join();
}
