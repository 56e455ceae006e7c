import { serviceNameLabel } from './endpoints.ts';
import { parseAddress } from '../kernel/address.ts';
import { families, familyNames, type Family } from '../kernel/family.ts';
import type {
  EndpointAddress,
  EndpointPort,
  Endpoints,
  EndpointSlice,
  FieldPath,
  SliceEndpoint,
  Source,
  Sourced,
} from './objects.ts';

const skipMirrorLabel = 'endpointslice.kubernetes.io/skip-mirror';
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';

/** kube-controller-manager's --mirroring-max-endpoints-per-subset: what is past it never reaches kube-proxy. */
const maxEndpoints = 1000;

/** An endpoint with the path of its address in the Endpoints object. */
interface Mirrored {
  readonly endpoint: SliceEndpoint;
  readonly path: FieldPath;
}

/** A slice that is being made, with the path of its port in the Endpoints object; its endpoints by address. */
interface MirroredPort {
  readonly port: EndpointPort;
  readonly path: FieldPath;
  readonly endpoints: Map<string, Mirrored>;
}

/**
 * The slices that the control plane makes of v1 Endpoints (pkg/controller/endpointslicemirroring), for those Services
 * that no slice is for: one for each port and family. Labels and annotations that make the control plane skip an
 * object are respected.
 */
export function mirrorEndpoints(
  endpoints: readonly Sourced<Endpoints>[],
  slices: readonly Sourced<EndpointSlice>[],
): Sourced<EndpointSlice>[] {
  if (endpoints.length === 0) return [];
  const served = new Set(
    slices.map(({ object: { metadata } }) => `${metadata.namespace}/${metadata.labels[serviceNameLabel]}`),
  );
  return endpoints
    .filter(({ object: { metadata } }) => !served.has(`${metadata.namespace}/${metadata.name}`))
    .filter(({ object }) => isMirrored(object))
    .flatMap((object) => families.flatMap((family) => mirrorFamily(object, family)));
}

function isMirrored({ metadata }: Endpoints): boolean {
  return metadata.labels[skipMirrorLabel] !== 'true' && !Object.hasOwn(metadata.annotations, leaderAnnotation);
}

function mirrorFamily({ object, source }: Sourced<Endpoints>, family: Family): Sourced<EndpointSlice>[] {
  const ports = new Map<string, MirroredPort>();
  for (const [i, subset] of object.subsets.entries()) {
    const mirrored = (['addresses', 'notReadyAddresses'] as const).flatMap((field) =>
      subset[field].map((address, j): Mirrored => {
        return { endpoint: makeEndpoint(address, field === 'addresses'), path: ['subsets', i, field, j, 'ip'] };
      }),
    );
    for (const [j, port] of subset.ports.entries()) {
      const key = `${port.name}/${port.protocol}/${port.port}`;
      const known = ports.get(key) ?? { port, path: ['subsets', i, 'ports', j], endpoints: new Map() };
      ports.set(key, known);
      for (const one of mirrored) addEndpoint(known.endpoints, one, family);
    }
  }
  return [...ports.values()]
    .filter(({ endpoints }) => endpoints.size > 0)
    .map((port, i) => makeSlice(object, source, family, i, port));
}

/** An address that is listed both as ready and as not ready is not ready. */
function addEndpoint(endpoints: Map<string, Mirrored>, mirrored: Mirrored, family: Family): void {
  const { address, status } = mirrored.endpoint;
  if (address?.family !== family) return;
  const known = endpoints.get(address.text);
  if (known ? known.endpoint.status.ready && !status.ready : endpoints.size < maxEndpoints) {
    endpoints.set(address.text, mirrored);
  }
}

/** The control plane sets ready alone, and what is not set counts as serving and not terminating. */
function makeEndpoint({ ip, hostname, nodeName }: EndpointAddress, ready: boolean): SliceEndpoint {
  const other = { zone: undefined, serving: true, terminating: false, zoneHints: [], nodeHints: [] };
  return { address: parseAddress(ip), hostname, status: { nodeName, ready, ...other } };
}

function makeSlice(
  { metadata }: Endpoints,
  source: Source,
  family: Family,
  index: number,
  { port, path: portPath, endpoints }: MirroredPort,
): Sourced<EndpointSlice> {
  const mirrored = [...endpoints.values()];
  const object: EndpointSlice = {
    metadata: {
      ...metadata,
      name: `${metadata.name}-${family}-${index}`,
      labels: { ...metadata.labels, [serviceNameLabel]: metadata.name },
    },
    addressType: familyNames[family],
    ports: [port],
    endpoints: mirrored.map(({ endpoint }) => endpoint),
  };
  /** Fields of an endpoint are fields of the address that it was made of, and those of a port are fields of that. */
  const place = (path: FieldPath): ReturnType<Source['place']> => {
    const [first, at, ...below] = path;
    if (first === 'ports') return source.place([...portPath, ...below]);
    const origin = first === 'endpoints' && typeof at === 'number' ? mirrored[at]?.path : undefined;
    return source.place(origin ?? path);
  };
  return { object, source: { place } };
}
