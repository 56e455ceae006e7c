import { aService, anIP, annotated, endpoint, largeInput, manifests, withFields, withPorts } from './examples.ts';
import { quote } from '../base/printable.ts';
import { newestRelease } from '../kube-proxy/releases.ts';
import { severityBy, type DiagnosticTable, type Lists, type Numbers, type Texts, wordsBy } from './diagnostic-rows.ts';
import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';

/** The kind of Service for which a field means nothing. */
export type IgnoredFieldReason =
  | { readonly reason: 'type' | 'no-external-addresses'; readonly type: string }
  | { readonly reason: 'no-local-load-balancer' };

function describeKind(details: IgnoredFieldReason): string {
  switch (details.reason) {
    case 'type':
      return `of type ${details.type}`;
    case 'no-external-addresses':
      return `of type ${details.type} without externalIPs`;
    case 'no-local-load-balancer':
      return 'that is not of type LoadBalancer with externalTrafficPolicy Local';
  }
}

/** `first` is the index of the port that is there already. */
type SamePort = Numbers<'index' | 'first'>;

type Lack = 'no-endpoints' | 'no-local-endpoints';

/** `service` is the largest one. */
type TooLarge = Numbers<'lines' | 'limit'> &
  Texts<'service'> & { readonly factors: Numbers<'ports' | 'pairs' | 'addresses' | 'sourceRanges'> };

const asTheClusterHasThem =
  'give the objects as the cluster has them (kubectl get svc,endpointslices -A -o yaml), or let kpc choose with';

/** The Service, "namespace/name", that lacks something. */
type Lacking = Texts<'service'>;

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
  const counts = values.map(({ what, count, from }) => {
    const plural = what.endsWith('s') ? `${what}es` : `${what}s`;
    const networks = from.length === 0 ? '' : ` from ${from.join(' and ')}`;
    return `${formatCount(count)} ${count === 1 ? what : plural}${networks}`;
  });
  const named = nodes.length === 0 ? '' : ` (${nameSome(nodes)})`;
  const way = isDefault ? '; --no-assume forbids this' : '';
  return `assumed, because the input lacks them: ${counts.join(', ')}${named}${way}`;
}

/** What is wrong with Services, their ports and kpc's annotations of them, and what a cluster would give them that they lack. */
export const serviceDiagnostics = {
  'address-conflict': {
    severity: 'warning',
    meaning: 'two Service ports claim the same address, port and protocol',
    example: () =>
      manifests(
        aService(`${anIP}, externalIPs: [203.0.113.90], ports: [{ port: 80 }]`) +
          aService('clusterIP: 10.96.0.11, externalIPs: [203.0.113.90], ports: [{ port: 80 }]', '', 'api'),
      ),
    // `what` is "10.96.0.1:80/TCP" or "node port 30080/TCP", and `holder` the Service port that gets it.
    words: ({ what, holder, rival }: Texts<'what' | 'holder' | 'rival'>) => [
      `${what} is claimed by ${holder} and ${rival}: ${holder} gets it, in every run`,
      'give one of them another address or port',
    ],
  },
  'bad-annotation': {
    severity: 'error',
    meaning: "an annotation of kpc's own has a value that it does not take",
    example: () => manifests(annotated('kpc.dev/ipvs-forwarding-method: nat')),
    words: (details: Texts<'annotation' | 'value'> & Lists<'known'>) => [
      `${details.annotation} cannot be "${details.value}"`,
      `write one of ${details.known.join(', ')}`,
    ],
  },
  'bad-cluster-ips': {
    severity: 'error',
    meaning: 'clusterIP and clusterIPs contradict each other, the families or the type of the Service',
    example: () => manifests(aService('clusterIP: none, ports: [{ port: 80 }]')),
    words: wordsBy('problem', {
      'external-name': ({ field }: { readonly field: 'clusterIP' | 'clusterIPs' }) => [
        'a Service of type ExternalName has no cluster IP',
        `leave ${field} out, or write another type`,
      ],
      headless: ({ type }: { readonly type: 'NodePort' | 'LoadBalancer' }) => [
        `clusterIP is None, and type is ${type}: a headless Service has no ports outside the cluster`,
        'write type: ClusterIP, or no clusterIP',
      ],
      'too-many': ['clusterIPs holds too many addresses', 'write one address, or one of each family'],
      contradiction: ({ clusterIPs, clusterIP }: Texts<'clusterIPs' | 'clusterIP'>) => [
        `clusterIPs begins with ${quote(clusterIPs)}, but clusterIP is ${quote(clusterIP)}`,
        'make them the same',
      ],
      /** A word like None, which must be the only value. */
      none: ({ value, isFirst }: Texts<'value'> & { readonly isFirst: boolean }) => [
        `clusterIP cannot be ${quote(value)}${isFirst ? '' : ' beside an address'}`,
        isFirst ? 'write None' : 'None must be the only value',
      ],
      /** `family` is that of `index` in ipFamilies. */
      'other-family': (details: Texts<'value'> & Numbers<'index'> & { readonly family: 'IPv4' | 'IPv6' }) =>
        `${quote(details.value)} is not an ${details.family} address, which ipFamilies[${details.index}] requires`,
    }),
  },
  'bad-traffic-distribution': {
    severity: 'warning',
    meaning: 'trafficDistribution is not a value that Kubernetes knows',
    example: () => withFields('trafficDistribution: PreferFar'),
    words: ({ value, hint }: Texts<'value'> & { /** What to write. */ readonly hint: string }) => [
      `trafficDistribution is ${quote(value)}, which Kubernetes ${newestRelease} does not know`,
      `write ${hint}`,
    ],
  },
  'duplicate-port': {
    severity: severityBy('problem', 'error', { 'slice-port': 'warning' }),
    meaning: 'two ports of one object have the same name or number',
    example: () => withPorts('{ name: a, port: 80 }, { name: b, port: 80 }'),
    words: wordsBy('problem', {
      value: (details: Texts<'value'> & Numbers<'first'> & { readonly field: 'name' | 'port' | 'nodePort' }) => [
        `${details.field} ${details.value} is already used by ports[${details.first}]`,
        `give each port a ${details.field} of its own`,
      ],
      unnamed: ({ index, first, protocol }: SamePort & Texts<'protocol'>) => [
        `ports[${index}] has no name, nor has ports[${first}] of ${protocol}: kube-proxy keeps one of them`,
        'name both',
      ],
      'slice-port': (details: SamePort & { readonly name: string; readonly sameProtocol: boolean }) => {
        const { index, name, first, sameProtocol } = details;
        const what = name === '' ? 'has no name' : `is named ${name}`;
        const other = sameProtocol ? 'the same' : 'another';
        return [
          `ports[${index}] ${what}, like ports[${first}] of ${other} protocol`,
          'name them differently: the API server accepts each name once',
        ];
      },
    }),
  },
  'forwarding-changes-port': {
    severity: 'error',
    meaning: 'a Service asks for a forwarding method that cannot change the port, but its ports differ',
    example: () =>
      manifests(annotated('kpc.dev/ipvs-forwarding-method: direct') + endpoint('conditions: { ready: true }')),
    // `wrong` is which port would change.
    words: ({ method, wrong, help }: Texts<'method' | 'wrong' | 'help'>) => [
      `kpc.dev/ipvs-forwarding-method is "${method}", which cannot change a port, but ${wrong}`,
      help,
    ],
  },
  'ignored-field': {
    severity: 'warning',
    meaning: 'a field means nothing for a Service of this type, and the API server refuses it',
    example: () => withFields('healthCheckNodePort: 30100'),
    words: (details: IgnoredFieldReason & Texts<'field'>) => [
      `${details.field} means nothing for a Service ${describeKind(details)}, and the API server refuses it`,
      'leave it out',
    ],
  },
  'long-comment': {
    severity: 'warning',
    meaning: 'the names of a Service port are too long for an nft comment: kube-proxy could program nothing',
    example: () =>
      manifests(
        aService(`${anIP}, ports: [{ name: ${'p'.repeat(63)}, port: 80 }]`, '', 'w'.repeat(63)),
        '--proxy-mode',
        'nftables',
        '--kubernetes-version',
        '1.36',
      ),
    // `lack` is what the Service has not on the nodes where kube-proxy writes the comment.
    words: ({ servicePort, lack, limit }: Texts<'servicePort'> & Numbers<'limit'> & { readonly lack: Lack }) => [
      `${servicePort}: kube-proxy writes this name of ${servicePort.length} bytes as a comment on nodes where the Service has ${lack.replaceAll('-', ' ')}, but nft takes ${limit} and refuses all rules with it; kpc cuts the comment`,
      'shorten the names',
    ],
  },
  'missing-cluster-ip': {
    severity: 'warning',
    meaning: 'a Service has clusterIPs, but no clusterIP',
    example: () => manifests(aService('clusterIPs: [10.96.0.10], ports: [{ port: 80 }]')),
    words: ({ first }: Texts<'first'>) => [
      'the API server accepts clusterIPs only with a clusterIP',
      `add clusterIP: ${first}`,
    ],
  },
  'missing-ip-families': {
    severity: 'warning',
    meaning: 'a Service has more clusterIPs than ipFamilies: kube-proxy takes only the first address',
    example: () =>
      manifests(aService('clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10, "fd00:10:96::10"], ports: [{ port: 80 }]')),
    words: ({ families }: Numbers<'families'>) => [
      `kube-proxy takes only the first of clusterIPs, because there ${families > 0 ? 'is only one family in ipFamilies' : 'are no ipFamilies'}`,
      'name the family of each address in ipFamilies',
    ],
  },
  'no-ports': {
    severity: 'warning',
    meaning: 'a Service has no ports, and kube-proxy programs nothing for it',
    example: () => manifests(aService(anIP)),
    words: 'kube-proxy programs nothing for this Service: it has no ports',
  },
  'stale-ingress': {
    severity: 'warning',
    meaning: 'a Service that is not of type LoadBalancer has load balancer addresses in its status',
    example: () =>
      manifests(aService(`${anIP}, ports: [{ port: 80 }]`, '{ loadBalancer: { ingress: [{ ip: 192.0.2.1 }] } }')),
    words: ({ type }: Texts<'type'>) => [
      `status has load balancer addresses, and type is ${type}: kube-proxy serves them anyway`,
      'remove them if the load balancer is gone',
    ],
  },
  'too-large': {
    severity: 'error',
    meaning: 'ports, endpoints and addresses multiply to more rules than kpc compiles',
    example: () => manifests(largeInput()),
    words: ({ lines, limit, service, factors }: TooLarge) =>
      `the input comes to about ${lines} rules, but the limit for an input of this size is ${limit}: Service ${service} has ${factors.ports} ports, ${factors.pairs} pairs of a port and an endpoint, ${factors.addresses} addresses, ${factors.sourceRanges} source ranges`,
  },
  'unloadable-range': {
    severity: 'warning',
    meaning: 'a source range has prefix length 0, which no ipset takes',
    example: () =>
      manifests(
        aService(
          `type: LoadBalancer, ${anIP}, loadBalancerSourceRanges: [0.0.0.0/0], ports: [{ port: 80 }]`,
          '{ loadBalancer: { ingress: [{ ip: 192.0.2.1 }] } }',
        ) + endpoint('conditions: { ready: true }'),
        '--kubernetes-version',
        '1.33',
      ),
    words: (details: Texts<'servicePort' | 'range'> & { readonly family: 'ipv4' | 'ipv6' }) => [
      `${details.servicePort}: no ipset takes the source range ${details.range}: kube-proxy of this release goes on without it and lets no client in, and ipset.restore does not load`,
      `write ${details.family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1'}`,
    ],
  },
  'unnamed-port': {
    severity: 'warning',
    meaning: 'a port has no name, though the object has several ports',
    example: () => withPorts('{ name: a, port: 80 }, { port: 81 }'),
    words: ['a port without a name', 'name each port if there are several'],
  },
  assumed: {
    severity: 'note',
    meaning: 'kpc assumes what manifests from git lack: addresses, node ports, Pods and Nodes',
    example: () => manifests(aService('ports: [{ port: 80 }]'), '--assume'),
    words: describeAssumed,
  },
  'no-cluster-ip': {
    severity: severityBy('problem', 'error', { 'not-assigned': 'warning' }),
    meaning: 'a Service has no cluster IP, and kpc has none to give it',
    example: () => manifests(aService('ports: [{ port: 80 }]'), '--allow-empty'),
    words: wordsBy('problem', {
      'not-assigned': ({ service }: Lacking) => [
        `${service}: kube-proxy skips this Service, because it has no clusterIP yet`,
        `${asTheClusterHasThem} --service-cluster-ip-range`,
      ],
      'no-range': (
        details: Lacking & {
          readonly family: 'ipv4' | 'ipv6';
          /** What the ranges come from. */
          readonly source: 'ServiceCIDR' | '--service-cluster-ip-range';
        },
      ) => {
        const { service, family, source } = details;
        const [what, help] =
          source === 'ServiceCIDR'
            ? ['no ServiceCIDR has one', 'add a ServiceCIDR of that family']
            : [`${source} has none`, 'name a range of each family'];
        return [`${service}: the Service wants an ${family === 'ipv4' ? 'IPv4' : 'IPv6'} address, but ${what}`, help];
      },
      'range-is-full': ({ service, range }: Lacking & Texts<'range'>) => [
        `${service}: no address of ${range} is free for this Service`,
        'name a larger range',
      ],
    }),
  },
  'no-health-check-port': {
    severity: 'warning',
    meaning: 'a Service has no healthCheckNodePort yet, so load balancers cannot ask for its health',
    example: () =>
      manifests(
        aService(`type: LoadBalancer, ${anIP}, externalTrafficPolicy: Local, ports: [{ port: 80, nodePort: 30080 }]`),
      ),
    words: ({ service }: Lacking) => [
      `${service}: load balancers cannot ask for this Service's health, because there is no healthCheckNodePort yet`,
      `${asTheClusterHasThem} --service-node-port-range`,
    ],
  },
  'no-load-balancer-ip': {
    severity: severityBy('problem', 'error', { 'not-assigned': 'note', 'not-the-one-asked-for': 'warning' }),
    meaning: 'a load balancer has no address, and kpc has none to give it, or not the one that it asks for',
    example: () =>
      manifests(
        aService(`type: LoadBalancer, ${anIP}, externalIPs: [192.0.2.1], ports: [{ port: 80, nodePort: 30080 }]`),
        '--load-balancer-ip-range',
        '192.0.2.1/32',
      ),
    words: wordsBy('problem', {
      /** All Services that lack an address, sorted. */
      'not-assigned': ({ services }: Lists<'services'>) => {
        const which = services.length === 1 ? '1 Service' : `${formatCount(services.length)} Services`;
        const [verb, owner] = services.length === 1 ? ['has', 'its load balancer'] : ['have', 'their load balancers'];
        return [
          `${which} of type LoadBalancer ${verb} no address yet, so kube-proxy has no rules for ${owner}: ${nameSome(services)}`,
          'let kpc choose with --load-balancer-ip-range',
        ];
      },
      'range-is-full': ({ service, ranges }: Lacking & Lists<'ranges'>) => [
        `${service}: no address of ${ranges.join(', ')} is free for this Service`,
        'name a larger range with --load-balancer-ip-range',
      ],
      // `asked` is what loadBalancerIP is.
      'not-the-one-asked-for': ({ service, ranges, asked }: Lacking & Lists<'ranges'> & Texts<'asked'>) => [
        `${service}: loadBalancerIP ${asked} is not free in ${ranges.join(', ')}: kpc chooses another address`,
        'name a range that holds it with --load-balancer-ip-range',
      ],
    }),
  },
  'no-node-port': {
    severity: severityBy('problem', 'error', { 'not-assigned': 'warning' }),
    meaning: 'a Service has no node port, and kpc has none to give it',
    example: () => manifests(aService(`type: NodePort, ${anIP}, ports: [{ port: 80 }]`)),
    words: wordsBy('problem', {
      /** "80/TCP" each. */
      'not-assigned': ({ service, ports }: Lacking & Lists<'ports'>) => [
        `${service}: kube-proxy opens no node port for ${ports.join(', ')}, because there is no nodePort yet`,
        `${asTheClusterHasThem} --service-node-port-range`,
      ],
      'range-is-full': ({ service, first, last }: Lacking & Numbers<'first' | 'last'>) => [
        `${service}: no node port from ${first} to ${last} is free for this Service`,
        'name a larger range with --service-node-port-range',
      ],
    }),
  },
} satisfies DiagnosticTable;
