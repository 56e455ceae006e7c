export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string } & Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

type Random = () => number;

/**
 * Makes a cluster of many Services in which the order of objects could affect the output: Services with the same external address or node
 * port, endpoints that differ between two slices, slices with other ports, v1 Endpoints, Services without an address, both families,
 * several nodes.
 */
export function makeCluster(services: number, random: Random): readonly KubernetesObject[] {
  return [makeNode(1), makeNode(2), makeNode(3), ...range(services).flatMap((i) => makeService(i, random))];
}

function makeNode(n: number): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `node-${n}`, labels: { 'topology.kubernetes.io/zone': n === 3 ? 'west' : 'east' } },
    spec: { podCIDRs: [`10.244.${n}.0/24`, `fd00:244:${n}::/64`] },
    status: {
      addresses: [
        { type: 'InternalIP', address: `192.168.50.1${n}` },
        { type: 'InternalIP', address: `2001:db8:50::1${n}` },
      ],
    },
  };
}

function makeService(i: number, random: Random): readonly KubernetesObject[] {
  const chance = (share: number) => random() < share;
  const metadata = { name: `service-${i}`, namespace: `team-${Math.floor(random() * 4)}` };
  const dual = chance(0.3);
  const open = chance(0.5);
  const ports = range(1 + Math.floor(random() * 3)).map((p) => ({
    name: `port-${p}`,
    port: 80 + p,
    targetPort: 8080 + p,
    ...(chance(0.3) ? { protocol: 'UDP' } : {}),
    // In one case of four, an earlier Service has the same node port.
    ...(open && chance(0.6) ? { nodePort: 30000 + (chance(0.25) ? i - 1 : i) * 3 + p } : {}),
  }));
  const service: KubernetesObject = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: {
      type: open ? 'NodePort' : 'ClusterIP',
      ...(chance(0.2) ? {} : addresses(i, dual)),
      ...(dual ? { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'] } : {}),
      ...(chance(0.3) ? { externalIPs: [`203.0.113.${10 + (i % 9)}`, '203.0.113.9'] } : {}),
      ...(open && chance(0.3) ? { externalTrafficPolicy: 'Local' } : {}),
      ...(chance(0.2) ? { sessionAffinity: 'ClientIP' } : {}),
      ports,
    },
  };
  const endpoints = range(Math.floor(random() * 8));
  if (!dual && chance(0.1)) return [service, makeEndpoints(metadata, ports, endpoints)];
  const slicePorts = ports.map(({ name, targetPort, protocol }) => ({
    name,
    port: targetPort,
    protocol: protocol ?? 'TCP',
  }));
  const slice = (suffix: string, addressType: string, addressOf: (e: number) => string): KubernetesObject => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...metadata,
      name: `${metadata.name}-${suffix}`,
      labels: { 'kubernetes.io/service-name': metadata.name },
    },
    addressType,
    ports: chance(0.1) ? slicePorts.toReversed().slice(0, 1) : slicePorts,
    endpoints: endpoints
      .filter(() => chance(0.7))
      .map((e) => ({
        addresses: [addressOf(e)],
        nodeName: `node-${1 + (e % 3)}`,
        conditions: { ready: chance(0.7), serving: chance(0.8), terminating: chance(0.3) },
        ...(chance(0.5) ? { hints: { forZones: [{ name: e % 3 === 2 ? 'west' : 'east' }] } } : {}),
      })),
  });
  const ipv4 = (e: number) => `10.244.${1 + (e % 3)}.${1 + ((i * 8 + e) % 250)}`;
  const ipv6 = (e: number) => `fd00:244:${1 + (e % 3)}::${(i * 8 + e).toString(16)}`;
  return [
    service,
    slice('aaaaa', 'IPv4', ipv4),
    ...(chance(0.4) ? [slice('bbbbb', 'IPv4', ipv4)] : []),
    ...(dual ? [slice('ccccc', 'IPv6', ipv6)] : []),
  ];
}

function addresses(i: number, dual: boolean): { readonly clusterIP: string; readonly clusterIPs: readonly string[] } {
  const clusterIP = `10.96.${1 + Math.floor(i / 200)}.${1 + (i % 200)}`;
  return { clusterIP, clusterIPs: dual ? [clusterIP, `fd00:96::${(i + 1).toString(16)}`] : [clusterIP] };
}

function makeEndpoints(
  metadata: { readonly name: string; readonly namespace: string },
  ports: readonly { readonly name: string; readonly targetPort: number; readonly protocol?: string }[],
  endpoints: readonly number[],
): KubernetesObject {
  const subset = {
    addresses: endpoints.map((e) => ({ ip: `10.20.30.${1 + e}`, nodeName: `node-${1 + (e % 3)}` })),
    ports: ports.map(({ name, targetPort, protocol }) => ({ name, port: targetPort, protocol: protocol ?? 'TCP' })),
  };
  return { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets: endpoints.length > 0 ? [subset] : [] };
}

function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}
