import { count, formatCount } from '../../base/format-count.ts';
import { joinWords, nameSome } from '../../base/join-words.ts';
import { escapeText, printable } from '../../base/printable.ts';
import { familyNames } from '../../kernel/family.ts';
import { announcedDefault, kepLink } from '../../kube-proxy/announced.ts';
import { behaviourChanges } from '../../kube-proxy/releases.ts';
import { byCase, type WordsOf } from './rows.ts';
import {
  type OnNodes,
  type Unready,
  type Unused,
  type Missing,
  isIdle,
  type lintFindings,
} from '../../base/findings/lint.ts';

function onNodes({ nodes, of }: OnNodes, all = 'all'): string {
  if (nodes.length < of) return `on ${formatCount(nodes.length)} of ${count(of, 'node')} (${nameSome(nodes)})`;
  return of === 1 ? `on node ${nodes[0]}` : `on ${all} ${formatCount(of)} nodes`;
}

/** After "no endpoint runs". */
function onNone(nodes: OnNodes): string {
  return onNodes(nodes, 'any of the');
}

const refusedTwice =
  'the API server refuses the second of them, because the port is already allocated; if a cluster has both';
const takeAnother = 'leave healthCheckNodePort out, and the API server gives it a free one';
const fallsBack = 'kube-proxy uses the endpoints of all zones';

function unusedWords(unused: Unused): readonly [wrong: string, help: string] {
  switch (unused.by) {
    case 'address-type':
      return [
        `kube-proxy skips its EndpointSlices, of addressType ${joinWords(unused.types)}`,
        'write the addresses of its endpoints, in slices of a family in which the Service has a cluster IP',
      ];
    case 'port':
      return [
        'kube-proxy skips the ports of its EndpointSlices, which have no number',
        'write the port that its endpoints listen on',
      ];
  }
}

function whyEmpty(owner: string | undefined): string {
  return owner === undefined
    ? 'compare its selector with the labels of its Pods'
    : `its selector fits ${owner}: see whether its Pods run`;
}

function whyUnready({ publishes }: Unready): string {
  return publishes
    ? 'get its slices anew: with publishNotReadyAddresses: true, the control plane lists every endpoint as ready'
    : 'see why its Pods are not ready, or list them anyway with publishNotReadyAddresses: true';
}

function nearOr({ near, maker }: Missing, help: string): string {
  if (near !== undefined) return `did you mean ${near}?`;
  return maker === undefined ? help : `${help}, unless ${printable(maker)} makes it`;
}

/** Rules of kpc lint: what is valid, but does not do what it seems to say. */
export const lintWords: WordsOf<typeof lintFindings> = {
  'local-without-endpoint': byCase('traffic', {
    internal: ({ service, ...nodes }) => [
      `${service}: internalTrafficPolicy is Local, and no endpoint runs ${onNone(nodes)}: packets of Pods there to the Service reach no endpoint`,
      'run an endpoint on every node, as a DaemonSet does, or prefer the own node with trafficDistribution: PreferSameNode',
    ],
    'internal-tainted': ({ service, ...nodes }) => [
      `${service}: internalTrafficPolicy is Local, and no endpoint runs ${onNodes(nodes)}, whose taints keep most Pods away: packets of Pods there to the Service reach no endpoint`,
      'let its Pods tolerate the taints, if Pods there need it',
    ],
    external: ({ service, way, ...nodes }) => [
      `${service}: externalTrafficPolicy is Local, and no endpoint runs ${onNone(nodes)}: packets of clients to ${way} there reach no endpoint`,
      'send clients to nodes with an endpoint only, as a load balancer does by the health check port, or use externalTrafficPolicy: Cluster',
    ],
    unplaced: ({ service, way }) => [
      `${service}: externalTrafficPolicy is Local, and its EndpointSlices name no node: every node drops packets of clients to its ${way}`,
      'write nodeName beside the addresses of each endpoint, or use externalTrafficPolicy: Cluster',
    ],
    unsteered: ({ service }) => [
      `${service}: externalTrafficPolicy is Local, and nothing tells clients of its node port which nodes have an endpoint: the other nodes drop their packets`,
      'use type LoadBalancer, which has a health check port, or externalTrafficPolicy: Cluster, or run an endpoint on every node',
    ],
  }),
  'undetected-pods': ({ service, address, lacks, ...nodes }) => [
    `${service}: externalTrafficPolicy is Local, and kube-proxy cannot tell Pods from other clients, because ${lacks}: ${onNodes(nodes)}, where no endpoint runs, it drops packets of Pods to ${address}`,
    "set clusterCIDR, or detectLocalMode and what it needs, in kube-proxy's configuration",
  ],
  'no-ready-endpoint': ({ service, ...details }) => {
    const { endpoints, owner, unused } = details;
    if (isIdle(details))
      return [
        `${service}: ${owner}, which it selects, is scaled to 0, so packets to it are refused`,
        'nothing, if that is meant; otherwise set replicas',
      ];
    if (unused) {
      const [wrong, help] = unusedWords(unused);
      return [`${service}: ${wrong}, so packets to it are refused`, help];
    }
    if (endpoints === 0)
      return [`${service}: its EndpointSlices hold no endpoints, so packets to it are refused`, whyEmpty(owner)];
    const which = endpoints === 1 ? 'its one endpoint is not' : `none of its ${formatCount(endpoints)} endpoints is`;
    return [`${service}: ${which} ready, so packets to it are refused`, whyUnready(details)];
  },
  'family-without-endpoints': ({ service, address, family, other }) => [
    `${service} has the ${familyNames[family]} address ${address}, and its endpoints are ${familyNames[other]} only: packets to ${address} are refused`,
    'give its Pods addresses of both families, or the Service ipFamilyPolicy: SingleStack',
  ],
  'unserved-address': ({ service, address, family }) => [
    `${service} has no ${familyNames[family]} cluster IP, so kube-proxy programs nothing for its address ${address}`,
    'add the family to ipFamilies, with ipFamilyPolicy: PreferDualStack, or leave the address out',
  ],
  'headless-addresses': ({ service, addresses }) => [
    `${service} is headless (clusterIP: None), so kube-proxy programs nothing for ${nameSome(addresses)}`,
    'leave clusterIP out, so that the Service gets one, or leave the addresses out',
  ],
  'headless-port': ({ service, port, target, owner }) => [
    `${service} is headless, so nothing maps its port ${port} to ${target}: clients that use its name and port ${port} reach ${owner} at port ${port}, which no container lists`,
    `have clients use port ${target}, or give the Service a cluster IP`,
  ],
  'undeclared-port': ({ service, port, owner, ports }) => [
    `${service}: no container that it selects lists the target port ${port}; ${owner} lists ${joinWords(ports)}`,
    'check which port the containers listen on: the list alone opens and closes none',
  ],
  'taken-health-check-port': byCase('taken', {
    'as-node-port': ({ service, port, holder }) => [
      `${service}: its health check node port ${port} is also the node port of ${holder}, which gets the packets: ${refusedTwice}, load balancers do not learn which nodes have endpoints of ${service}`,
      takeAnother,
    ],
    'as-health-check-port': ({ service, port, holder }) => [
      `${service}: its health check node port ${port} is also that of ${holder}: ${refusedTwice}, kube-proxy answers there for one of the two, and load balancers take that for the health of both`,
      takeAnother,
    ],
  }),
  'cluster-ip-endpoint': ({ service, address, holder }) => [
    `${service}: its endpoint ${address} is ${holder === service ? 'its own cluster IP' : `the cluster IP of ${holder}`}: kube-proxy translates a packet once, so it reaches no Pod`,
    `list the addresses of the Pods or machines that serve it${holder === service ? '' : ', or use type: ExternalName with the DNS name of that Service'}`,
  ],
  'unused-slice-port': ({ service, port, ports }) => [
    `${service} has no port ${port}, so kube-proxy ignores this port of its EndpointSlice`,
    `it has ${joinWords(ports)}`,
  ],
  'open-node-port': ({ service, ports }) => [
    `${service}: loadBalancerSourceRanges do not bind ${ports.length === 0 ? 'the node port that the API server gives it' : `node port ${joinWords(ports)}`}: any client that reaches a node gets in there`,
    'set allocateLoadBalancerNodePorts: false, if the load balancer needs no node port, or close the port in a firewall',
  ],
  'unbound-source-ranges': byCase('problem', {
    'ip-mode-proxy': ({ service, address }) => [
      `${service}: no node applies loadBalancerSourceRanges to ${address}, because its ipMode is Proxy`,
      'make sure that the load balancer itself applies them',
    ],
    hostname: ({ service, hostname }) => [
      `${service}: no node applies loadBalancerSourceRanges to ${escapeText(hostname)}, because kube-proxy knows no address of a load balancer with a host name only`,
      'make sure that the load balancer itself applies them',
    ],
    'other-family': ({ service, address, family }) => [
      `${service}: none of loadBalancerSourceRanges is ${familyNames[family]}, so ${address} is open to all clients`,
      `name an ${familyNames[family]} range too`,
    ],
  }),
  'node-shut-out': ({ service, address, ...nodes }) => [
    `${service}: ${onNodes(nodes)}, loadBalancerSourceRanges leave out the node's own address: programs on its host network cannot reach ${address}`,
    'add the network of the nodes, if kubelet, host network Pods or health checks of the node use that address',
  ],
  'node-port-range': ({ what, nodePort, range, isUsual }) => [
    isUsual
      ? `${what} ${nodePort} is outside of ${range}, which an API server takes unless its --service-node-port-range says otherwise`
      : `${what} ${nodePort} is outside of ${range}, and the API server refuses it`,
    isUsual ? 'choose another, or name the range with --service-node-port-range' : 'choose another',
  ],
  'refused-cluster-ip': byCase('problem', {
    taken: ({ service, address, holder }) => [
      `${service}: cluster IP ${address} is also that of ${holder}: the API server refuses the second of the two`,
      'leave clusterIP out of one of them, or join their ports in one Service',
    ],
    'out-of-range': ({ service, address, networks }) => [
      `${service}: cluster IP ${address} is outside of ${joinWords(networks)}: the API server refuses it`,
      'leave clusterIP out, or choose an address of a ServiceCIDR',
    ],
  }),
  'unnamed-mode': [
    `the configuration names no mode: that means iptables before 1.${announcedDefault.since}, and ${announcedDefault.mode} from then on (announced: KEP-${announcedDefault.kep}, ${kepLink(announcedDefault.kep)})`,
    `write mode: iptables, or mode: ${announcedDefault.mode}`,
  ],
  'idle-hints': byCase('problem', {
    'policy-local': ({ service, field }) => [
      `${service}: ${field} has no effect, because internalTrafficPolicy is Local and the Service has no other addresses`,
      'keep one of the two',
    ],
    'not-in-release': ({ service, field, release, behaviour }) => [
      `${service}: ${field} has no effect: kube-proxy of ${release} ${behaviourChanges[behaviour].before}`,
      'leave it out, or upgrade',
    ],
    'no-hints': ({ service, field, endpoints }) => [
      `${service}: ${field} has no effect, because ${endpoints === 1 ? 'its one endpoint' : `none of its ${formatCount(endpoints)} endpoints`} has ${endpoints === 1 ? 'none' : 'hints'}`,
      'see the events of the Service for why the control plane gives none: kubectl describe service',
    ],
    'endpoint-without-hint': ({ service, endpoint: bare, ...nodes }) => [
      `${service}: zone hints have no effect ${onNodes(nodes)}, because the endpoint ${bare} has none: ${fallsBack}`,
      'wait for the control plane, or give each ready endpoint a hint',
    ],
    'node-without-zone': ({ service, ...nodes }) => [
      `${service}: zone hints have no effect ${onNodes(nodes)}, because the Node has no label topology.kubernetes.io/zone: ${fallsBack}`,
      'label the Nodes',
    ],
    'none-for-zone': ({ service, zones, ...nodes }) => [
      `${service}: no endpoint is for zone ${nameSome(zones)}: ${onNodes(nodes)}, ${fallsBack}`,
      'run an endpoint in each zone',
    ],
  }),
  'idle-affinity': byCase('problem', {
    headless: ({ service }) => [
      `${service}: sessionAffinity has no effect, because kube-proxy programs nothing for a headless Service`,
      'leave it out',
    ],
    scheduler: ({ service, scheduler, seconds }) => [
      `${service}: the scheduler ${scheduler} already sends all connections of a client address to one endpoint; sessionAffinity only keeps it there for ${formatCount(seconds)} seconds when endpoints change`,
      'leave sessionAffinity out, or use another scheduler',
    ],
  }),
  'full-set': ({ set, entries, limit, ...nodes }) => [
    `${nodes.of === 0 ? '' : `${onNodes(nodes)}, `}the set ${set} gets ${formatCount(entries)} entries, and kube-proxy makes it for ${formatCount(limit)}: it leaves out what does not fit`,
    'use fewer ports, addresses or source ranges, or nftables mode, whose sets grow',
  ],
  'lax-arp': ({ by }) => [
    `strictARP is off, and ${by} announces load balancer addresses by ARP: IPVS mode puts them on kube-ipvs0 of every node, and every node answers`,
    'set ipvs.strictARP: true (--ipvs-strict-arp)',
  ],
  'host-port': (details) => [
    `${details.service}: ${details.owner}, which it selects, has hostPort ${joinWords(details.ports)}: clients reach these Pods at their nodes, past ${details.beside === 'source-ranges' ? 'loadBalancerSourceRanges' : 'the Service'}`,
    'leave hostPort out, if the Service is meant to be the only way in',
  ],
  'policy-port': (details) => {
    const { service, policy, owner, protocol, port, target } = details;
    return [
      `${service}: NetworkPolicy ${policy} allows its port ${port}/${protocol}, but ${owner} listens on ${target}, which no NetworkPolicy of the input allows: network plugins drop what comes through the Service`,
      `allow port ${target}: policies are about the ports of Pods, not of Services`,
    ];
  },
  'unknown-service': byCase('problem', {
    backend: (details) => [
      `${details.owner} sends requests to Service ${details.missing}, which the input does not hold`,
      nearOr(details, 'add the Service, or name one of the input'),
    ],
    port: ({ owner, service, port, ports }) => [
      `${owner} sends requests to port ${port} of Service ${service}, which has no such port: they get an error`,
      ports.length === 0 ? 'the Service has no ports' : `name one of its ports: ${joinWords(ports)}`,
    ],
    'service-name': (details) => [
      `${details.owner} names Service ${details.missing}, which the input does not hold: without it, its Pods have no DNS names of their own`,
      nearOr(details, 'add a headless Service of that name'),
    ],
  }),
  'ignored-service': ({ service, label }) => [
    `${service} has the label ${label}, so kube-proxy ignores it`,
    'leave the label out, unless another program serves this Service',
  ],
  'misspelled-key': ({ service, key, near, field }) => [
    `${service}: nothing reads the ${field === 'labels' ? 'label' : 'annotation'} ${escapeText(key)}`,
    `did you mean ${near}?`,
  ],
  'idle-ignore': byCase('problem', {
    'matches-nothing': ({ by, code, service }) => [
      `${by} ignores ${code}${service === undefined ? '' : ` of ${service}`}, and nothing has that code${service === undefined ? '' : ' there'}`,
      'leave it out',
    ],
    error: ({ by, code }) => [
      `${by} ignores ${code}, which is an error here, and an error cannot be ignored`,
      'correct it, or leave its object out with --skip-invalid',
    ],
    'no-such-code': ({ by, code, near }) => [
      `${by}: no message has the code ${escapeText(code)}`,
      near === undefined ? 'list the codes with "kpc explain"' : `did you mean ${near}?`,
    ],
  }),
};
