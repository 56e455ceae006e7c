import {
  balanced,
  balancer,
  runningPod,
  aSelector,
  aService,
  anIP,
  annotated,
  container,
  deployment,
  endpoint,
  largeInput,
  lint,
  manifests,
  noEndpoint,
  slice,
  someNodes,
  web,
  withFields,
  withPorts,
} from './examples.ts';
import { printable, quote } from '../base/printable.ts';
import { joinHostPort } from '../kernel/address.ts';
import {
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Texts,
  row,
  severityBy,
  wordsBy,
} from './diagnostic-rows.ts';
import { count } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import { type Family, familyNames } from '../kernel/family.ts';
import { endWords } from '../kube-proxy/announced.ts';

/** `service` is the largest one. */
type TooLarge = Numbers<'lines' | 'limit'> &
  Texts<'service'> & { readonly factors: Numbers<'ports' | 'pairs' | 'addresses' | 'sourceRanges'> };

const asTheClusterHasThem =
  'give the objects as the cluster has them (kubectl get svc,endpointslices -A -o yaml), or let kpc choose with';

interface Assumed extends Lists<'nodes'> {
  readonly values: readonly AssumedValues[];
  readonly isDefault: boolean;
}

/** How many values kpc chose, and the networks that it took them from. */
export interface AssumedValues extends Numbers<'count'>, Lists<'from'> {
  readonly what: 'cluster IP' | 'node port' | 'load balancer address' | 'ready Pod' | 'Node';
}

function describeAssumed({ values, nodes, isDefault }: Assumed): string {
  const counts = values.map(({ what, count: number, from }) => {
    const plural = what.endsWith('s') ? `${what}es` : `${what}s`;
    const networks = from.length === 0 ? '' : ` from ${from.join(' and ')}`;
    return `${count(number, what, plural)}${networks}`;
  });
  const named = nodes.length === 0 ? '' : ` (${nameSome(nodes)})`;
  const way = isDefault ? '; --no-assume forbids this' : '';
  return `assumed, because the input lacks them: ${counts.join(', ')}${named}${way}`;
}

const serviceNameLabel = 'kubernetes.io/service-name';

type Limited = Numbers<'count' | 'limit'>;

/** What a selector may be meant for. */
interface Likely {
  /** A label much like one of it, and the workload that has it. */
  readonly near?: Texts<'label' | 'owner'> | undefined;
  /** What has the labels in another namespace, as "Deployment prod/web". */
  readonly elsewhere?: string | undefined;
  /** The only label that a workload of the namespace lacks, and that workload. */
  readonly lacking?: (Texts<'label' | 'owner'> & { readonly isOnOwner: boolean }) | undefined;
  /** A custom resource of the namespace, for which an operator may make Pods. */
  readonly maker?: string | undefined;
  /** Whether the input holds the Pods of a cluster: then there are no others. */
  readonly isOfCluster?: boolean;
}

/** Whether the Pods may be there although the manifests do not show them. */
function mayBeUnseen({ near, lacking, maker, isOfCluster = false }: Likely): boolean {
  return !isOfCluster && near === undefined && lacking?.isOnOwner !== true && (lacking ?? maker) !== undefined;
}

function likelyCause(likely: Likely): string | undefined {
  const { near, elsewhere, lacking, maker } = likely;
  if (near) return `did you mean ${printable(near.label)}, as ${printable(near.owner)} has?`;
  if (elsewhere !== undefined)
    return `${printable(elsewhere)} has these labels, but a Service selects Pods of its own namespace alone`;
  if (lacking) {
    if (lacking.isOnOwner)
      return `${printable(lacking.owner)} has ${printable(lacking.label)} itself, but its Pods do not get it: add it to the labels of the template`;
    const lacks = `${printable(lacking.owner)} has all of these labels but ${printable(lacking.label)}`;
    return mayBeUnseen(likely) ? `${lacks}: add it to the template, unless a program sets it at run time` : lacks;
  }
  return (
    maker && `compare the selector with the labels of the Pods, unless ${printable(maker)} makes Pods with these labels`
  );
}

/** Problems with Services, their ports and endpoints, and what a cluster would assign that they lack. */
export const serviceDiagnostics = {
  'address-conflict': row('warning', {
    meaning: 'two Service ports claim the same address, port and protocol',
    example: manifests(
      aService(`${anIP}, externalIPs: [203.0.113.90], ports: [{ port: 80 }]`) +
        aService('clusterIP: 10.96.0.11, externalIPs: [203.0.113.90], ports: [{ port: 80 }]', '', 'api') +
        noEndpoint('web') +
        noEndpoint('api') +
        someNodes('worker-1'),
    ),
    // Without an address it is a node port. kpc gives it to `holder`. `isRefused`: the API server gives it away once.
    words: (
      details: Texts<'protocol' | 'holder' | 'rival'> &
        Numbers<'port'> & { readonly address?: string | undefined; readonly isRefused?: true },
    ) => {
      const { address, port, protocol, holder, rival, isRefused } = details;
      const socket = address === undefined ? `node port ${port}` : joinHostPort(address, port);
      const claimed = `${socket}/${protocol} is claimed by ${holder} and ${rival}`;
      if (!isRefused) {
        const so = `kpc gives it to ${holder}, kube-proxy to whichever it programs last`;
        return [`${claimed}: ${so}`, 'give one of them another address or port'];
      }
      return [
        `${claimed}: the API server refuses the second of them, because it is already allocated; kpc gives it to ${holder}`,
        `give one of them another ${address === undefined ? 'nodePort' : 'clusterIP'}, or none`,
      ];
    },
    rule: {
      why: 'After its next start, kube-proxy may serve the other one of the two. The API server refuses a cluster IP, a node port or a health check port that is taken, and no other double claim.',
      passes: lint(
        aService(`${anIP}, externalIPs: [203.0.113.90], ports: [{ port: 80 }]`) +
          aService('clusterIP: 10.96.0.11, externalIPs: [203.0.113.90], ports: [{ port: 81 }]', '', 'api'),
      ),
    },
  }),
  'duplicate-port': row(severityBy('isOfSlice', 'error', { true: 'warning' }), {
    meaning: 'two ports of one object have the same name or number',
    example: withPorts('{ name: a, port: 80 }, { name: b, port: 80 }'),
    // `first`: index of the port that has it. A slice's names must be unique to the API server, per protocol to kube-proxy.
    words: (details: Texts<'field' | 'value'> & Numbers<'first'> & { readonly isOfSlice?: true }) => [
      details.value === ''
        ? `this port has no name, nor has ports[${details.first}]`
        : `${details.field} ${details.value} is already used by ports[${details.first}]`,
      `give each port a ${details.field} of its own`,
    ],
  }),
  'external-ips': row('warning', {
    meaning: 'Services have externalIPs, which kube-proxy will no longer program',
    example: withFields('externalIPs: [203.0.113.90]'),
    words: ({ services }: Lists<'services'>) => [
      `externalIPs of ${nameSome(services)}: ${endWords('external-ips')}`,
      'give the Services the address of a load balancer (MetalLB, kube-vip) or a Gateway; "kpc migrate --to-kubernetes-version" shows what breaks',
    ],
    rule: {
      why: 'Clients of the address get no answer after the upgrade, unless a feature gate keeps it for a while. Anyone who may create Services can also take over traffic to any address with externalIPs (CVE-2020-8554).',
      reports: ['https://kep.k8s.io/5707', 'https://github.com/kubernetes/kubernetes/issues/97076'],
      passes: lint(balancer()),
    },
  }),
  'forwarding-changes-port': row('error', {
    meaning: 'a Service asks for a forwarding method that cannot change the port, but its ports differ',
    example: manifests(annotated('kpc.dev/ipvs-forwarding-method: direct') + endpoint('conditions: { ready: true }')),
    // `wrong` is which port would change.
    words: ({ method, wrong, help }: Texts<'method' | 'wrong' | 'help'>) => [
      `kpc.dev/ipvs-forwarding-method is "${method}", which cannot change a port, but ${wrong}`,
      help,
    ],
  }),
  'ignored-field': row('warning', {
    meaning: 'a field means nothing for a Service of this type, and the API server refuses it',
    example: withFields('healthCheckNodePort: 30100'),
    words: ({ field, needs }: Texts<'field' | 'needs'>) => [
      `${field} means nothing here, and the API server refuses it: it needs ${needs}`,
      'leave it out',
    ],
  }),
  'long-comment': row('warning', {
    meaning: 'the names of a Service port are too long for an nft comment: kube-proxy could program nothing',
    example: manifests(
      aService(`${anIP}, ports: [{ name: ${'p'.repeat(63)}, port: 80 }]`, '', 'w'.repeat(63)) +
        noEndpoint('w'.repeat(63)),
      '--proxy-mode nftables --kubernetes-version 1.36',
    ),
    // `lack` is what the Service has not on the nodes where kube-proxy writes the comment.
    words: ({ servicePort, lack, limit }: Texts<'servicePort' | 'lack'> & Numbers<'limit'>) => [
      `${servicePort}: kube-proxy writes this name of ${servicePort.length} bytes as a comment on nodes where the Service has ${lack.replaceAll('-', ' ')}, but nft takes ${limit} and refuses all rules with it; kpc cuts the comment`,
      'shorten the names',
    ],
    rule: {
      why: 'nft refuses the whole transaction. No change of any Service reaches the node any more, and a node that starts has no Services at all.',
      reports: ['https://github.com/kubernetes/kubernetes/issues/139515'],
      passes: lint(
        aService(`${anIP}, ports: [{ name: ${'p'.repeat(63)}, port: 80 }]`, '', 'w'.repeat(63)),
        '--proxy-mode nftables',
      ),
    },
  }),
  'missing-cluster-ip': row('warning', {
    meaning: 'a Service has clusterIPs, but no clusterIP',
    example: manifests(aService('clusterIPs: [10.96.0.10], ports: [{ port: 80 }]')),
    words: ({ first }: Texts<'first'>) => [
      'the API server accepts clusterIPs only with a clusterIP',
      `add clusterIP: ${first}`,
    ],
  }),
  'missing-ip-families': row('warning', {
    meaning: 'a Service has more clusterIPs than ipFamilies: kube-proxy takes only the first address',
    example: manifests(
      aService('clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10, "fd00:10:96::10"], ports: [{ port: 80 }]'),
    ),
    words: ({ families }: Numbers<'families'>) => [
      `kube-proxy takes only the first of clusterIPs, because there ${families > 0 ? 'is only one family in ipFamilies' : 'are no ipFamilies'}`,
      'name the family of each address in ipFamilies',
    ],
  }),
  'node-address': row('warning', {
    meaning: "in IPVS mode, a Service takes a node's own address, so that the other nodes cannot reach that node",
    example: manifests(
      aService(`${anIP}, externalIPs: [192.168.1.1], ports: [{ port: 80 }]`) + someNodes('worker-1', 'worker-2'),
      '--proxy-mode ipvs',
    ),
    words: ({ service, address, node: owner }: Texts<'service' | 'address' | 'node'>) => [
      `${service} has the address ${address} of Node ${owner}: IPVS mode puts it on kube-ipvs0 of every node, and no other node can reach ${owner} by it any more, kubelet and API server included`,
      'give the Service an address that no node has, or use a node port or another mode',
    ],
    rule: {
      why: 'The other nodes take the address for their own, so what they send to that node never leaves them. If it is a control plane node, kubelets lose their API server and become NotReady.',
      reports: [
        'https://github.com/kubernetes/kubernetes/issues/104679',
        'https://github.com/kubernetes/kubernetes/issues/127410',
      ],
      passes: lint(
        aService(`${anIP}, externalIPs: [192.168.1.1], ports: [{ port: 80 }]`) + someNodes('worker-1', 'worker-2'),
        '--proxy-mode iptables',
      ),
    },
  }),
  'no-ports': row('warning', {
    meaning: 'a Service has no ports, and kube-proxy programs nothing for it',
    advice: 'add the ports, or remove the Service from the input; a headless Service needs none',
    example: manifests(aService(anIP)),
    words: 'kube-proxy programs nothing for this Service: it has no ports',
  }),
  'too-large': row('error', {
    meaning: 'ports, endpoints and addresses multiply to more rules than kpc compiles',
    advice:
      'split the Service that the message names, or give it fewer ports, addresses or endpoints: no node takes so many rules',
    example: () => manifests(largeInput()),
    words: ({ lines, limit, service, factors }: TooLarge) =>
      `the input comes to about ${lines} rules, but the limit for an input of this size is ${limit}: Service ${service} has ${factors.ports} ports, ${factors.pairs} pairs of a port and an endpoint, ${factors.addresses} addresses, ${factors.sourceRanges} source ranges`,
  }),
  'unloadable-range': row('warning', {
    meaning: 'a source range has prefix length 0, which no ipset takes',
    example: manifests(
      aService(
        `type: LoadBalancer, ${anIP}, loadBalancerSourceRanges: [0.0.0.0/0], ports: [{ port: 80 }]`,
        '{ loadBalancer: { ingress: [{ ip: 192.0.2.1 }] } }',
      ) + endpoint('conditions: { ready: true }'),
      '--proxy-mode ipvs --kubernetes-version 1.33',
    ),
    words: (details: Texts<'servicePort' | 'range'> & { readonly family: 'ipv4' | 'ipv6' }) => [
      `${details.servicePort}: no ipset takes the source range ${details.range}: kube-proxy of this release goes on without it and lets no client in, and ipset.restore does not load`,
      `write ${details.family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1'}`,
    ],
    rule: {
      why: 'The range that should let everyone in lets nobody in.',
      reports: ['https://github.com/kubernetes/kubernetes/pull/132722'],
      passes: lint(
        aService(
          `type: LoadBalancer, ${anIP}, loadBalancerSourceRanges: [0.0.0.0/1, 128.0.0.0/1], ports: [{ port: 80 }]`,
          '{ loadBalancer: { ingress: [{ ip: 192.0.2.1 }] } }',
        ) + endpoint('conditions: { ready: true }'),
        '--proxy-mode ipvs --kubernetes-version 1.33',
      ),
    },
  }),
  'unnamed-port': row('warning', {
    meaning: 'a port has no name, though the object has several ports',
    example: withPorts('{ name: a, port: 80 }, { port: 81 }'),
    words: ['a port without a name', 'name each port if there are several'],
  }),
  assumed: row('note', {
    meaning: 'kpc assumes what manifests from git lack: addresses, node ports, Pods and Nodes',
    advice:
      'give the objects as the cluster has them (kubectl get ... -o yaml), or forbid assumptions with --no-assume',
    example: manifests(aService('ports: [{ port: 80 }]'), '--assume'),
    words: describeAssumed,
  }),
  'not-assigned': row('warning', {
    meaning: 'a Service lacks a cluster IP, a node port or a health check port, and kpc has none to give it',
    example: manifests(aService('ports: [{ port: 80 }]'), '--allow-empty'),
    words: wordsBy('field', {
      clusterIP: ({ service }: Texts<'service'>) => [
        `${service}: kube-proxy skips this Service, because it has no clusterIP yet`,
        `${asTheClusterHasThem} --service-cluster-ip-range`,
      ],
      // `ports`: each as "80/TCP".
      nodePort: ({ service, ports }: Texts<'service'> & Lists<'ports'>) => [
        `${service}: kube-proxy opens no node port for ${ports.join(', ')}, because there is no nodePort yet`,
        `${asTheClusterHasThem} --service-node-port-range`,
      ],
      healthCheckNodePort: ({ service }: Texts<'service'>) => [
        `${service}: load balancers cannot ask for this Service's health, because there is no healthCheckNodePort yet`,
        `${asTheClusterHasThem} --service-node-port-range`,
      ],
    }),
  }),
  'no-load-balancer-ip': row('note', {
    meaning: 'load balancers have no address yet',
    example: manifests(balanced('loadBalancerClass: a.example/b')),
    // All Services that lack an address, sorted.
    words: ({ services }: Lists<'services'>) => {
      const [have, owner] = services.length === 1 ? ['has', 'its load balancer'] : ['have', 'their load balancers'];
      return [
        `${count(services.length, 'Service')} of type LoadBalancer ${have} no address yet, so kube-proxy has no rules for ${owner}: ${nameSome(services)}`,
        'let kpc choose with --load-balancer-ip-range',
      ];
    },
  }),
  'other-load-balancer-ip': row('warning', {
    meaning: 'a load balancer does not get the address that it asks for',
    example: manifests(balanced('loadBalancerIP: 192.0.2.1'), '--load-balancer-ip-range 198.51.100.0/24'),
    // `holder` has it, or asks for it with the same port.
    words: ({
      service,
      ranges,
      asked,
      holder,
    }: Texts<'service' | 'asked'> & Lists<'ranges'> & { readonly holder?: string | undefined }) =>
      holder === undefined
        ? [
            `${service}: loadBalancerIP ${asked} is not free in ${ranges.join(', ')}: kpc chooses another address`,
            'name a range that holds it with --load-balancer-ip-range',
          ]
        : [
            `${service}: loadBalancerIP ${asked} is taken by ${holder}: kpc chooses another address`,
            'give one of them another address; Services share one only if they ask for it with different ports',
          ],
  }),
  'range-is-full': row('error', {
    meaning:
      'kpc has no cluster IP, node port or load balancer address to give a Service, or no address for assumed Pods',
    example: manifests(balanced('externalIPs: [192.0.2.1]'), '--load-balancer-ip-range 192.0.2.1/32'),
    // `service` is what needs it: a Service, or Pods. `help` says where to give a larger range.
    words: ({ what, service, ranges, help }: Texts<'what' | 'service' | 'help'> & Lists<'ranges'>) => [
      `${service}: no ${what} of ${nameSome(ranges)} is free`,
      help,
    ],
  }),
  'assumed-endpoints': row('note', {
    meaning: 'kpc assumes endpoints for workloads, as --assume-endpoints asks',
    advice: 'nothing, for a preview; to use the endpoints of the cluster, give its EndpointSlices or Pods',
    example: manifests(aSelector + deployment(container), '--assume-endpoints=10.244.0.0/16'),
    // `workloads`: each as "3 of Deployment default/web".
    words: ({ pods, workloads }: Numbers<'pods'> & Lists<'workloads'>) => {
      const which = pods === 1 ? '1 ready Pod and its address are' : `${pods} ready Pods and their addresses are`;
      return `${which} assumed: ${nameSome(workloads)}; the manifest.json of a bundle lists all`;
    },
  }),
  'empty-selector': row('warning', {
    meaning: 'the selector of a Service is empty: an API server stores it as no selector',
    example: manifests(aService(`${anIP}, selector: {}, ports: [{ port: 80 }]`) + runningPod),
    words: ({ service }: Texts<'service'>) => [
      `the selector of ${service} is empty: here it takes all Pods of the namespace, but the API server stores it as none`,
      'name labels, or leave it out',
    ],
  }),
  'endpoints-from-pods': row('note', {
    meaning: 'kpc makes endpoints from the Pods in the input',
    advice: 'nothing, if these Pods are the ones that run; give the EndpointSlices of the cluster to use them instead',
    example: manifests(aSelector + runningPod),
    // `services` get endpoints made from Pods of the input; `kept` counts those that keep the endpoints in the input.
    words: ({ services, kept }: Lists<'services'> & Numbers<'kept'>) => {
      const which = services.length === 1 ? nameSome(services) : `${services.length} Services (${nameSome(services)})`;
      const made = `the endpoints of ${which} are made from the Pods in the input, as the endpointslice controller makes them`;
      const keep = `${kept} ${kept === 1 ? 'Service keeps' : 'Services keep'} the EndpointSlices or Endpoints in the input`;
      return [...(services.length > 0 ? [made] : []), ...(kept > 0 ? [keep] : [])].join('; ');
    },
  }),
  'extra-addresses': row('warning', {
    meaning: 'an endpoint has several addresses: kube-proxy uses only the first',
    example: manifests(
      web + slice('addressType: IPv4\nports: [{ port: 8080 }]\nendpoints: [{ addresses: [10.244.0.1, 10.244.0.2] }]'),
    ),
    words: ({ index, count: number }: Numbers<'index' | 'count'>) => [
      `endpoints[${index}] has ${number} addresses: kube-proxy uses only the first`,
      'use one endpoint for each address',
    ],
  }),
  'no-endpoints-given': row('warning', {
    meaning: 'the input holds no endpoints of Services that have a selector',
    example: manifests(
      aSelector + aService('clusterIP: 10.96.0.11, ports: [{ port: 80 }]', '', 'api') + noEndpoint('api'),
    ),
    // `services` have no endpoints in the input; `selecting` counts the Services with a selector.
    words: (details: Lists<'services'> & Numbers<'selecting'> & { readonly hasWorkloads: boolean }) => {
      const { services, selecting, hasWorkloads } = details;
      const names = nameSome(services);
      return [
        selecting === 1
          ? `the input holds no EndpointSlice or Endpoints of ${names}: the compiled rules refuse all connections to it`
          : `the input holds no EndpointSlices or Endpoints of ${services.length} of ${selecting} Services with a selector (${names}): the compiled rules refuse all connections to them`,
        `add them (kubectl get endpointslices -A -o yaml)${hasWorkloads ? ", or assume the input's workloads have ready Pods: --assume-endpoints" : ''}`,
      ];
    },
    rule: {
      why: 'In a cluster, each Service with a selector has an EndpointSlice, though it may be empty. Without any, kube-proxy refuses the connections of a Service.',
      passes: lint(aSelector + noEndpoint('web').replace('endpoints: []', 'endpoints: [{ addresses: [10.244.0.1] }]')),
    },
  }),
  'no-pod-address': row(
    severityBy('problem', 'error', { 'host-network': 'warning', 'no-network-of-family': 'warning' }),
    {
      meaning: 'there is no address for an assumed Pod',
      example: manifests(aSelector + deployment(container), '--assume-endpoints'),
      words: wordsBy('problem', {
        'no-network': [
          'assumed endpoints need the network of the Pods',
          'name it, as in --assume-endpoints=10.244.0.0/16, or with --cluster-cidr, or give Nodes with podCIDRs',
        ],
        'no-network-of-family': ({ family }: { readonly family: Family }) => [
          `assumed Pods have no ${familyNames[family]} address, though Services have`,
          'name a network of each family, such as --assume-endpoints=10.244.0.0/16,fd00:10:244::/56',
        ],
        'host-network': ({ pods }: Lists<'pods'>) => [
          `Pods on the host network have the addresses of their Nodes, and the input holds none of these: ${nameSome(pods)} cannot be assumed`,
          'add the Nodes (kubectl get nodes -o yaml)',
        ],
      }),
    },
  ),
  'no-such-service': row('note', {
    meaning: 'EndpointSlices or Endpoints belong to a Service that the input does not hold',
    example: manifests(web + endpoint('').replace('service-name: web', 'service-name: api')),
    words: ({ services }: Lists<'services'>) => [
      `the input holds EndpointSlices or Endpoints of ${printable(nameSome(services))}, but no such ${services.length === 1 ? 'Service' : 'Services'}: they are not used`,
      'add the Service, or leave them out',
    ],
  }),
  'selects-nothing': row(
    { among: ['warning', 'note'], weigh: (likely: Likely) => (mayBeUnseen(likely) ? 'note' : 'warning') },
    {
      meaning: 'a Service matches no Pod in the input',
      advice:
        'compare the selector with the labels of the Pods, and check the namespace; give the Pods or EndpointSlices too, if they are in another file or an operator makes them',
      example: manifests(aSelector + runningPod.replace('app: web', 'app: api')),
      // `selector` is the first Service's, as "app=web".
      words: ({ services, selector, ...likely }: Lists<'services'> & Texts<'selector'> & Likely) => {
        const [it, has] = services.length === 1 ? ['it', 'has'] : ['they', 'have'];
        const so = mayBeUnseen(likely) ? '' : `, so ${it} ${has} no endpoints`;
        return [
          services.length === 1
            ? `${nameSome(services)} matches no Pod in the input (${printable(selector)})${so}`
            : `${services.length} Services (${nameSome(services)}) match no Pod in the input${so}`,
          likelyCause(likely),
        ];
      },
      rule: {
        why: 'A Service whose selector fits no Pod has no endpoints, and kube-proxy refuses its connections. A label that is spelled in another way is the usual cause.',
        passes: lint(aSelector + runningPod),
      },
    },
  ),
  'slice-without-service': row('warning', {
    meaning: 'an EndpointSlice does not name its Service, and kube-proxy skips it',
    example: manifests(web + slice('addressType: IPv4').replace(', labels: { kubernetes.io/service-name: web }', '')),
    // `service` is the value of the label, if it is not a valid name; undefined without a label.
    words: ({ service }: { readonly service?: string | undefined }) => [
      `kube-proxy skips this EndpointSlice: ${service === undefined ? `it has no label ${serviceNameLabel}` : `no Service can have the name ${quote(service)}`}`,
      `write the name of its Service as the label ${serviceNameLabel}`,
    ],
  }),
  'too-many': row('warning', {
    meaning: 'an EndpointSlice or Endpoints object has more endpoints or ports than the control plane takes',
    example: () =>
      manifests(
        web + endpoint('').replace(/endpoints:.*/, `endpoints: [${'{ addresses: [10.244.0.1] }, '.repeat(1001)}]`),
      ),
    words: wordsBy('object', {
      EndpointSlice: ({ field, count: number, limit }: Limited & Texts<'field'>) => [
        `the EndpointSlice has ${number} ${field}, and the API server takes ${limit} in one`,
        'split it into several slices',
      ],
      Endpoints: ({ field, count: number, limit }: Limited & Texts<'field'>) => [
        `the Endpoints object has ${number} ${field} at this port, and the control plane mirrors ${limit}: the ready ones first, sorted as text`,
        'write EndpointSlices instead',
      ],
    }),
  }),
  'too-many-pods': row('error', {
    meaning: 'the Pods of the input, or those that its Services select, are more than kpc takes',
    advice: 'lower the replicas of the workload that the message names, or give EndpointSlices instead of workloads',
    example: manifests(aSelector + deployment(container).replace('replicas: 3', 'replicas: 200000'), '--assume'),
    // A Pod counts once for each Service that selects it.
    words: ({ of, count: number, limit, largest, most }: Limited & Texts<'of' | 'largest'> & Numbers<'most'>) =>
      `the ${of} of the input come to ${number} Pods, and the limit is ${limit}: ${largest} alone has ${most}`,
  }),
  'unknown-port': row('warning', {
    meaning: 'a Service port has no endpoints, because no port of its endpoints or Pods has the name that it means',
    advice: 'give the port of the Service, and that of its EndpointSlices or Pods, the same name',
    example: manifests(
      aService(`${anIP}, ports: [{ name: http, port: 80 }]`) + endpoint('').replace('{ port', '{ name: htpp, port'),
    ),
    // `found`: the existing ports, each as "http/TCP".
    // `service` is whose port it is.
    words: (details: Texts<'service' | 'owner' | 'protocol' | 'name'> & Numbers<'port'> & Lists<'found'>) => {
      const { owner, protocol, name, port, found } = details;
      const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${printable(name)}`;
      return [
        `${owner} has a ${what}, so the Service port ${port} has no endpoints`,
        found.length === 0
          ? `they have no ${name === '' ? 'ports' : 'port with a name'}`
          : `their ports: ${printable(nameSome(found))}`,
      ];
    },
    rule: {
      why: 'Service ports, slice ports and container ports are joined by name. One letter less, and the port has no endpoints: kube-proxy refuses its connections.',
      passes: lint(
        aService(`${anIP}, ports: [{ name: http, port: 80 }]`) + endpoint('').replace('{ port', '{ name: http, port'),
      ),
    },
  }),
} satisfies DiagnosticTable;
