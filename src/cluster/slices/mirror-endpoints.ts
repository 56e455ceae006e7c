import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { compareText } from '../../kernel/compare.ts';
import { namesOf } from '../grouping.ts';
import { hasSelector, serviceNameLabel } from '../endpoints.ts';
import { families, type Family, familyNames, parseAddress } from '../../kernel/address.ts';
import type {
  EndpointAddress,
  EndpointPort,
  Endpoints,
  EndpointSlice,
  FieldPath,
  SliceEndpoint,
  ObjectSource,
  Sourced,
  EndpointObjects,
} from '../objects.ts';

const skipMirrorLabel = 'endpointslice.kubernetes.io/skip-mirror';
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';
const managerLabel = 'endpointslice.kubernetes.io/managed-by';
const mirroringController = 'endpointslicemirroring-controller.k8s.io';

const maxAddresses = 1000;

interface Mention {
  readonly address: EndpointAddress;
  readonly path: FieldPath;
}

interface Mirrored extends Mention {
  readonly isReady: boolean;
}

interface MirroredPort {
  readonly port: EndpointPort;
  readonly path: FieldPath;
  readonly addresses: Map<string, Mirrored>;
}

/**
 * Returns the slices that the control plane mirrors from v1 Endpoints (pkg/controller/endpointslicemirroring), here one for each port and
 * family. Skips objects whose labels or annotations exclude them, and Endpoints that are already mirrored in the input: by the mirroring
 * controller's slices or, if the Service has a selector, by any slice.
 */
export function mirrorEndpoints({
  services,
  endpoints,
  slices,
}: Pick<EndpointObjects, 'services' | 'endpoints' | 'slices'>) {
  if (endpoints.length === 0) return { slices: [], diagnostics: [] };
  const selecting = namesOf(services.filter(({ object }) => hasSelector(object)).map(({ object }) => object.metadata));
  const copied = namesOf(
    slices.flatMap(({ object: { metadata } }) => {
      const { namespace, labels } = metadata;
      const name = labels[serviceNameLabel];
      if (name === undefined) return [];
      const isCopy = labels[managerLabel] === mirroringController || selecting.has(namespace, name);
      return isCopy ? [{ namespace, name }] : [];
    }),
  );
  const mirrored = endpoints
    .filter(({ object }) => isMirrored(object) && !copied.has(object.metadata.namespace, object.metadata.name))
    .map((each) => ({ each, ports: repack(each.object) }));
  return {
    slices: mirrored.flatMap(({ each, ports }) => families.flatMap((family) => mirrorFamily(each, family, ports))),
    diagnostics: mirrored.flatMap(({ each, ports }) => describeUnmirrored(each, ports)),
  };
}

function isMirrored({ metadata }: Endpoints): boolean {
  return metadata.labels[skipMirrorLabel] !== 'true' && !Object.hasOwn(metadata.annotations, leaderAnnotation);
}

/**
 * Merges subsets like RepackSubsets (pkg/api/v1/endpoints). An address keeps its first node and host name, and is ready if it is ready in
 * every subset.
 */
function repack({ subsets }: Endpoints): readonly MirroredPort[] {
  const first = new Map<string, Mention>();
  const ports = new Map<string, MirroredPort>();
  for (const [i, subset] of subsets.entries()) {
    const mentions = (['addresses', 'notReadyAddresses'] as const).flatMap((field) =>
      subset[field].map((address, j): Mirrored => {
        const mention = first.get(address.ip) ?? { address, path: ['subsets', i, field, j, 'ip'] };
        first.set(address.ip, mention);
        return { ...mention, isReady: field === 'addresses' };
      }),
    );
    for (const [j, port] of subset.ports.entries()) {
      const key = `${port.name}/${port.protocol}/${port.port}`;
      const known = ports.get(key) ?? { port, path: ['subsets', i, 'ports', j], addresses: new Map() };
      ports.set(key, known);
      for (const mention of mentions) {
        if (known.addresses.get(mention.address.ip)?.isReady !== false)
          known.addresses.set(mention.address.ip, mention);
      }
    }
  }
  return [...ports.values()];
}

/** Returns the addresses that the control plane mirrors: ready ones first, each group sorted as text, up to the limit. */
function chooseMirrored({ addresses }: MirroredPort): readonly Mirrored[] {
  if (addresses.size <= maxAddresses) return [...addresses.values()];
  const order = (a: Mirrored, b: Mirrored): number =>
    Number(b.isReady) - Number(a.isReady) || compareText(a.address.ip, b.address.ip);
  return [...addresses.values()].sort(order).slice(0, maxAddresses);
}

function describeUnmirrored({ source }: Sourced<Endpoints>, ports: readonly MirroredPort[]): readonly Finding[] {
  const largest = ports.toSorted((a, b) => b.addresses.size - a.addresses.size)[0];
  if (!largest || largest.addresses.size <= maxAddresses) return [];
  const details = {
    object: 'Endpoints',
    field: 'addresses',
    count: largest.addresses.size,
    limit: maxAddresses,
  } as const;
  return [diagnose('too-many', details, source.place(largest.path))];
}

function mirrorFamily(
  { object, source }: Sourced<Endpoints>,
  family: Family,
  ports: readonly MirroredPort[],
): readonly Sourced<EndpointSlice>[] {
  return ports.flatMap((port, i) => {
    const endpoints = chooseMirrored(port).flatMap((mirrored) => {
      const endpoint = mirrorEndpoint(mirrored);
      return endpoint.address?.family === family ? [{ endpoint, path: mirrored.path }] : [];
    });
    return endpoints.length === 0 ? [] : [mirrorSlice(object, source, `${family}-${i}`, family, port, endpoints)];
  });
}

/** The control plane sets only `ready`. The other conditions keep their defaults: serving, not terminating. */
function mirrorEndpoint({ address: { ip, hostname, nodeName }, isReady: ready }: Mirrored): SliceEndpoint {
  const other = { zone: undefined, serving: true, terminating: false, zoneHints: [], nodeHints: [] };
  return { address: parseAddress(ip), hostname, status: { nodeName, ready, ...other } };
}

function mirrorSlice(
  { metadata }: Endpoints,
  source: ObjectSource,
  suffix: string,
  family: Family,
  { port, path: portPath }: MirroredPort,
  mirrored: readonly { readonly endpoint: SliceEndpoint; readonly path: FieldPath }[],
): Sourced<EndpointSlice> {
  const object: EndpointSlice = {
    metadata: {
      ...metadata,
      name: `${metadata.name}-${suffix}`,
      labels: { ...metadata.labels, [serviceNameLabel]: metadata.name },
    },
    addressType: familyNames[family],
    ports: [port],
    endpoints: mirrored.map(({ endpoint }) => endpoint),
  };
  /** Maps an endpoint's fields to its address in the Endpoints object, and a port's fields to the port there. */
  const place = (path: FieldPath): ReturnType<ObjectSource['place']> => {
    const [first, at, ...below] = path;
    if (first === 'ports') return source.place([...portPath, ...below]);
    const origin = first === 'endpoints' && typeof at === 'number' ? mirrored[at]?.path : undefined;
    return source.place(origin ?? path);
  };
  return { object, source: { place } };
}
