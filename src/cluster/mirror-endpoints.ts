import { serviceNameLabel } from './endpoints.ts';
import { parseAddress } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import type { EndpointPort, Endpoints, EndpointSlice, FieldPath, SliceEndpoint, Source, Sourced } from './objects.ts';

const skipMirrorLabel = 'endpointslice.kubernetes.io/skip-mirror';
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';

/** kube-controller-manager's --mirroring-max-endpoints-per-subset: what is past it never reaches kube-proxy. */
const maxEndpoints = 1000;

/** An endpoint with the path of its address in the Endpoints object. */
interface Mirrored {
  readonly endpoint: SliceEndpoint;
  readonly path: FieldPath;
}

/** A port with its path in the Endpoints object. */
interface MirroredPort {
  readonly port: EndpointPort;
  readonly path: FieldPath;
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
  const ports = new Map<string, { readonly port: MirroredPort; readonly endpoints: Map<string, Mirrored> }>();
  for (const [i, subset] of object.subsets.entries()) {
    const mirrored = (['addresses', 'notReadyAddresses'] as const).flatMap((field) =>
      subset[field].map(({ ip, hostname, nodeName }, j): Mirrored => {
        const path = ['subsets', i, field, j, 'ip'];
        return { endpoint: makeEndpoint(ip, hostname, nodeName, field === 'addresses'), path };
      }),
    );
    for (const [j, port] of subset.ports.entries()) {
      const key = `${port.name}/${port.protocol}/${port.port}`;
      const known = ports.get(key) ?? {
        port: { port, path: ['subsets', i, 'ports', j] },
        endpoints: new Map<string, Mirrored>(),
      };
      const { endpoints } = known;
      ports.set(key, known);
      for (const one of mirrored) addEndpoint(endpoints, one, family);
    }
  }
  return [...ports.values()]
    .filter(({ endpoints }) => endpoints.size > 0)
    .map(({ port, endpoints }, i) => makeSlice(object, source, family, i, port, [...endpoints.values()]));
}

/** An address that is listed both as ready and as not ready is not ready. */
function addEndpoint(endpoints: Map<string, Mirrored>, mirrored: Mirrored, family: Family): void {
  const { address } = mirrored.endpoint;
  if (address?.family !== family) return;
  const known = endpoints.get(address.text);
  if (known ? known.endpoint.status.ready : endpoints.size < maxEndpoints) {
    if (!known || !mirrored.endpoint.status.ready) endpoints.set(address.text, mirrored);
  }
}

function makeEndpoint(
  ip: string,
  hostname: string | undefined,
  nodeName: string | undefined,
  ready: boolean,
): SliceEndpoint {
  return {
    address: parseAddress(ip),
    hostname,
    status: {
      nodeName,
      zone: undefined,
      ready,
      // The control plane sets ready alone, and what is not set counts as serving and not terminating.
      serving: true,
      terminating: false,
      zoneHints: [],
      nodeHints: [],
    },
  };
}

function makeSlice(
  { metadata }: Endpoints,
  source: Source,
  family: Family,
  index: number,
  { port, path: portPath }: MirroredPort,
  mirrored: readonly Mirrored[],
): Sourced<EndpointSlice> {
  const object: EndpointSlice = {
    metadata: {
      ...metadata,
      name: `${metadata.name}-${family}-${index}`,
      labels: { ...metadata.labels, [serviceNameLabel]: metadata.name },
    },
    addressType: family === 'ipv4' ? 'IPv4' : 'IPv6',
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
