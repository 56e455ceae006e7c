import { count, formatCount } from '../base/format-count.ts';
import { joinWords, nameSome } from '../base/join-words.ts';
import { escapeText } from '../base/printable.ts';
import { type Family, familyNames } from '../kernel/family.ts';
import { announcedDefault, kepLink } from '../kube-proxy/announced.ts';
import { behaviourChanges, type Behaviour, type Release } from '../kube-proxy/releases.ts';
import {
  row,
  severityBy,
  wordsBy,
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Texts,
  type Words,
} from './diagnostic-rows.ts';
import {
  aService,
  anIP,
  balancer,
  configuration,
  container,
  deployment,
  endpoint,
  lint,
  slice,
  someNodes,
  type Example,
} from './examples.ts';

/** The nodes on which something holds, of all `of` nodes of the input. */
interface OnNodes extends Lists<'nodes'>, Numbers<'of'> {}

function onNodes({ nodes, of }: OnNodes, all = 'all'): string {
  if (nodes.length < of) return `on ${formatCount(nodes.length)} of ${count(of, 'node')} (${nameSome(nodes)})`;
  return of === 1 ? `on node ${nodes[0]}` : `on ${all} ${formatCount(of)} nodes`;
}

/** After "no endpoint runs". */
function onNone(nodes: OnNodes): string {
  return onNodes(nodes, 'any of the');
}

type OfService = Texts<'service'>;

const ready = 'nodeName: worker-1, conditions: { ready: true }';
const cidr = '--cluster-cidr 10.244.0.0/16';
const ranges = 'loadBalancerSourceRanges: [192.0.2.0/24]';
const dualStack =
  'clusterIPs: [10.96.0.10, "fd00:10:96::10"], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack';

function localService(fields: string): string {
  return aService(`${anIP}, ${fields}`);
}

function withConfiguration(fields: string, text: string): Example {
  return lint(text, '--config config.yaml', { 'config.yaml': `${configuration}${fields}` });
}

const onHost = container.replace('containerPort: 8080', 'containerPort: 8080, hostPort: 8080');

/** 260 ports and that many source ranges. */
function manySourceRanges(many: number): string {
  const list = (length: number, item: (i: number) => string): string =>
    Array.from({ length }, (_, i) => item(i)).join(', ');
  const fields = `loadBalancerSourceRanges: [${list(many, (i) => `10.1.${i}.0/24`)}]`;
  const ports = list(260, (i) => `{ name: p${i}, port: ${i + 1} }`);
  const spec = `type: LoadBalancer, ${anIP}, allocateLoadBalancerNodePorts: false, ${fields}, ports: [${ports}]`;
  const noted = aService(spec, '{ loadBalancer: { ingress: [{ ip: 203.0.113.10 }] } }');
  return (
    noted +
    slice(
      `addressType: IPv4\nports: [${list(260, (i) => `{ name: p${i}, port: 8080 }`)}]\nendpoints: [{ addresses: [10.244.0.1] }]`,
    )
  );
}

function l2Advertisement(): string {
  return `apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: { name: pool, namespace: metallb-system }
---
`;
}

/** What asks for hints, and is without effect. */
type Asking = OfService & Texts<'field'>;

const refusedTwice =
  'the API server refuses the second of them, because the port is already allocated; if a cluster has both';
const takeAnother = 'leave healthCheckNodePort out, and the API server gives it a free one';
const fallsBack = 'kube-proxy uses the endpoints of all zones';

/** A Service of which no endpoint takes connections. */
interface Unready extends Numbers<'endpoints'> {
  readonly publishes: boolean;
  /** What it selects, if it has no endpoints at all: "Deployment default/web". */
  readonly owner?: string | undefined;
  readonly isScaledToZero: boolean;
  readonly unused?: Unused | undefined;
}

/** Why kube-proxy skips all slices of a Service: the types of their addresses, or ports without numbers. */
export type Unused = { readonly by: 'address-type'; readonly types: readonly string[] } | { readonly by: 'port' };

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

function isIdle({ owner, isScaledToZero }: Unready): boolean {
  return isScaledToZero && owner !== undefined;
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

interface RangedPort extends Numbers<'nodePort'>, Texts<'range'> {
  readonly what: 'node port' | 'health check node port';
  /** Whether nothing names the range. */
  readonly isUsual: boolean;
}

/** What names a Service, and which one, as "namespace/name". */
interface Missing extends Texts<'owner' | 'missing'> {
  /** A Service of the input with much the same name. */
  readonly near?: string | undefined;
}

function nearOr({ near }: Missing, help: string): string {
  return near === undefined ? help : `did you mean ${near}?`;
}

function networkPolicy(port: number): string {
  return `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: web }
spec: { podSelector: { matchLabels: { app: web } }, ingress: [{ ports: [{ port: ${port} }] }] }
---
`;
}

function ingress(port: number): string {
  return `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web }
spec: { defaultBackend: { service: { name: web, port: { number: ${port} } } } }
---
`;
}

/** Rules of kpc lint: what is valid, but does not do what it seems to say. */
export const lintDiagnostics = {
  'local-without-endpoint': row(severityBy('traffic', 'warning', { 'internal-tainted': 'note', unsteered: 'note' }), {
    meaning: 'a Service has traffic policy Local, and no endpoint on a node that its clients reach',
    example: lint(
      localService('internalTrafficPolicy: Local, ports: [{ port: 80 }]') +
        endpoint(ready) +
        someNodes('worker-1', 'worker-2'),
      cidr,
    ),
    words: wordsBy('traffic', {
      internal: ({ service, ...nodes }: OfService & OnNodes) => [
        `${service}: internalTrafficPolicy is Local, and no endpoint runs ${onNone(nodes)}: packets of Pods there to the Service reach no endpoint`,
        'run an endpoint on every node, as a DaemonSet does, or prefer the own node with trafficDistribution: PreferSameNode',
      ],
      'internal-tainted': ({ service, ...nodes }: OfService & OnNodes) => [
        `${service}: internalTrafficPolicy is Local, and no endpoint runs ${onNodes(nodes)}, whose taints keep most Pods away: packets of Pods there to the Service reach no endpoint`,
        'let its Pods tolerate the taints, if Pods there need it',
      ],
      external: ({ service, way, ...nodes }: OfService & Texts<'way'> & OnNodes) => [
        `${service}: externalTrafficPolicy is Local, and no endpoint runs ${onNone(nodes)}: packets of clients to ${way} there reach no endpoint`,
        'send clients to nodes with an endpoint only, as a load balancer does by the health check port, or use externalTrafficPolicy: Cluster',
      ],
      unplaced: ({ service, way }: OfService & Texts<'way'>) => [
        `${service}: externalTrafficPolicy is Local, and its EndpointSlices name no node: every node drops packets of clients to its ${way}`,
        'write nodeName beside the addresses of each endpoint, or use externalTrafficPolicy: Cluster',
      ],
      unsteered: ({ service }: OfService) => [
        `${service}: externalTrafficPolicy is Local, and nothing tells clients of its node port which nodes have an endpoint: the other nodes drop their packets`,
        'use type LoadBalancer, which has a health check port, or externalTrafficPolicy: Cluster, or run an endpoint on every node',
      ],
    }),
    rule: {
      why: 'A policy of Local never sends a packet to another node. A node that runs no endpoint drops the packet, and the client waits for an answer that does not come. Load balancers ask the health check node port which nodes have endpoints; clients of a node port or of an external IP do not, and neither do Pods.',
      reports: [
        'https://github.com/kubernetes/kubernetes/issues/66354',
        'https://kubernetes.io/docs/concepts/services-networking/service-traffic-policy/',
      ],
      passes: lint(
        localService('internalTrafficPolicy: Local, ports: [{ port: 80 }]') + endpoint(ready) + someNodes('worker-1'),
        cidr,
      ),
    },
  }),
  'undetected-pods': row('warning', {
    meaning: 'kube-proxy cannot tell Pods from other clients, and so drops their packets to an address of policy Local',
    example: withConfiguration(
      'mode: iptables\n',
      balancer('externalTrafficPolicy: Local, healthCheckNodePort: 30100') +
        endpoint(ready) +
        someNodes('worker-1', 'worker-2'),
    ),
    words: ({ service, address, lacks, ...nodes }: OfService & Texts<'address' | 'lacks'> & OnNodes) => [
      `${service}: externalTrafficPolicy is Local, and kube-proxy cannot tell Pods from other clients, because ${lacks}: ${onNodes(nodes)}, where no endpoint runs, it drops packets of Pods to ${address}`,
      "set clusterCIDR, or detectLocalMode and what it needs, in kube-proxy's configuration",
    ],
    rule: {
      why: "Under externalTrafficPolicy Local, kube-proxy sends the packets of the cluster's own Pods to any endpoint, as a load balancer would. It has to recognise them: by clusterCIDR, by the Node's podCIDRs, or by the interface. Without that, Pods are clients like any other, and get no answer on nodes that run no endpoint.",
      reports: ['https://github.com/kubernetes/kubernetes/issues/65387'],
      passes: withConfiguration(
        'mode: iptables\nclusterCIDR: 10.244.0.0/16\n',
        balancer('externalTrafficPolicy: Local, healthCheckNodePort: 30100') +
          endpoint(ready) +
          someNodes('worker-1', 'worker-2'),
      ),
    },
  }),
  'no-ready-endpoint': row(
    { among: ['warning', 'note'], weigh: (details: Unready) => (isIdle(details) ? 'note' : 'warning') },
    {
      meaning: 'a Service has EndpointSlices, and no endpoint in them that takes connections',
      example: lint(aService(`${anIP}, ports: [{ port: 80 }]`) + endpoint('conditions: { ready: false }')),
      words: ({ service, ...details }: OfService & Unready) => {
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
        const which =
          endpoints === 1 ? 'its one endpoint is not' : `none of its ${formatCount(endpoints)} endpoints is`;
        return [`${service}: ${which} ready, so packets to it are refused`, whyUnready(details)];
      },
      rule: {
        why: 'kube-proxy refuses connections to a Service that has endpoints nowhere: clients get "connection refused" at once.',
        passes: lint(aService(`${anIP}, ports: [{ port: 80 }]`) + endpoint('conditions: { ready: true }')),
      },
    },
  ),
  'family-without-endpoints': row('warning', {
    meaning: 'a Service has addresses of both families, and endpoints of one',
    example: lint(aService(`${anIP}, ${dualStack}, ports: [{ port: 80 }]`) + endpoint('conditions: { ready: true }')),
    words: ({
      service,
      address,
      family,
      other,
    }: OfService & Texts<'address'> & { readonly family: Family; readonly other: Family }) => [
      `${service} has the ${familyNames[family]} address ${address}, and its endpoints are ${familyNames[other]} only: packets to ${address} are refused`,
      'give its Pods addresses of both families, or the Service ipFamilyPolicy: SingleStack',
    ],
    rule: {
      why: 'DNS answers with both addresses of the Service. Clients that try the family without endpoints first are refused, and not all of them try the other one.',
      reports: ['https://kubernetes.io/docs/concepts/services-networking/dual-stack/'],
      passes: lint(aService(`${anIP}, ports: [{ port: 80 }]`) + endpoint('conditions: { ready: true }')),
    },
  }),
  'unserved-address': row('warning', {
    meaning: 'an external address of a Service is of a family in which it has no cluster IP',
    example: lint(aService(`${anIP}, externalIPs: ["2001:db8::5"], ports: [{ port: 80 }]`) + someNodes('worker-1')),
    words: ({ service, address, family }: OfService & Texts<'address'> & { readonly family: Family }) => [
      `${service} has no ${familyNames[family]} cluster IP, so kube-proxy programs nothing for its address ${address}`,
      'add the family to ipFamilies, with ipFamilyPolicy: PreferDualStack, or leave the address out',
    ],
    rule: {
      why: 'kube-proxy keeps a proxier for each family, and a proxier skips Services without a cluster IP of its own. Packets to the address pass the node as if no Service had it.',
      passes: lint(aService(`${anIP}, externalIPs: [192.0.2.5], ports: [{ port: 80 }]`)),
    },
  }),
  'headless-addresses': row('warning', {
    meaning: 'a headless Service has external addresses, which kube-proxy does not program',
    example: lint(
      aService('clusterIP: None, externalIPs: [203.0.113.5], ports: [{ port: 80 }]') + someNodes('worker-1'),
    ),
    words: ({ service, addresses }: OfService & Lists<'addresses'>) => [
      `${service} is headless (clusterIP: None), so kube-proxy programs nothing for ${nameSome(addresses)}`,
      'leave clusterIP out, so that the Service gets one, or leave the addresses out',
    ],
    rule: {
      why: 'kube-proxy skips a Service without a cluster IP as a whole: its external IPs and load balancer addresses too. The API server takes them all the same.',
      reports: ['https://kubernetes.io/docs/concepts/services-networking/service/#headless-services'],
      passes: lint(aService('clusterIP: None, ports: [{ port: 80 }]')),
    },
  }),
  'taken-health-check-port': row('warning', {
    meaning: 'the health check node port of a Service is also that of another Service, or a node port',
    example: lint(
      balancer('externalTrafficPolicy: Local, healthCheckNodePort: 30081') +
        endpoint(ready) +
        aService('type: NodePort, clusterIP: 10.96.0.11, ports: [{ port: 80, nodePort: 30081 }]', '', 'api') +
        slice('addressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.244.0.2] }]', 'api') +
        someNodes('worker-1'),
      cidr,
    ),
    words: wordsBy('taken', {
      'as-node-port': ({ service, port, holder }: OfService & Numbers<'port'> & Texts<'holder'>) => [
        `${service}: its health check node port ${port} is also the node port of ${holder}, which gets the packets: ${refusedTwice}, load balancers do not learn which nodes have endpoints of ${service}`,
        takeAnother,
      ],
      'as-health-check-port': ({ service, port, holder }: OfService & Numbers<'port'> & Texts<'holder'>) => [
        `${service}: its health check node port ${port} is also that of ${holder}: ${refusedTwice}, kube-proxy answers there for one of the two, and load balancers take that for the health of both`,
        takeAnother,
      ],
    }),
    rule: {
      why: 'kube-proxy itself listens on the health check node port, and answers whether the node has endpoints. It can listen for one Service only, and rules for a node port come before what listens. The API server refuses a port that is taken, but only once both Services reach it.',
      passes: lint(
        balancer('externalTrafficPolicy: Local, healthCheckNodePort: 30081') +
          endpoint(ready) +
          aService('type: NodePort, clusterIP: 10.96.0.11, ports: [{ port: 80, nodePort: 30082 }]', '', 'api') +
          someNodes('worker-1'),
        cidr,
      ),
    },
  }),
  'cluster-ip-endpoint': row('warning', {
    meaning: 'an endpoint of a Service is a cluster IP',
    example: lint(
      aService(`${anIP}, ports: [{ port: 80 }]`) +
        aService('clusterIP: 10.96.0.11, ports: [{ port: 80 }]', '', 'api') +
        endpoint(ready).replace('10.244.0.1', '10.96.0.11'),
    ),
    words: ({ service, address, holder }: OfService & Texts<'address' | 'holder'>) => [
      `${service}: its endpoint ${address} is ${holder === service ? 'its own cluster IP' : `the cluster IP of ${holder}`}: kube-proxy translates a packet once, so it reaches no Pod`,
      `list the addresses of the Pods or machines that serve it${holder === service ? '' : ', or use type: ExternalName with the DNS name of that Service'}`,
    ],
    rule: {
      why: 'A cluster IP is an address that nothing has: it exists in the rules of kube-proxy alone. A packet that one rule has sent there meets no second rule. It leaves the node for nowhere, or ends on it.',
      reports: ['https://kubernetes.io/docs/concepts/services-networking/service/#services-without-selectors'],
      passes: lint(
        aService(`${anIP}, ports: [{ port: 80 }]`) +
          aService('clusterIP: 10.96.0.11, ports: [{ port: 80 }]', '', 'api') +
          endpoint(ready),
      ),
    },
  }),
  'unused-slice-port': row('warning', {
    meaning: 'an EndpointSlice has a port that its Service lacks',
    advice: 'add a port of that name to the Service, if clients are to reach it; otherwise nothing',
    example: lint(
      aService(`${anIP}, ports: [{ name: http, port: 80 }]`) +
        slice(`addressType: IPv4
ports: [{ name: http, port: 8080 }, { name: metrics, port: 9090 }]
endpoints: [{ addresses: [10.244.0.1] }]`),
    ),
    words: ({ service, port, ports }: OfService & Texts<'port'> & Lists<'ports'>) => [
      `${service} has no port ${port}, so kube-proxy ignores this port of its EndpointSlice`,
      `it has ${joinWords(ports)}`,
    ],
    rule: {
      why: 'kube-proxy joins Service ports and slice ports by name and protocol, not by number. A slice port whose name no Service port has serves nobody.',
      passes: lint(
        aService(`${anIP}, ports: [{ name: http, port: 80 }]`) +
          slice(`addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [10.244.0.1] }]`),
      ),
    },
  }),
  'open-node-port': row('warning', {
    meaning: 'source ranges restrict a load balancer, and its node port is open to all',
    example: lint(balancer(ranges) + endpoint(ready) + someNodes('worker-1')),
    // `ports`: each as "30080/TCP"; empty if the API server has not given them yet.
    words: ({ service, ports }: OfService & Lists<'ports'>) => [
      `${service}: loadBalancerSourceRanges do not bind ${ports.length === 0 ? 'the node port that the API server gives it' : `node port ${joinWords(ports)}`}: any client that reaches a node gets in there`,
      'set allocateLoadBalancerNodePorts: false, if the load balancer needs no node port, or close the port in a firewall',
    ],
    rule: {
      why: 'A Service of type LoadBalancer also gets a node port on every node. kube-proxy compares source ranges with clients of the load balancer addresses alone.',
      reports: ['https://github.com/kubernetes/kubernetes/issues/33586'],
      passes: lint(
        aService(
          `type: LoadBalancer, ${anIP}, allocateLoadBalancerNodePorts: false, ${ranges}, ports: [{ port: 80 }]`,
          '{ loadBalancer: { ingress: [{ ip: 203.0.113.10 }] } }',
        ),
      ),
    },
  }),
  'unbound-source-ranges': row('warning', {
    meaning: 'kube-proxy does not apply the source ranges of a load balancer to one of its addresses',
    example: lint(
      aService(
        `type: LoadBalancer, ${anIP}, allocateLoadBalancerNodePorts: false, ${ranges}, ports: [{ port: 80 }]`,
        '{ loadBalancer: { ingress: [{ ip: 203.0.113.10, ipMode: Proxy }] } }',
      ) + someNodes('worker-1'),
    ),
    words: wordsBy('problem', {
      'ip-mode-proxy': ({ service, address }: OfService & Texts<'address'>) => [
        `${service}: no node applies loadBalancerSourceRanges to ${address}, because its ipMode is Proxy`,
        'make sure that the load balancer itself applies them',
      ],
      hostname: ({ service, hostname }: OfService & Texts<'hostname'>) => [
        `${service}: no node applies loadBalancerSourceRanges to ${escapeText(hostname)}, because kube-proxy knows no address of a load balancer with a host name only`,
        'make sure that the load balancer itself applies them',
      ],
      'other-family': ({ service, address, family }: OfService & Texts<'address'> & { readonly family: Family }) => [
        `${service}: none of loadBalancerSourceRanges is ${familyNames[family]}, so ${address} is open to all clients`,
        `name an ${familyNames[family]} range too`,
      ],
    }),
    rule: {
      why: 'kube-proxy applies source ranges where it programs a load balancer address: one of ipMode VIP, and only with ranges of the same family. Without any of the family, it restricts nothing. For the rest, all depends on the load balancer.',
      reports: ['https://kubernetes.io/docs/concepts/services-networking/service/#load-balancer-ip-mode'],
      passes: lint(
        aService(
          `type: LoadBalancer, ${anIP}, allocateLoadBalancerNodePorts: false, ${ranges}, ports: [{ port: 80 }]`,
          '{ loadBalancer: { ingress: [{ ip: 203.0.113.10 }] } }',
        ),
      ),
    },
  }),
  'node-shut-out': row('note', {
    meaning: 'the source ranges of a load balancer leave out the nodes themselves',
    example: lint(balancer(ranges) + endpoint(ready) + someNodes('worker-1')),
    words: ({ service, address, ...nodes }: OfService & Texts<'address'> & OnNodes) => [
      `${service}: ${onNodes(nodes)}, loadBalancerSourceRanges leave out the node's own address: programs on its host network cannot reach ${address}`,
      'add the network of the nodes, if kubelet, host network Pods or health checks of the node use that address',
    ],
    rule: {
      why: 'Source ranges bind the node too: a packet that it sends to the load balancer address never leaves it, and is compared with them there.',
      reports: ['https://github.com/kubernetes/kubernetes/issues/119656'],
      passes: lint(balancer('loadBalancerSourceRanges: [192.168.1.0/24]') + endpoint(ready) + someNodes('worker-1')),
    },
  }),
  'node-port-range': row('warning', {
    meaning: 'a node port is outside of the range that the API server takes',
    example: lint(aService(`type: NodePort, ${anIP}, ports: [{ port: 80, nodePort: 8080 }]`)),
    words: ({ what, nodePort, range, isUsual }: RangedPort) => [
      isUsual
        ? `${what} ${nodePort} is outside of ${range}, which an API server takes unless its --service-node-port-range says otherwise`
        : `${what} ${nodePort} is outside of ${range}, and the API server refuses it`,
      isUsual ? 'choose another, or name the range with --service-node-port-range' : 'choose another',
    ],
    rule: {
      why: 'The API server refuses the Service, and with it often the rest of a deployment.',
      reports: ['https://kubernetes.io/docs/concepts/services-networking/service/#type-nodeport'],
      passes: lint(aService(`type: NodePort, ${anIP}, ports: [{ port: 80, nodePort: 30080 }]`)),
    },
  }),
  'refused-cluster-ip': row('warning', {
    meaning: 'the API server does not give a Service the cluster IP that it asks for',
    example: lint(aService(`${anIP}, ports: [{ port: 80 }]`) + aService(`${anIP}, ports: [{ port: 81 }]`, '', 'api')),
    words: wordsBy('problem', {
      taken: ({ service, address, holder }: OfService & Texts<'address' | 'holder'>) => [
        `${service}: cluster IP ${address} is also that of ${holder}: the API server refuses the second of the two`,
        'leave clusterIP out of one of them, or join their ports in one Service',
      ],
      'out-of-range': ({ service, address, networks }: OfService & Texts<'address'> & Lists<'networks'>) => [
        `${service}: cluster IP ${address} is outside of ${joinWords(networks)}: the API server refuses it`,
        'leave clusterIP out, or choose an address of a ServiceCIDR',
      ],
    }),
    rule: {
      why: 'A cluster IP belongs to one Service, whatever its ports are, and lies in one of the ranges of the cluster. The API server refuses the Service, and with it often the rest of a deployment.',
      reports: ['https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/'],
      passes: lint(
        aService(`${anIP}, ports: [{ port: 80 }]`) +
          aService('clusterIP: 10.96.0.11, ports: [{ port: 81 }]', '', 'api'),
        '--service-cluster-ip-range 10.96.0.0/16',
      ),
    },
  }),
  'unnamed-mode': row('warning', {
    meaning: "kube-proxy's configuration names no mode, and the default changes",
    example: withConfiguration('clusterCIDR: 10.244.0.0/16\n', aService(`${anIP}, ports: [{ port: 80 }]`)),
    words: [
      `the configuration names no mode: that means iptables before 1.${announcedDefault.since}, and ${announcedDefault.mode} from then on (announced: KEP-${announcedDefault.kep}, ${kepLink(announcedDefault.kep)})`,
      `write mode: iptables, or mode: ${announcedDefault.mode}`,
    ],
    rule: {
      why: 'The upgrade then changes the mode of every node. Node ports answer on other addresses, and rules that other programs add to iptables no longer see the packets.',
      reports: [kepLink(announcedDefault.kep)],
      passes: withConfiguration('mode: nftables\n', aService(`${anIP}, ports: [{ port: 80 }]`)),
    },
  }),
  'idle-hints': row(severityBy('problem', 'warning', { 'none-for-zone': 'note' }), {
    meaning: 'topology hints or trafficDistribution have no effect, and why',
    example: lint(
      aService(`${anIP}, trafficDistribution: PreferSameZone, ports: [{ port: 80 }]`) +
        endpoint(`${ready}, zone: zone-a, hints: { forZones: [{ name: zone-a }] }`) +
        someNodes('worker-1'),
      cidr,
    ),
    words: wordsBy('problem', {
      'policy-local': ({ service, field }: Asking) => [
        `${service}: ${field} has no effect, because internalTrafficPolicy is Local and the Service has no other addresses`,
        'keep one of the two',
      ],
      'not-in-release': ({
        service,
        field,
        release,
        behaviour,
      }: Asking & {
        readonly release: Release;
        readonly behaviour: Behaviour;
      }) => [
        `${service}: ${field} has no effect: kube-proxy of ${release} ${behaviourChanges[behaviour].before}`,
        'leave it out, or upgrade',
      ],
      'no-hints': ({ service, field, endpoints }: Asking & Numbers<'endpoints'>) => [
        `${service}: ${field} has no effect, because ${endpoints === 1 ? 'its one endpoint' : `none of its ${formatCount(endpoints)} endpoints`} has ${endpoints === 1 ? 'none' : 'hints'}`,
        'see the events of the Service for why the control plane gives none: kubectl describe service',
      ],
      'endpoint-without-hint': ({ service, endpoint: bare, ...nodes }: OfService & Texts<'endpoint'> & OnNodes) => [
        `${service}: zone hints have no effect ${onNodes(nodes)}, because the endpoint ${bare} has none: ${fallsBack}`,
        'wait for the control plane, or give each ready endpoint a hint',
      ],
      'node-without-zone': ({ service, ...nodes }: OfService & OnNodes) => [
        `${service}: zone hints have no effect ${onNodes(nodes)}, because the Node has no label topology.kubernetes.io/zone: ${fallsBack}`,
        'label the Nodes',
      ],
      'none-for-zone': ({ service, zones, ...nodes }: OfService & Lists<'zones'> & OnNodes) => [
        `${service}: no endpoint is for zone ${nameSome(zones)}: ${onNodes(nodes)}, ${fallsBack}`,
        'run an endpoint in each zone',
      ],
    }),
    rule: {
      why: 'kube-proxy follows hints only if every ready endpoint has one, and one of them is for its own zone. In all other cases it uses all endpoints, and says so nowhere: traffic crosses zones, and is paid for.',
      reports: [
        'https://github.com/kubernetes/kubernetes/issues/103888',
        'https://kubernetes.io/docs/concepts/services-networking/topology-aware-routing/#constraints',
      ],
      passes: lint(
        aService(`${anIP}, trafficDistribution: PreferSameZone, ports: [{ port: 80 }]`) +
          endpoint(`${ready}, zone: zone-a, hints: { forZones: [{ name: zone-a }] }`) +
          someNodes('worker-1').replaceAll('labels: {}', 'labels: { topology.kubernetes.io/zone: zone-a }'),
        cidr,
      ),
    },
  }),
  'idle-affinity': row('note', {
    meaning: 'session affinity has no effect, or none beyond that of the scheduler',
    example: lint(
      aService(`${anIP}, sessionAffinity: ClientIP, ports: [{ port: 80 }]`),
      '--proxy-mode ipvs --ipvs-scheduler sh',
    ),
    words: wordsBy('problem', {
      headless: ({ service }: OfService) => [
        `${service}: sessionAffinity has no effect, because kube-proxy programs nothing for a headless Service`,
        'leave it out',
      ],
      scheduler: ({ service, scheduler, seconds }: OfService & Texts<'scheduler'> & Numbers<'seconds'>) => [
        `${service}: the scheduler ${scheduler} already sends all connections of a client address to one endpoint; sessionAffinity only keeps it there for ${formatCount(seconds)} seconds when endpoints change`,
        'leave sessionAffinity out, or use another scheduler',
      ],
    }),
    rule: {
      why: 'A Service that looks as if it kept clients together may do so for another reason, or not at all: a change of the scheduler then changes what clients see.',
      passes: lint(aService(`${anIP}, sessionAffinity: ClientIP, ports: [{ port: 80 }]`), '--proxy-mode ipvs'),
    },
  }),
  'full-set': row('warning', {
    meaning: 'in IPVS mode, a set gets more entries than kube-proxy makes room for',
    example: () => lint(manySourceRanges(256), '--proxy-mode ipvs'),
    words: ({ set, entries, limit, ...nodes }: Texts<'set'> & Numbers<'entries' | 'limit'> & OnNodes): Words => [
      `${nodes.of === 0 ? '' : `${onNodes(nodes)}, `}the set ${set} gets ${formatCount(entries)} entries, and kube-proxy makes it for ${formatCount(limit)}: it leaves out what does not fit`,
      'use fewer ports, addresses or source ranges, or nftables mode, whose sets grow',
    ],
    rule: {
      why: 'Each sync logs an error for each entry that does not fit, and goes on without it. Which Services lack their entries depends on the order of a sync: their packets are not masqueraded, or are refused.',
      reports: ['https://github.com/kubernetes/kubernetes/issues/129389'],
      passes: lint(manySourceRanges(2), '--proxy-mode ipvs'),
    },
  }),
  'lax-arp': row('warning', {
    meaning: 'in IPVS mode without strictARP, all nodes answer ARP for an address that one of them announces',
    example: lint(balancer() + l2Advertisement(), '--proxy-mode ipvs'),
    words: ({ by }: Texts<'by'>) => [
      `strictARP is off, and ${by} announces load balancer addresses by ARP: IPVS mode puts them on kube-ipvs0 of every node, and every node answers`,
      'set ipvs.strictARP: true (--ipvs-strict-arp)',
    ],
    rule: {
      why: 'Routers learn the address from whichever node answers last. Connections move to another node and break, and under externalTrafficPolicy Local they end on nodes without endpoints.',
      reports: [
        'https://metallb.universe.tf/installation/#preparation',
        'https://github.com/metallb/metallb/issues/153',
      ],
      passes: lint(balancer() + l2Advertisement(), '--proxy-mode ipvs --ipvs-strict-arp'),
    },
  }),
  'host-port': row(severityBy('beside', 'note', { 'source-ranges': 'warning' }), {
    meaning: 'Pods of a Service are open on their nodes too, by a hostPort',
    example: lint(
      aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: http }]`) + deployment(onHost),
    ),
    words: (
      details: OfService & Texts<'owner'> & Lists<'ports'> & { readonly beside: 'cluster-ip' | 'source-ranges' },
    ) => [
      `${details.service}: ${details.owner}, which it selects, has hostPort ${joinWords(details.ports)}: clients reach these Pods at their nodes, past ${details.beside === 'source-ranges' ? 'loadBalancerSourceRanges' : 'the Service'}`,
      'leave hostPort out, if the Service is meant to be the only way in',
    ],
    rule: {
      why: 'The network plugin opens a host port on every address of the node, and sends it to the Pod. Neither the type of the Service nor its source ranges say anything about it.',
      reports: ['https://kubernetes.io/docs/concepts/configuration/overview/#services'],
      passes: lint(aService(`${anIP}, selector: { app: web }, ports: [{ port: 80 }]`) + deployment(container)),
    },
  }),
  'policy-port': row('warning', {
    meaning: 'a NetworkPolicy allows the port of a Service, and not the one that its Pods listen on',
    example: lint(
      aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: http }]`) +
        deployment(container) +
        networkPolicy(80),
    ),
    words: (details: OfService & Texts<'policy' | 'owner' | 'protocol'> & Numbers<'port' | 'target'>) => {
      const { service, policy, owner, protocol, port, target } = details;
      return [
        `${service}: NetworkPolicy ${policy} allows its port ${port}/${protocol}, but ${owner} listens on ${target}, which no NetworkPolicy of the input allows: network plugins drop what comes through the Service`,
        `allow port ${target}: policies are about the ports of Pods, not of Services`,
      ];
    },
    rule: {
      why: 'kube-proxy changes the port of the Service to that of the Pod before a network plugin looks at the packet. A policy that names the port of the Service lets nothing through.',
      reports: ['https://kubernetes.io/docs/concepts/services-networking/network-policies/'],
      passes: lint(
        aService(`${anIP}, selector: { app: web }, ports: [{ port: 80, targetPort: http }]`) +
          deployment(container) +
          networkPolicy(8080),
      ),
    },
  }),
  'unknown-service': row(severityBy('problem', 'note', { port: 'warning' }), {
    meaning: 'an Ingress, a route or a StatefulSet names a Service, or a port of one, that the input does not hold',
    example: lint(aService(`${anIP}, ports: [{ port: 80 }]`) + ingress(8080)),
    words: wordsBy('problem', {
      backend: (details: Missing) => [
        `${details.owner} sends requests to Service ${details.missing}, which the input does not hold`,
        nearOr(details, 'add the Service, or name one of the input'),
      ],
      port: ({ owner, service, port, ports }: OfService & Texts<'owner' | 'port'> & Lists<'ports'>) => [
        `${owner} sends requests to port ${port} of Service ${service}, which has no such port: they get an error`,
        ports.length === 0 ? 'the Service has no ports' : `name one of its ports: ${joinWords(ports)}`,
      ],
      'service-name': (details: Missing) => [
        `${details.owner} names Service ${details.missing}, which the input does not hold: without it, its Pods have no DNS names of their own`,
        nearOr(details, 'add a headless Service of that name'),
      ],
    }),
    rule: {
      why: 'An Ingress or a route names a port of a Service, not one of its Pods. Its controller answers requests to anything else with an error. The DNS names of the Pods of a StatefulSet are below that of the Service in serviceName.',
      reports: ['https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#stable-network-id'],
      passes: lint(aService(`${anIP}, ports: [{ port: 80 }]`) + ingress(80)),
    },
  }),
  'ignored-service': row('note', {
    meaning: 'a label of a Service makes kube-proxy ignore it',
    example: lint(
      aService(`${anIP}, ports: [{ port: 80 }]`).replace(
        'name: web',
        'name: web, labels: { service.kubernetes.io/service-proxy-name: other }',
      ),
    ),
    words: ({ service, label }: OfService & Texts<'label'>) => [
      `${service} has the label ${label}, so kube-proxy ignores it`,
      'leave the label out, unless another program serves this Service',
    ],
    rule: {
      why: 'The label leaves a Service to another program. Where none is there, packets to its cluster IP get no answer.',
      reports: [
        'https://kubernetes.io/docs/reference/labels-annotations-taints/#servicekubernetesioservice-proxy-name',
      ],
      passes: lint(aService(`${anIP}, ports: [{ port: 80 }]`).replace('name: web', 'name: web, labels: { app: web }')),
    },
  }),
  'idle-ignore': row(severityBy('problem', 'warning', { 'matches-nothing': 'note' }), {
    meaning: 'an ignore of kpc lint matches no finding or an error, or names no code',
    example: lint(
      aService(`${anIP}, ports: [{ port: 80 }]`).replace(
        'name: web',
        'name: web, annotations: { kpc.dev/ignore: external-ips }',
      ),
    ),
    words: wordsBy('problem', {
      'matches-nothing': ({ by, code, service }: Texts<'by' | 'code'> & { readonly service?: string | undefined }) => [
        `${by} ignores ${code}${service === undefined ? '' : ` of ${service}`}, and nothing has that code${service === undefined ? '' : ' there'}`,
        'leave it out',
      ],
      error: ({ by, code }: Texts<'by' | 'code'>) => [
        `${by} ignores ${code}, which is an error here, and an error cannot be ignored`,
        'correct it, or leave its object out with --skip-invalid',
      ],
      'no-such-code': ({ by, code, near }: Texts<'by' | 'code'> & { readonly near?: string | undefined }) => [
        `${by}: no message has the code ${escapeText(code)}`,
        near === undefined ? 'list the codes with "kpc explain"' : `did you mean ${near}?`,
      ],
    }),
    rule: {
      why: 'What is ignored for a reason that is gone hides the next finding of the same kind.',
      passes: lint(
        aService(`${anIP}, externalIPs: [203.0.113.90], ports: [{ port: 80 }]`).replace(
          'name: web',
          'name: web, annotations: { kpc.dev/ignore: external-ips }',
        ),
      ),
    },
  }),
} satisfies DiagnosticTable;
