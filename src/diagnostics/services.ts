import { quote } from '../base/wording.ts';
import { describeShape } from './shape.ts';
import type { ShapeProblem } from './shape.ts';
import type { DiagnosticTable } from './table.ts';

type ClusterIpProblem =
  | { readonly problem: 'external-name'; readonly field: 'clusterIP' | 'clusterIPs' }
  | { readonly problem: 'headless'; readonly type: 'NodePort' | 'LoadBalancer' }
  | { readonly problem: 'too-many' }
  | { readonly problem: 'contradiction'; readonly clusterIPs: string; readonly clusterIP: string }
  /** A word like None, which stands alone. */
  | { readonly problem: 'none'; readonly value: string; readonly isFirst: boolean }
  | {
      readonly problem: 'other-family';
      readonly value: string;
      readonly family: 'IPv4' | 'IPv6';
      /** Of the family in ipFamilies. */
      readonly index: number;
    };

function describeClusterIp(details: ClusterIpProblem): string {
  switch (details.problem) {
    case 'external-name':
      return `a Service of type ExternalName has no cluster IP: leave ${details.field} out, or write another type`;
    case 'headless':
      return `clusterIP is None, and type is ${details.type}: a headless Service has no ports outside the cluster; write type: ClusterIP, or no clusterIP`;
    case 'too-many':
      return 'clusterIPs holds one address, or one of each family';
    case 'contradiction':
      return `clusterIPs begins with ${quote(details.clusterIPs)}, but clusterIP is ${quote(details.clusterIP)}: make them the same`;
    case 'none':
      return `clusterIP is ${quote(details.value)}: ${details.isFirst ? 'write None' : 'None stands alone'}`;
    case 'other-family':
      return `${quote(details.value)} is not an ${details.family} address, which ipFamilies[${details.index}] requires`;
  }
}

type FamilyProblem =
  ShapeProblem | { readonly problem: 'twice'; readonly family: 'IPv4' | 'IPv6' } | { readonly problem: 'single-stack' };

function describeFamily(details: FamilyProblem): string {
  switch (details.problem) {
    case 'twice':
      return `ipFamilies names ${details.family} twice: write each family once`;
    case 'single-stack':
      return 'ipFamilyPolicy is SingleStack, and ipFamilies names two: write PreferDualStack or RequireDualStack';
    default:
      return describeShape(details);
  }
}

/** The kind of Service for which a field means nothing. */
export type IgnoredFieldReason =
  | { readonly reason: 'type' | 'no-external-addresses'; readonly type: string }
  | { readonly reason: 'no-local-load-balancer' };

type IgnoredField = IgnoredFieldReason & { readonly field: string };

function describeIgnored(details: IgnoredField): string {
  return `${details.field} means nothing for a Service ${describeKind(details)}, and the API server refuses it: leave it out`;
}

function describeKind(details: IgnoredField): string {
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
type DuplicatePort =
  | {
      readonly problem: 'value';
      readonly field: 'name' | 'port' | 'nodePort';
      readonly value: string;
      readonly first: number;
    }
  | { readonly problem: 'unnamed'; readonly index: number; readonly protocol: string; readonly first: number }
  | {
      readonly problem: 'slice-port';
      readonly index: number;
      /** '' where it has none. */
      readonly name: string;
      readonly first: number;
      readonly sameProtocol: boolean;
    };

function describeDuplicatePort(details: DuplicatePort): string {
  switch (details.problem) {
    case 'value':
      return `${details.field} ${details.value} is already used by ports[${details.first}]`;
    case 'unnamed':
      return `ports[${details.index}] has no name, nor has ports[${details.first}] of ${details.protocol}: kube-proxy keeps one of them; name both`;
    case 'slice-port': {
      const what = details.name === '' ? 'has no name' : `is named ${details.name}`;
      const other = details.sameProtocol ? 'the same' : 'another';
      return `ports[${details.index}] ${what}, like ports[${details.first}] of ${other} protocol: the API server accepts each name once`;
    }
  }
}

/** Why a packet to a Service port would need another port on its way. */
export type PortChange =
  | { readonly reason: 'target-port'; readonly servicePort: string; readonly port: number; readonly targetPort: number }
  | { readonly reason: 'node-port'; readonly servicePort: string; readonly nodePort: number };

/** The same in words. */
export function describePortChange(change: PortChange): string {
  switch (change.reason) {
    case 'target-port':
      return `${change.servicePort} has port ${change.port} and its endpoints port ${change.targetPort}: make them equal`;
    case 'node-port':
      return `${change.servicePort} has node port ${change.nodePort}: use type ClusterIP, or allocateLoadBalancerNodePorts: false with type LoadBalancer`;
  }
}

/** What is wrong with Services, their ports and kpc's annotations of them. */
export const serviceDiagnostics = {
  'address-conflict': {
    severity: 'warning',
    meaning: 'two Service ports claim the same address, port and protocol',
    words: ({
      what,
      holder,
      rival,
    }: {
      /** "10.96.0.1:80/TCP" or "node port 30080/TCP". */
      readonly what: string;
      /** The Service port that gets it. */
      readonly holder: string;
      readonly rival: string;
    }) => `${what} is claimed by ${holder} and ${rival}: ${holder} gets it, in every run`,
  },
  'bad-annotation': {
    severity: 'error',
    meaning: "an annotation of kpc's own has a value that it does not take",
    words: ({
      annotation,
      value,
      known,
    }: {
      readonly annotation: string;
      readonly value: string;
      readonly known: readonly string[];
    }) => `${annotation} is "${value}": write one of ${known.join(', ')}`,
  },
  'bad-cluster-ips': {
    severity: 'error',
    meaning: 'clusterIP and clusterIPs contradict each other, the families or the type of the Service',
    words: describeClusterIp,
  },
  'bad-ip-family': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: FamilyProblem) => (problem === 'single-stack' ? 'warning' : 'error'),
    },
    meaning: 'ipFamilies or ipFamilyPolicy has a value that it does not take, or they contradict each other',
    words: describeFamily,
  },
  'bad-traffic-distribution': {
    severity: 'warning',
    meaning: 'trafficDistribution is not a value that Kubernetes knows',
    words: ({ value, hint }: { readonly value: string; /** What to write. */ readonly hint: string }) =>
      `trafficDistribution is ${quote(value)}, which Kubernetes v1.36 does not know: write ${hint}`,
  },
  'duplicate-port': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: DuplicatePort) => (problem === 'slice-port' ? 'warning' : 'error'),
    },
    meaning: 'two ports of one object have the same name or number',
    words: describeDuplicatePort,
  },
  'forwarding-changes-port': {
    severity: 'error',
    meaning: 'a Service asks for a forwarding method that cannot change the port, but its ports differ',
    words: ({ method, change }: { readonly method: string; readonly change: PortChange }) =>
      `kpc.dev/ipvs-forwarding-method is "${method}", which cannot change a port, but ${describePortChange(change)}`,
  },
  'ignored-field': {
    severity: 'warning',
    meaning: 'a field means nothing for a Service of this type, and the API server refuses it',
    words: describeIgnored,
  },
  'long-comment': {
    severity: 'warning',
    meaning: 'the names of a Service port are too long for an nft comment: kube-proxy could program nothing',
    words: ({
      servicePort,
      lack,
      limit,
    }: {
      readonly servicePort: string;
      /** What the Service lacks on the nodes where kube-proxy writes the comment. */
      readonly lack: 'no-endpoints' | 'no-local-endpoints';
      readonly limit: number;
    }) =>
      `${servicePort}: kube-proxy writes this name of ${servicePort.length} bytes as a comment on nodes where the Service has ${lack === 'no-endpoints' ? 'no endpoints' : 'no local endpoints'}, but nft takes ${limit} and refuses all rules with it; kpc cuts the comment. Shorten the names`,
  },
  'missing-cluster-ip': {
    severity: 'warning',
    meaning: 'a Service has clusterIPs, but no clusterIP',
    words: ({ first }: { readonly first: string }) =>
      `the API server accepts clusterIPs only with a clusterIP: add clusterIP: ${first}`,
  },
  'missing-ip-families': {
    severity: 'warning',
    meaning: 'a Service has more clusterIPs than ipFamilies: kube-proxy takes only the first address',
    words: ({ families }: { readonly families: number }) =>
      `kube-proxy takes only the first of clusterIPs, because there ${families > 0 ? 'is only one family in ipFamilies' : 'are no ipFamilies'}`,
  },
  'no-ports': {
    severity: 'warning',
    meaning: 'a Service has no ports, and kube-proxy programs nothing for it',
    words: () => 'kube-proxy programs nothing for this Service: it has no ports',
  },
  'stale-ingress': {
    severity: 'warning',
    meaning: 'a Service that is not of type LoadBalancer has load balancer addresses in its status',
    words: ({ type }: { readonly type: string }) =>
      `status has load balancer addresses, and type is ${type}: kube-proxy serves them anyway; remove them if the load balancer is gone`,
  },
  'too-large': {
    severity: 'error',
    meaning: 'ports, endpoints and addresses multiply to more rules than kpc compiles',
    words: ({
      lines,
      limit,
      service,
      factors,
    }: {
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
    }) =>
      `the input comes to about ${lines} rules, but the limit for an input of this size is ${limit}: Service ${service} has ${factors.ports} ports, ${factors.pairs} pairs of a port and an endpoint, ${factors.addresses} addresses, ${factors.sourceRanges} source ranges`,
  },
  'unloadable-range': {
    severity: 'warning',
    meaning: 'a source range has prefix length 0, which no ipset takes',
    words: ({
      servicePort,
      range,
      family,
    }: {
      readonly servicePort: string;
      readonly range: string;
      readonly family: 'ipv4' | 'ipv6';
    }) =>
      `${servicePort}: no ipset takes the source range ${range}: kube-proxy of this release goes on without it and lets no client in, and ipset.restore does not load; write ${family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1'}`,
  },
  'unnamed-port': {
    severity: 'warning',
    meaning: 'a port has no name, though the object has several ports',
    words: () => 'a port without a name: each needs one where there are several',
  },
} satisfies DiagnosticTable;
