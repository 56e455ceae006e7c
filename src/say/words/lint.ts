import { count, formatCount, joinWords, escapeText, printable } from '../../base/printable.ts';
import { familyNames } from '../../kernel/address.ts';
import { announcedDefault } from '../../kube-proxy/announced.ts';
import { behaviourWords, kepLink } from './behaviours.ts';
import { unreadyWords } from '../way/lack.ts';
import { byCase, didYouMean, listCodes, type WordsOf, nameSome } from './rows.ts';
import { valueNames } from './services.ts';
import {
  type OnNodes,
  type Unready,
  type FromOutside,
  type MissingObject,
  isIdle,
  type lintFindings,
} from '../../base/findings/lint.ts';

function onNodes({ family, ...on }: OnNodes, all = 'all'): string {
  return family === undefined ? nameNodes(on, all) : `for ${familyNames[family]} ${nameNodes(on, all)}`;
}

function nameNodes({ nodes, of }: OnNodes, all: string): string {
  if (nodes.length < of) return `on ${formatCount(nodes.length)} of ${count(of, 'node')} (${nameSome(nodes)})`;
  if (of === 1) return `on node ${nodes[0]}`;
  return of === 2 && all === 'all' ? 'on both nodes' : `on ${all} ${formatCount(of)} nodes`;
}

/** Returns the words after "no endpoint runs". */
function onNone(nodes: OnNodes): string {
  return onNodes(nodes, 'any of the');
}

const onEveryNode = 'run an endpoint on every node (DaemonSet)';
const preferSameNode = 'use trafficDistribution: PreferSameNode instead';
const useCluster = 'use externalTrafficPolicy: Cluster';

function outsideWords({ way, at }: FromOutside): string {
  return at === undefined ? valueNames[way] : `${valueNames[way]} ${at}`;
}

const refusedTwice = 'the API server refuses the second; in a cluster with both';
const takeAnother = 'remove healthCheckNodePort: the API server then picks a free port';
const fallsBack = 'kube-proxy uses the endpoints of all zones';

function helpOfUnready(details: Unready): string {
  const { endpoints, owner, unused, publishes } = details;
  if (isIdle(details)) return 'set replicas, unless this is intended';
  switch (unused?.by) {
    case 'address-type':
      return 'write slices with IP addresses of a family in which the Service has a cluster IP';
    case 'port':
      return 'write the port that the endpoints listen on';
    case undefined:
  }
  if (endpoints === 0)
    return owner === undefined
      ? 'compare its selector with the labels of its Pods'
      : `it selects ${owner}: check that its Pods run`;
  return publishes
    ? 'fetch its slices again: with publishNotReadyAddresses: true, the control plane marks every endpoint ready'
    : 'check why its Pods are not ready, or set publishNotReadyAddresses: true';
}

function nearOr({ near, maker }: MissingObject, help: string) {
  return didYouMean(near, maker === undefined ? help : `${help}, unless ${printable(maker)} makes it`);
}

/** The reasons why kube-proxy cannot recognise a node's Pods. */
const undetected = {
  podCIDRs: 'its Node has no podCIDRs of that family',
  clusterCIDR: 'clusterCIDR is not set',
  ipv4: 'clusterCIDR has no IPv4 network',
  ipv6: 'clusterCIDR has no IPv6 network',
} as const;

export const lintWords: WordsOf<typeof lintFindings> = {
  'local-without-endpoint': byCase('traffic', {
    internal: ({ service, ...nodes }) => [
      `${service}: internalTrafficPolicy is Local, but no endpoint runs ${onNone(nodes)}, so Pods there cannot reach the Service`,
      onEveryNode,
      preferSameNode,
    ],
    'internal-tainted': ({ service, ...nodes }) => [
      `${service}: internalTrafficPolicy is Local, but no endpoint runs ${onNodes(nodes)} (taints keep most Pods off), so Pods there cannot reach the Service`,
      'if Pods on those nodes use the Service, let its Pods tolerate the taints',
    ],
    'internal-few': ({ service, pods, among }) => [
      `${service}: internalTrafficPolicy is Local, but the Service has only ${count(pods, 'Pod')} for ${formatCount(among)} nodes: clients on the other nodes cannot reach it`,
      onEveryNode,
      preferSameNode,
    ],
    external: ({ service, ...at }) => [
      `${service}: externalTrafficPolicy is Local, but no endpoint runs ${onNone(at)}, so clients of ${outsideWords(at)} there reach nothing`,
      'send clients only to nodes that have an endpoint, as a load balancer does with the health check port',
      useCluster,
    ],
    unplaced: ({ service, ...at }) => [
      `${service}: externalTrafficPolicy is Local, but its EndpointSlices name no node, so every node drops packets from clients to its ${outsideWords(at)}`,
      'add nodeName to each endpoint',
      useCluster,
    ],
    unsteered: ({ service }) => [
      `${service}: externalTrafficPolicy is Local, but clients of its node port cannot tell which nodes have an endpoint, and nodes without one do not answer`,
      'use type LoadBalancer (it has a health check port) or externalTrafficPolicy: Cluster',
      'run an endpoint on every node',
    ],
  }),
  'undetected-pods': ({ service, address, lacks, ...nodes }) => [
    `${service}: externalTrafficPolicy is Local, but kube-proxy cannot recognise Pods (${undetected[lacks]}), so it drops packets from Pods to ${address} ${onNodes(nodes)}, where no endpoint runs`,
    "set clusterCIDR, or choose another detectLocalMode, in kube-proxy's configuration",
  ],
  'no-ready-endpoint': ({ service, ...details }) => {
    return [`${service} refuses connections: ${unreadyWords(details)}`, helpOfUnready(details)];
  },
  'family-without-endpoints': ({ service, address, other }) => [
    `${service} refuses connections to ${address}: its endpoints have only ${familyNames[other]} addresses`,
    'run dual-stack Pods',
    'set ipFamilyPolicy: SingleStack',
  ],
  'unserved-address': ({ service, address, family }) => [
    `${service} has no ${familyNames[family]} cluster IP, so kube-proxy programs nothing for its address ${address}`,
    'add the family to ipFamilies with ipFamilyPolicy: PreferDualStack',
    'remove the address',
  ],
  'headless-addresses': ({ service, addresses }) => [
    `${service} is headless (clusterIP: None), so kube-proxy programs nothing for ${nameSome(addresses)}`,
    'remove clusterIP: None',
    'remove the addresses',
  ],
  'headless-port': ({ service, port, target, owner }) => [
    `${service} is headless, so its port ${port} is not mapped to ${target}: clients reach ${owner} on port ${port}, which no container lists`,
    `use port ${target} in clients`,
    'give the Service a cluster IP',
  ],
  'undeclared-port': ({ service, port, owner, ports }) => [
    `${service}: no container of its Pods lists the target port ${port}; ${owner} lists ${joinWords(ports)}`,
    'check which port the containers listen on; listing a port does not open it',
  ],
  'taken-health-check-port': byCase('taken', {
    'as-node-port': ({ service, port, holder }) => [
      `${service}: its health check node port ${port} is also the node port of ${holder}: ${refusedTwice}, ${holder} gets the packets, and load balancers cannot tell which nodes have endpoints of ${service}`,
      takeAnother,
    ],
    'as-health-check-port': ({ service, port, holder }) => [
      `${service}: its health check node port ${port} is also that of ${holder}: ${refusedTwice}, kube-proxy reports the health of one, and load balancers use that answer for both`,
      takeAnother,
    ],
  }),
  'cluster-ip-endpoint': ({ service, address, holder }) => [
    `${service}: its endpoint ${address} is ${holder === service ? 'its own cluster IP' : `the cluster IP of ${holder}`}: kube-proxy translates a packet only once, so clients reach no Pod`,
    'replace that endpoint with the addresses of the Pods or machines behind the Service',
    holder === service ? undefined : 'use type: ExternalName with the DNS name of that Service',
  ],
  'unused-slice-port': ({ service, port, ports }) => [
    `kube-proxy ignores this port of the EndpointSlice: ${service} has no port ${port}`,
    `it has ${joinWords(ports)}`,
  ],
  'open-node-port': ({ service, ports }) => [
    `${service}: loadBalancerSourceRanges do not protect ${ports.length === 0 ? 'the node port that the API server gives it' : `node port ${joinWords(ports)}`}: any client that reaches a node gets in`,
    ports.length === 0
      ? 'set allocateLoadBalancerNodePorts: false if the load balancer needs no node port'
      : 'if the load balancer needs no node port, set allocateLoadBalancerNodePorts: false, and remove the nodePort fields: the API server keeps these ports until then',
    'block the port in a firewall',
  ],
  'unbound-source-ranges': byCase('problem', {
    'ip-mode-proxy': ({ service, address }) => [
      `${service}: nodes do not apply loadBalancerSourceRanges to ${address} (ipMode is Proxy)`,
      'check that the load balancer applies them itself',
    ],
    hostname: ({ service, hostname }) => [
      `${service}: nodes do not apply loadBalancerSourceRanges to ${escapeText(hostname)}, because the load balancer has a host name instead of an address`,
      'check that the load balancer applies them itself',
    ],
    'other-family': ({ service, address, family }) => [
      `${service}: ${address} is open to all clients, because loadBalancerSourceRanges holds no ${familyNames[family]} range`,
      `add an ${familyNames[family]} range`,
    ],
  }),
  'node-shut-out': ({ service, address, ...nodes }) => [
    `${service}: loadBalancerSourceRanges exclude the node's own address ${onNodes(nodes)}, so programs on its host network cannot reach ${address}`,
    'add the network of the nodes if the kubelet, host network Pods or health checks use that address',
  ],
  'node-port-range': ({ what, nodePort, range, isUsual }) => [
    isUsual
      ? `${valueNames[what]} ${nodePort} is outside ${range}, the default --service-node-port-range of an API server`
      : `the API server refuses ${valueNames[what]} ${nodePort}: it is outside ${range}`,
    'choose another',
    isUsual ? 'name your range with --service-node-port-range' : undefined,
  ],
  'refused-cluster-ip': byCase('problem', {
    taken: ({ service, address, holder }) => [
      `${service} and ${holder} both have cluster IP ${address}: the API server refuses the second`,
      'remove clusterIP from one of them',
      'merge their ports into one Service',
    ],
    'out-of-range': ({ service, address, networks }) => [
      `${service}: the API server refuses cluster IP ${address}, which is outside ${joinWords(networks)}`,
      'remove clusterIP',
      'choose an address in a ServiceCIDR',
    ],
  }),
  'unnamed-mode': [
    `the configuration sets no mode: the default is iptables before 1.${announcedDefault.since} and ${announcedDefault.mode} from then on (announced: KEP-${announcedDefault.kep}, ${kepLink(announcedDefault.kep)})`,
    `set mode: iptables or mode: ${announcedDefault.mode}`,
  ],
  'idle-hints': byCase('problem', {
    'policy-local': ({ service, field }) => [
      `${service}: ${field} has no effect, because internalTrafficPolicy is Local and the Service has only a cluster IP`,
      'keep one of the two',
    ],
    'not-in-release': ({ service, field, release, behaviour }) => [
      `${service}: ${field} has no effect: kube-proxy of ${release} ${behaviourWords[behaviour][0]}`,
      'remove it',
      'upgrade',
    ],
    'no-hints': ({ service, field, endpoints }) => [
      `${service}: ${field} has no effect, because ${endpoints === 1 ? 'its one endpoint' : `none of its ${formatCount(endpoints)} endpoints`} has ${endpoints === 1 ? 'no hint' : 'hints'}`,
      'kubectl describe service shows why the control plane gives no hints',
    ],
    'endpoint-without-hint': ({ service, endpoint: bare, ...nodes }) => [
      `${service}: zone hints have no effect ${onNodes(nodes)}: the endpoint ${bare} has none, so ${fallsBack}`,
      'wait for the control plane',
      'give each ready endpoint a hint',
    ],
    'node-without-zone': ({ service, ...nodes }) => [
      `${service}: zone hints have no effect ${onNodes(nodes)}: the Node has no label topology.kubernetes.io/zone, so ${fallsBack}`,
      'label the Nodes',
    ],
    'none-for-zone': ({ service, zones, ...nodes }) => [
      `${service} has no endpoint for zone ${nameSome(zones)}: ${onNodes(nodes)}, ${fallsBack}`,
      'run an endpoint in each zone',
    ],
  }),
  'idle-affinity': byCase('problem', {
    headless: ({ service }) => [`${service}: sessionAffinity has no effect on a headless Service`, 'remove it'],
    scheduler: ({ service, scheduler, seconds }) => [
      `${service}: the scheduler ${scheduler} already sends a client to one endpoint; sessionAffinity only keeps the client there for ${formatCount(seconds)} seconds when endpoints change`,
      'remove sessionAffinity',
      'use another scheduler',
    ],
  }),
  'full-set': ({ set, entries, limit, ...nodes }) => [
    `${nodes.of === 0 ? '' : `${onNodes(nodes)}, `}the set ${set} needs ${formatCount(entries)} entries, but kube-proxy creates it for ${formatCount(limit)} and drops the rest`,
    'use fewer ports, addresses or source ranges, or nftables mode, whose sets have no limit',
  ],
  'lax-arp': ({ by }) => [
    `${by} announces load balancer addresses by ARP, but strictARP is off: every node has these addresses on kube-ipvs0 and answers ARP requests`,
    'set ipvs.strictARP: true (--ipvs-strict-arp)',
  ],
  'host-port': (details) => [
    `${details.service}: ${details.owner} has hostPort ${joinWords(details.ports)}, so clients reach its Pods on their nodes, bypassing ${details.beside === 'source-ranges' ? 'loadBalancerSourceRanges' : 'the Service'}`,
    'remove hostPort if the Service should be the only way in',
  ],
  'policy-port': (details) => {
    const { service, policy, owner, protocol, port, target } = details;
    return [
      `${service}: network plugins drop its traffic: NetworkPolicy ${policy} allows port ${port}/${protocol}, but ${owner} listens on ${target}, which no policy allows`,
      `allow port ${target}: policies name ports of Pods, not of Services`,
    ];
  },
  'unknown-service': byCase('problem', {
    backend: (details) => [
      `${details.owner} routes to Service ${details.missing}, which is not in the input`,
      nearOr(details, 'add the Service, or name another Service'),
    ],
    port: ({ owner, service, port, ports }) => [
      `${owner} routes to port ${port} of Service ${service}, which has no such port, so requests fail`,
      ports.length === 0 ? 'the Service has no ports' : `name one of its ports: ${joinWords(ports)}`,
    ],
    'service-name': (details) => [
      `${details.owner} names Service ${details.missing}, which is not in the input; without it, the Pods get no DNS names`,
      nearOr(details, 'add a headless Service of that name'),
    ],
  }),
  'ignored-service': ({ service, label }) => [
    `${service} has the label ${label}, so kube-proxy ignores it`,
    'remove the label, unless another program serves this Service',
  ],
  'misspelled-key': ({ service, key, near, field }) => [
    `${service}: nothing reads the ${field === 'labels' ? 'label' : 'annotation'} ${escapeText(key)}`,
    didYouMean(near),
  ],
  'idle-ignore': byCase('problem', {
    'matches-nothing': ({ by, code, service }) => [
      `${by} ignores ${code}${service === undefined ? '' : ` of ${service}`}, but there is no such finding`,
      'remove it',
    ],
    error: ({ by, code }) => [
      `${by} ignores ${code}, but it is an error here, and errors cannot be ignored`,
      'fix it',
      'skip its object with --skip-invalid',
    ],
    'no-such-code': ({ by, code, near }) => [
      `${by}: no message has the code ${escapeText(code)}`,
      didYouMean(near, listCodes),
    ],
  }),
};
