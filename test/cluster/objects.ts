// The objects of the cluster that the tests run beside: Nodes in two zones, Services of all kinds, and Pods in all states.

type Fields = Readonly<Record<string, unknown>>;

const since = '2026-01-01T00:00:00Z';

export const nodeNames = ['node-1', 'node-2', 'node-3'] as const;

/** Two Nodes in one zone, and one in another. */
export const nodes = nodeNames.map((name, i) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name,
    labels: { 'topology.kubernetes.io/zone': i < 2 ? 'zone-a' : 'zone-b', 'kubernetes.io/hostname': name },
  },
  spec: { podCIDR: `10.244.${i + 1}.0/24`, podCIDRs: [`10.244.${i + 1}.0/24`, `fd00:10:244:${i + 1}::/64`] },
}));

export const nodeStatuses = nodeNames.map((name, i) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: {
    addresses: [
      ...nodeAddresses(i).map((address) => ({ type: 'InternalIP', address })),
      { type: 'Hostname', address: name },
    ],
    allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
    capacity: { cpu: '4', memory: '8Gi', pods: '110' },
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        lastHeartbeatTime: since,
        lastTransitionTime: since,
        reason: 'KubeletReady',
        message: '',
      },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
  },
}));

/** Of IPv4 and IPv6. */
export function nodeAddresses(index: number): readonly [string, string] {
  return [`192.0.2.1${index + 1}`, `2001:db8::1${index + 1}`];
}

/** The policies of the cluster: of what a test asks about, one of each kind that decides. */
export const policies = [
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'only-from-web', namespace: 'default' },
    spec: {
      podSelector: { matchLabels: { app: 'guarded' } },
      ingress: [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }] }],
    },
  },
];

function service(name: string, spec: Fields, metadata: Fields = {}) {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'default', ...metadata }, spec };
}

const web = { app: 'web' };
const http = { name: 'http', port: 80, targetPort: 'http', protocol: 'TCP' };
const dns = { name: 'dns', port: 53, targetPort: 5353, protocol: 'UDP' };
const ranges = ['192.0.2.0/24', '10.0.0.0/8', '2001:db8::/32'];
const clientIP = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 120 } } };

export const services = [
  service('web', { selector: web, ports: [http] }),
  service('two-ports', { type: 'NodePort', selector: web, ports: [http, dns] }),
  service('node-port-local', { type: 'NodePort', externalTrafficPolicy: 'Local', selector: web, ports: [http] }),
  service('balanced', { type: 'LoadBalancer', selector: web, ports: [http], loadBalancerSourceRanges: ranges }),
  service('balanced-local', { type: 'LoadBalancer', externalTrafficPolicy: 'Local', selector: web, ports: [http] }),
  service('balanced-by-proxy', { type: 'LoadBalancer', selector: web, ports: [http] }),
  service('without-node-ports', {
    type: 'LoadBalancer',
    allocateLoadBalancerNodePorts: false,
    selector: web,
    ports: [http],
  }),
  service('external', { selector: web, ports: [http], externalIPs: ['198.51.100.7', '2001:db8:7::7'] }),
  service('dual', { ipFamilyPolicy: 'RequireDualStack', type: 'NodePort', selector: web, ports: [http] }),
  service('of-ipv6', { ipFamilies: ['IPv6'], selector: web, ports: [http] }),
  service('headless', { clusterIP: 'None', selector: web, ports: [http] }),
  service('sticky', { ...clientIP, type: 'NodePort', selector: web, ports: [http] }),
  service('internal-local', { internalTrafficPolicy: 'Local', selector: { app: 'lonely' }, ports: [http] }),
  service('same-zone', { trafficDistribution: 'PreferSameZone', selector: web, ports: [http] }),
  service('same-node', { trafficDistribution: 'PreferSameNode', selector: web, ports: [http] }),
  service('no-pods', { type: 'NodePort', selector: { app: 'absent' }, ports: [http] }),
  service('not-ready', { selector: { app: 'starting' }, ports: [http] }),
  service('published', { publishNotReadyAddresses: true, selector: { app: 'starting' }, ports: [http] }),
  service('draining', { type: 'NodePort', selector: { app: 'draining' }, ports: [http] }),
  service('stream', { selector: web, ports: [{ port: 9999, targetPort: 9999, protocol: 'SCTP' }] }),
  service('by-hand', { ports: [http] }),
  service('mirrored', { ports: [http] }),
  service('elsewhere', { type: 'ExternalName', externalName: 'example.com' }),
  service(
    'other-proxy',
    { selector: web, ports: [http] },
    { labels: { 'service.kubernetes.io/service-proxy-name': 'mesh' } },
  ),
  service('guarded', { selector: { app: 'guarded' }, ports: [http] }),
  service('host', { selector: { app: 'host' }, ports: [http] }, { namespace: 'kube-system' }),
];

function balancer(name: string, ...ingress: readonly Fields[]) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    status: { loadBalancer: { ingress } },
  };
}

export const serviceStatuses = [
  balancer('balanced', { ip: '203.0.113.10', ipMode: 'VIP' }),
  balancer('balanced-local', { ip: '203.0.113.11', ipMode: 'VIP' }),
  balancer('balanced-by-proxy', { ip: '203.0.113.12', ipMode: 'Proxy' }),
  balancer('without-node-ports', { ip: '203.0.113.13', ipMode: 'VIP' }),
];

/** Services without a selector: a slice by hand, and Endpoints that the controller mirrors. */
export const endpointsByHand = [
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'by-hand-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'by-hand' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: ['172.16.0.9'], conditions: { ready: true } }, { addresses: ['172.16.0.8'] }],
  },
  {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'mirrored', namespace: 'default' },
    subsets: [{ addresses: [{ ip: '172.16.0.7' }], ports: [{ name: 'http', port: 8080, protocol: 'TCP' }] }],
  },
];

/** A Pod that was scheduled: what it is, and where. */
interface PlacedPod {
  readonly name: string;
  readonly app: string;
  /** Of `nodeNames`. */
  readonly node: number;
  readonly namespace?: string;
  readonly isReady?: boolean;
  readonly hostNetwork?: boolean;
}

/** `draining-1` and `draining-2` are deleted by the tests, and no kubelet lets them go. */
export const placedPods: readonly PlacedPod[] = [
  { name: 'web-1', app: 'web', node: 0 },
  { name: 'web-2', app: 'web', node: 1 },
  { name: 'web-3', app: 'web', node: 2 },
  { name: 'web-4', app: 'web', node: 2, isReady: false },
  { name: 'lonely-1', app: 'lonely', node: 1 },
  { name: 'starting-1', app: 'starting', node: 0, isReady: false },
  { name: 'draining-1', app: 'draining', node: 0 },
  { name: 'draining-2', app: 'draining', node: 1 },
  { name: 'guarded-1', app: 'guarded', node: 0 },
  { name: 'host-1', app: 'host', node: 1, namespace: 'kube-system', hostNetwork: true },
];

export function podOf({ name, app, node, namespace = 'default', hostNetwork = false }: PlacedPod) {
  const ports = [{ name: 'http', containerPort: 8080 }];
  const spec = {
    nodeName: nodeNames[node],
    hostNetwork,
    containers: [{ name: 'main', image: 'example.com/web', ports }],
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, labels: { app } }, spec };
}

export function podStatusOf(pod: PlacedPod, index: number) {
  const { name, namespace = 'default', node, isReady = true, hostNetwork } = pod;
  const address = hostNetwork ? nodeAddresses(node)[0] : `10.244.${node + 1}.${index + 10}`;
  const ips = [{ ip: address }, ...(hostNetwork ? [] : [{ ip: `fd00:10:244:${node + 1}::${index + 10}` }])];
  const status = isReady ? 'True' : 'False';
  const conditions = ['Ready', 'ContainersReady', 'Initialized', 'PodScheduled'].map((type) => {
    return { type, status: type === 'PodScheduled' ? 'True' : status, lastTransitionTime: since };
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    status: {
      phase: 'Running',
      podIP: address,
      podIPs: ips,
      hostIP: nodeAddresses(node)[0],
      conditions,
      startTime: since,
    },
  };
}
