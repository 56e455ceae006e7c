import {
  balanced,
  runningPod,
  aSelector,
  aService,
  anIP,
  annotated,
  container,
  deployment,
  endpoint,
  largeInput,
  manifests,
  slice,
  web,
  withFields,
  withPorts,
} from './examples.ts';
import { printable, quote } from '../base/printable.ts';
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

/** `service` is the largest one. */
type TooLarge = Numbers<'lines' | 'limit'> &
  Texts<'service'> & { readonly factors: Numbers<'ports' | 'pairs' | 'addresses' | 'sourceRanges'> };

const asTheClusterHasThem =
  'give the objects as the cluster has them (kubectl get svc,endpointslices -A -o yaml), or let kpc choose with';

/** What took the place of what manifests from git lack. */
interface Assumed extends Lists<'nodes'> {
  readonly values: readonly AssumedValues[];
  /** Whether kpc assumes without being asked to. */
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

/** Problems with Services, their ports and endpoints, and what a cluster would assign that they lack. */
export const serviceDiagnostics = {
  'address-conflict': row('warning', {
    meaning: 'two Service ports claim the same address, port and protocol',
    example: manifests(
      aService(`${anIP}, externalIPs: [203.0.113.90], ports: [{ port: 80 }]`) +
        aService('clusterIP: 10.96.0.11, externalIPs: [203.0.113.90], ports: [{ port: 80 }]', '', 'api'),
    ),
    // `what` is "10.96.0.1:80/TCP" or "node port 30080/TCP", and `holder` the Service port that gets it.
    words: ({ what, holder, rival }: Texts<'what' | 'holder' | 'rival'>) => [
      `${what} is claimed by ${holder} and ${rival}: ${holder} always gets it`,
      'give one of them another address or port',
    ],
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
      aService(`${anIP}, ports: [{ name: ${'p'.repeat(63)}, port: 80 }]`, '', 'w'.repeat(63)),
      '--proxy-mode nftables --kubernetes-version 1.36',
    ),
    // `lack` is what the Service has not on the nodes where kube-proxy writes the comment.
    words: ({ servicePort, lack, limit }: Texts<'servicePort' | 'lack'> & Numbers<'limit'>) => [
      `${servicePort}: kube-proxy writes this name of ${servicePort.length} bytes as a comment on nodes where the Service has ${lack.replaceAll('-', ' ')}, but nft takes ${limit} and refuses all rules with it; kpc cuts the comment`,
      'shorten the names',
    ],
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
  'no-ports': row('warning', {
    meaning: 'a Service has no ports, and kube-proxy programs nothing for it',
    example: manifests(aService(anIP)),
    words: 'kube-proxy programs nothing for this Service: it has no ports',
  }),
  'too-large': row('error', {
    meaning: 'ports, endpoints and addresses multiply to more rules than kpc compiles',
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
      '--kubernetes-version 1.33',
    ),
    words: (details: Texts<'servicePort' | 'range'> & { readonly family: 'ipv4' | 'ipv6' }) => [
      `${details.servicePort}: no ipset takes the source range ${details.range}: kube-proxy of this release goes on without it and lets no client in, and ipset.restore does not load`,
      `write ${details.family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1'}`,
    ],
  }),
  'unnamed-port': row('warning', {
    meaning: 'a port has no name, though the object has several ports',
    example: withPorts('{ name: a, port: 80 }, { port: 81 }'),
    words: ['a port without a name', 'name each port if there are several'],
  }),
  assumed: row('note', {
    meaning: 'kpc assumes what manifests from git lack: addresses, node ports, Pods and Nodes',
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
    words: ({ service, ranges, asked }: Texts<'service' | 'asked'> & Lists<'ranges'>) => [
      `${service}: loadBalancerIP ${asked} is not free in ${ranges.join(', ')}: kpc chooses another address`,
      'name a range that holds it with --load-balancer-ip-range',
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
    example: manifests(aSelector),
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
  'selects-nothing': row('warning', {
    meaning: 'a Service matches no Pod in the input',
    example: manifests(aSelector + runningPod.replace('app: web', 'app: api')),
    // `selector` is the first Service's, as "app=web".
    words: ({ services, selector }: Lists<'services'> & Texts<'selector'>) =>
      services.length === 1
        ? `${nameSome(services)} matches no Pod in the input (${printable(selector)}), so it has no endpoints`
        : `${services.length} Services (${nameSome(services)}) match no Pod in the input, so they have no endpoints`,
  }),
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
    meaning: 'an EndpointSlice has more endpoints or ports than the API server takes',
    example: () =>
      manifests(
        web + endpoint('').replace(/endpoints:.*/, `endpoints: [${'{ addresses: [10.244.0.1] }, '.repeat(1001)}]`),
      ),
    words: ({ field, count: number, limit }: Limited & Texts<'field'>) => [
      `the EndpointSlice has ${number} ${field}, and the API server takes ${limit} in one`,
      'split it into several slices',
    ],
  }),
  'too-many-pods': row('error', {
    meaning: 'the Pods of the input, or those that its Services select, are more than kpc takes',
    example: manifests(aSelector + deployment(container).replace('replicas: 3', 'replicas: 200000'), '--assume'),
    // A Pod counts once for each Service that selects it.
    words: ({ of, count: number, limit, largest, most }: Limited & Texts<'of' | 'largest'> & Numbers<'most'>) =>
      `the ${of} of the input come to ${number} Pods, and the limit is ${limit}: ${largest} alone has ${most}`,
  }),
  'unknown-port': row('warning', {
    meaning: 'a Service port has no endpoints, because no port of its endpoints or Pods has the name that it means',
    example: manifests(
      aService(`${anIP}, ports: [{ name: http, port: 80 }]`) + endpoint('').replace('{ port', '{ name: htpp, port'),
    ),
    // `found`: the existing ports, each as "http/TCP".
    words: (details: Texts<'owner' | 'protocol' | 'name'> & Numbers<'port'> & Lists<'found'>) => {
      const { owner, protocol, name, port, found } = details;
      const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${printable(name)}`;
      return [
        `${owner} has a ${what}, so the Service port ${port} has no endpoints`,
        found.length === 0 ? 'none of their ports has a name' : `their ports: ${printable(nameSome(found))}`,
      ];
    },
  }),
} satisfies DiagnosticTable;
