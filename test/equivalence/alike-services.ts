const zone = 'topology.kubernetes.io/zone';

/**
 * Manifests of Services of few shapes on three nodes: most differ from others in names and addresses alone. Some are odd ones of their
 * shape: they share endpoints or an external address, or have the address of a node or of another Service for an endpoint.
 */
export function makeAlikeServices(count: number, random: () => number): string {
  const chance = (share: number): boolean => random() < share;
  const pick = <T>(...items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const shapes = Array.from({ length: 3 }, () => ({
    type: pick('ClusterIP', 'NodePort', 'LoadBalancer'),
    internal: pick('Cluster', 'Cluster', 'Local'),
    external: pick('Cluster', 'Local'),
    affinity: chance(0.2),
    ranges: chance(0.4) ? ['198.51.100.0/28', '10.244.1.0/24'] : undefined,
    ports: pick([80], [80, 443]),
    hinted: chance(0.2),
    places: Array.from({ length: Math.floor(random() * 4) }, () => 1 + Math.floor(random() * 3)),
    ready: Array.from({ length: 4 }, () => chance(0.8)),
    hasExternal: chance(0.3),
  }));
  const nodes = [1, 2, 3].map((n) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `node-${n}`, labels: { [zone]: n === 3 ? 'west' : 'east' } },
    spec: { podCIDRs: [`10.244.${n}.0/24`] },
    status: { addresses: [{ type: 'InternalIP', address: `192.168.50.1${n}` }] },
  }));
  const services = Array.from({ length: count }, (_, i) => {
    const shape = pick(...shapes);
    const oddity = pick('none', 'none', 'none', 'none', 'shared', 'host', 'other-service', 'external');
    const isOuter = shape.type !== 'ClusterIP';
    const addressOf = (place: number, e: number): string => {
      if (e === 0 && oddity === 'shared') return `10.244.${place}.200`;
      if (e === 0 && oddity === 'host') return `192.168.50.1${place}`;
      if (e === 0 && oddity === 'other-service') return `10.96.0.${10 + ((i + 1) % count)}`;
      return `10.244.${place}.${10 + i * 4 + e}`;
    };
    const ports = shape.ports.map((port, p) => ({
      name: `p${p}`,
      port,
      targetPort: 8000 + p,
      ...(isOuter ? { nodePort: 30000 + i * 4 + p } : {}),
    }));
    const external = oddity === 'external' ? ['203.0.113.200'] : shape.hasExternal ? [`203.0.113.${10 + i}`] : [];
    return [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: `web-${i}` },
        spec: {
          type: shape.type,
          clusterIP: `10.96.0.${10 + i}`,
          clusterIPs: [`10.96.0.${10 + i}`],
          internalTrafficPolicy: shape.internal,
          ...(isOuter || external.length > 0 ? { externalTrafficPolicy: shape.external } : {}),
          ...(external.length > 0 ? { externalIPs: external } : {}),
          ...(shape.affinity ? { sessionAffinity: 'ClientIP' } : {}),
          ...(shape.type === 'LoadBalancer' && shape.ranges ? { loadBalancerSourceRanges: shape.ranges } : {}),
          ...(shape.type === 'LoadBalancer' && shape.external === 'Local' ? { healthCheckNodePort: 32000 + i } : {}),
          ports,
        },
        ...(shape.type === 'LoadBalancer'
          ? { status: { loadBalancer: { ingress: [{ ip: `203.0.113.${100 + i}` }] } } }
          : {}),
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: `web-${i}-x`, labels: { 'kubernetes.io/service-name': `web-${i}` } },
        addressType: 'IPv4',
        ports: ports.map(({ name, targetPort }) => ({ name, port: targetPort, protocol: 'TCP' })),
        endpoints: shape.places.map((place, e) => ({
          addresses: [addressOf(place, e)],
          nodeName: `node-${place}`,
          conditions: { ready: shape.ready[e], serving: true, terminating: shape.ready[e] !== true },
          ...(shape.hinted ? { hints: { forZones: [{ name: place === 3 ? 'west' : 'east' }] } } : {}),
        })),
      },
    ];
  });
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...nodes, ...services.flat()] });
}
