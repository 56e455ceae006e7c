import { addresses, pods } from './network.ts';

/** Services of random kinds on the pods and nodes of network.ts, and kube-proxy's flags for compiling them. */
export interface RandomCluster {
  readonly manifests: string;
  readonly flags: readonly string[];
}

type Version = 'IPv4' | 'IPv6';

const names = { IPv4: 'ipv4', IPv6: 'ipv6' } as const;

export function makeCluster(random: () => number): RandomCluster {
  const chance = (share: number): boolean => random() < share;
  const pick = <T>(...items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const objects = Array.from({ length: 6 }, (_, i) => {
    const versions = pick<readonly Version[]>(['IPv4'], ['IPv4'], ['IPv6'], ['IPv4', 'IPv6']);
    const [first] = versions;
    const protocol = pick('TCP', 'TCP', 'UDP');
    const ofHosts = protocol === 'TCP' && chance(0.15);
    const of = (text: string): string =>
      first === 'IPv4' ? text : text.replace(/^\d+\.\d+\.(\d+)\.(\d+)$/, 'fd00:$1::$2');
    const clusterIPs = versions.map((version) => (version === 'IPv4' ? `10.96.0.${10 + i}` : `fd00:96::${10 + i}`));
    const type = pick('ClusterIP', 'NodePort', 'LoadBalancer');
    const isOuter = type !== 'ClusterIP';
    const ranges = first === 'IPv4' ? ['192.168.0.100/32', '10.1.0.0/16'] : ['fd00:192::100/128', 'fd00:1::/32'];
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `web-${i}` },
      spec: {
        type,
        clusterIP: clusterIPs[0],
        clusterIPs,
        ipFamilies: versions,
        ipFamilyPolicy: versions.length > 1 ? 'RequireDualStack' : 'SingleStack',
        internalTrafficPolicy: pick('Cluster', 'Cluster', 'Local'),
        ...(isOuter || chance(0.2) ? { externalTrafficPolicy: isOuter ? pick('Cluster', 'Local') : undefined } : {}),
        ...(chance(0.3) ? { externalIPs: [of(`203.0.113.${30 + i}`)] } : {}),
        ...(chance(0.15) ? { sessionAffinity: 'ClientIP' } : {}),
        ...(type === 'LoadBalancer' && chance(0.4) ? { loadBalancerSourceRanges: [pick(...ranges)] } : {}),
        ports: [
          {
            name: 'main',
            port: pick(80, 80, 81, 8080),
            targetPort: 8080,
            protocol,
            ...(isOuter ? { nodePort: 30080 + i } : {}),
          },
        ],
      },
      ...(type === 'LoadBalancer'
        ? { status: { loadBalancer: { ingress: [{ ip: of(`203.0.113.${50 + i}`) }] } } }
        : {}),
    };
    const slices = versions.map((version) => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `web-${i}-${names[version]}`, labels: { 'kubernetes.io/service-name': `web-${i}` } },
      addressType: version,
      ports: [{ name: 'main', port: ofHosts ? 9999 : 8080, protocol }],
      endpoints: (ofHosts ? (['node1', 'node2'] as const) : pods)
        .filter(() => chance(0.5))
        .map((name) => {
          const nodeName = ['node1', 'pod-a', 'pod-b'].includes(name) ? 'node1' : 'node2';
          const conditions = pick({ ready: true }, { ready: true }, { ready: false, serving: true, terminating: true });
          return { addresses: [addresses[name][names[version]]], nodeName, conditions };
        }),
    }));
    return [service, ...slices];
  });
  const flags = [
    ...(chance(0.2) ? ['--masquerade-all'] : []),
    ...(chance(0.3) ? ['--nodeport-addresses', pick('192.168.0.0/24,fd00:192::/64', '0.0.0.0/0,::/0', 'primary')] : []),
  ];
  return {
    manifests: objects
      .flat()
      .map((object) => JSON.stringify(object))
      .join('\n---\n'),
    flags,
  };
}
