import { annotated, anIP, endpoint, largeInput, manifests, aService } from './examples.ts';
import { quote } from '../base/printable.ts';
import { newestRelease } from '../kube-proxy/releases.ts';
import { shapeRow } from './shape-rows.ts';
import { severityBy, wordsBy, type DiagnosticTable } from './diagnostic-rows.ts';

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

/** Why a packet to a Service port would need another port on its way. */
export type PortChange =
  | { readonly reason: 'target-port'; readonly servicePort: string; readonly port: number; readonly targetPort: number }
  | { readonly reason: 'node-port'; readonly servicePort: string; readonly nodePort: number };

/** The same in words, and what to do about it. */
export function describePortChange(change: PortChange): readonly [wrong: string, help: string] {
  switch (change.reason) {
    case 'target-port':
      return [
        `${change.servicePort} has port ${change.port} and its endpoints port ${change.targetPort}`,
        'make them equal',
      ];
    case 'node-port':
      return [
        `${change.servicePort} has node port ${change.nodePort}`,
        'use type ClusterIP, or allocateLoadBalancerNodePorts: false with type LoadBalancer',
      ];
  }
}

/** `first` is the index of the port that is there already. */
interface SamePort {
  readonly index: number;
  readonly first: number;
}

interface LongComment {
  readonly servicePort: string;
  /** What the Service lacks on the nodes where kube-proxy writes the comment. */
  readonly lack: 'no-endpoints' | 'no-local-endpoints';
  readonly limit: number;
}

interface TooLarge {
  readonly lines: number;
  readonly limit: number;
  /** The largest one. */
  readonly service: string;
  readonly factors: {
    readonly ports: number;
    readonly pairs: number;
    readonly addresses: number;
    readonly sourceRanges: number;
  };
}

/** What is wrong with Services, their ports and kpc's annotations of them. */
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
    words: ({ what, holder, rival }: { readonly what: string; readonly holder: string; readonly rival: string }) => [
      `${what} is claimed by ${holder} and ${rival}: ${holder} gets it, in every run`,
      'give one of them another address or port',
    ],
  },
  'bad-annotation': {
    severity: 'error',
    meaning: "an annotation of kpc's own has a value that it does not take",
    example: () => manifests(annotated('kpc.dev/ipvs-forwarding-method: nat')),
    words: (details: { readonly annotation: string; readonly value: string; readonly known: readonly string[] }) => [
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
      contradiction: ({ clusterIPs, clusterIP }: { readonly clusterIPs: string; readonly clusterIP: string }) => [
        `clusterIPs begins with ${quote(clusterIPs)}, but clusterIP is ${quote(clusterIP)}`,
        'make them the same',
      ],
      /** A word like None, which must be the only value. */
      none: ({ value, isFirst }: { readonly value: string; readonly isFirst: boolean }) => [
        `clusterIP cannot be ${quote(value)}${isFirst ? '' : ' beside an address'}`,
        isFirst ? 'write None' : 'None must be the only value',
      ],
      /** `family` is that of `index` in ipFamilies. */
      'other-family': (details: { readonly value: string; readonly family: 'IPv4' | 'IPv6'; readonly index: number }) =>
        `${quote(details.value)} is not an ${details.family} address, which ipFamilies[${details.index}] requires`,
    }),
  },
  'bad-ip-family': shapeRow(
    'ipFamilies or ipFamilyPolicy has a value that it does not take, or they contradict each other',
    () => manifests(aService(`${anIP}, ipFamilies: [IPv4, IPv4], ports: [{ port: 80 }]`)),
  ),
  'bad-traffic-distribution': {
    severity: 'warning',
    meaning: 'trafficDistribution is not a value that Kubernetes knows',
    example: () => manifests(aService(`${anIP}, trafficDistribution: PreferFar, ports: [{ port: 80 }]`)),
    words: ({ value, hint }: { readonly value: string; /** What to write. */ readonly hint: string }) => [
      `trafficDistribution is ${quote(value)}, which Kubernetes ${newestRelease} does not know`,
      `write ${hint}`,
    ],
  },
  'duplicate-port': {
    severity: severityBy('problem', 'error', { 'slice-port': 'warning' }),
    meaning: 'two ports of one object have the same name or number',
    example: () => manifests(aService(`${anIP}, ports: [{ name: a, port: 80 }, { name: b, port: 80 }]`)),
    words: wordsBy('problem', {
      value: (details: {
        readonly field: 'name' | 'port' | 'nodePort';
        readonly value: string;
        readonly first: number;
      }) => [
        `${details.field} ${details.value} is already used by ports[${details.first}]`,
        `give each port a ${details.field} of its own`,
      ],
      unnamed: ({ index, first, protocol }: SamePort & { readonly protocol: string }) => [
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
    words: ({ method, change }: { readonly method: string; readonly change: PortChange }) => {
      const [wrong, help] = describePortChange(change);
      return [`kpc.dev/ipvs-forwarding-method is "${method}", which cannot change a port, but ${wrong}`, help];
    },
  },
  'ignored-field': {
    severity: 'warning',
    meaning: 'a field means nothing for a Service of this type, and the API server refuses it',
    example: () => manifests(aService(`${anIP}, healthCheckNodePort: 30100, ports: [{ port: 80 }]`)),
    words: (details: IgnoredFieldReason & { readonly field: string }) => [
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
    words: ({ servicePort, lack, limit }: LongComment) => [
      `${servicePort}: kube-proxy writes this name of ${servicePort.length} bytes as a comment on nodes where the Service has ${lack === 'no-endpoints' ? 'no endpoints' : 'no local endpoints'}, but nft takes ${limit} and refuses all rules with it; kpc cuts the comment`,
      'shorten the names',
    ],
  },
  'missing-cluster-ip': {
    severity: 'warning',
    meaning: 'a Service has clusterIPs, but no clusterIP',
    example: () => manifests(aService('clusterIPs: [10.96.0.10], ports: [{ port: 80 }]')),
    words: ({ first }: { readonly first: string }) => [
      'the API server accepts clusterIPs only with a clusterIP',
      `add clusterIP: ${first}`,
    ],
  },
  'missing-ip-families': {
    severity: 'warning',
    meaning: 'a Service has more clusterIPs than ipFamilies: kube-proxy takes only the first address',
    example: () =>
      manifests(aService('clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10, "fd00:10:96::10"], ports: [{ port: 80 }]')),
    words: ({ families }: { readonly families: number }) => [
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
    words: ({ type }: { readonly type: string }) => [
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
    words: (details: { readonly servicePort: string; readonly range: string; readonly family: 'ipv4' | 'ipv6' }) => [
      `${details.servicePort}: no ipset takes the source range ${details.range}: kube-proxy of this release goes on without it and lets no client in, and ipset.restore does not load`,
      `write ${details.family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1'}`,
    ],
  },
  'unnamed-port': {
    severity: 'warning',
    meaning: 'a port has no name, though the object has several ports',
    example: () => manifests(aService(`${anIP}, ports: [{ name: a, port: 80 }, { port: 81 }]`)),
    words: ['a port without a name', 'name each port if there are several'],
  },
} satisfies DiagnosticTable;
