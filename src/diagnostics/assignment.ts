import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/name-some.ts';
import type { DiagnosticTable, Severity } from './table.ts';

const wayOut =
  'give the objects as the cluster has them (kubectl get svc,endpointslices -A -o yaml), or let kpc choose with';

/** The Service, "namespace/name", that lacks something. */
interface Lacking {
  readonly service: string;
}

type ClusterIpLack = Lacking &
  (
    | { readonly problem: 'not-assigned' }
    | {
        readonly problem: 'no-range';
        readonly family: 'ipv4' | 'ipv6';
        /** What the ranges come from. */
        readonly source: 'ServiceCIDR' | '--service-cluster-ip-range';
      }
    | { readonly problem: 'range-is-full'; readonly range: string }
  );

function describeClusterIp(details: ClusterIpLack): string {
  switch (details.problem) {
    case 'not-assigned':
      return `kube-proxy skips this Service, because it has no clusterIP yet: ${wayOut} --service-cluster-ip-range`;
    case 'no-range': {
      const source = details.source === 'ServiceCIDR' ? 'no ServiceCIDR has one' : `${details.source} has none`;
      return `the Service wants an ${details.family === 'ipv4' ? 'IPv4' : 'IPv6'} address, but ${source}`;
    }
    case 'range-is-full':
      return `no address of ${details.range} is free for this Service`;
  }
}

type NodePortLack = Lacking &
  (
    | {
        readonly problem: 'not-assigned';
        /** "80/TCP" each. */
        readonly ports: readonly string[];
      }
    | { readonly problem: 'range-is-full'; readonly first: number; readonly last: number }
  );

function describeNodePort(details: NodePortLack): string {
  switch (details.problem) {
    case 'not-assigned':
      return `kube-proxy opens no node port for ${details.ports.join(', ')}, because there is no nodePort yet: ${wayOut} --service-node-port-range`;
    case 'range-is-full':
      return `no node port from ${details.first} to ${details.last} is free for this Service`;
  }
}

type LoadBalancerLack =
  /** All Services that lack an address, sorted. */
  | { readonly problem: 'not-assigned'; readonly services: readonly string[] }
  | (Lacking & { readonly problem: 'range-is-full'; readonly ranges: readonly string[] })
  | (Lacking & {
      readonly problem: 'not-the-one-asked-for';
      readonly ranges: readonly string[];
      /** What loadBalancerIP is. */
      readonly asked: string;
    });

function describeLoadBalancer(details: LoadBalancerLack): string {
  switch (details.problem) {
    case 'not-assigned': {
      const { services } = details;
      const which = services.length === 1 ? '1 Service' : `${formatCount(services.length)} Services`;
      const [verb, whose] = services.length === 1 ? ['has', 'its load balancer'] : ['have', 'their load balancers'];
      return `${which} of type LoadBalancer ${verb} no address yet, so kube-proxy has no rules for ${whose}: ${nameSome(services)}; let kpc choose with --load-balancer-ip-range`;
    }
    case 'range-is-full':
      return `${details.service}: no address of ${details.ranges.join(', ')} is free for this Service`;
    case 'not-the-one-asked-for':
      return `${details.service}: loadBalancerIP ${details.asked} is not free in ${details.ranges.join(', ')} (--load-balancer-ip-range): kpc chooses another address`;
  }
}

function weighLoadBalancer({ problem }: LoadBalancerLack): Severity {
  switch (problem) {
    case 'not-assigned':
      return 'note';
    case 'range-is-full':
      return 'error';
    case 'not-the-one-asked-for':
      return 'warning';
  }
}

interface OutsideRange {
  readonly field: 'clusterIP' | 'nodePort';
  /** "10.96.0.0/16, fd00::/108", "30000-32767". */
  readonly range: string;
  readonly values: readonly { readonly service: string; readonly value: string | number }[];
}

function describeOutside({ field, range, values }: OutsideRange): string {
  const way = `write one of the range, or name the range of the cluster`;
  const [first] = values;
  if (first && values.length === 1) {
    return `${first.service}: ${field} ${first.value} is outside of the range ${range}, and the API server refuses it: ${way}`;
  }
  const some = nameSome(values.map(({ service, value }) => `${service} ${value}`));
  return `${formatCount(values.length)} values of ${field} are outside of the range ${range}, and the API server refuses them (${some}): ${way}`;
}

/** Values that kpc chose, and the networks that it took them from. */
export interface DrawnValues {
  readonly count: number;
  readonly from: readonly string[];
}

/** What took the place of what manifests from git lack. */
interface Assumed {
  readonly clusterIPs: DrawnValues;
  readonly nodePorts: number;
  readonly loadBalancerIPs: DrawnValues;
  readonly pods: DrawnValues;
  readonly nodes: readonly string[];
  /** How many objects of the input have what only a cluster gives. */
  readonly kept: {
    readonly services: number;
    readonly slices: number;
    readonly pods: number;
    readonly nodes: number;
  };
  /** Whether kpc assumes without being asked to. */
  readonly isDefault: boolean;
}

function describeAssumed({ clusterIPs, nodePorts, loadBalancerIPs, pods, nodes, kept, isDefault }: Assumed): string {
  const values = [
    ...many(clusterIPs.count, 'cluster IP', clusterIPs.from),
    ...many(nodePorts, 'node port'),
    ...many(loadBalancerIPs.count, 'load balancer address', loadBalancerIPs.from, 'load balancer addresses'),
    ...many(pods.count, 'ready Pod', pods.from),
    ...many(nodes.length, 'Node'),
  ];
  const real = [
    ...many(kept.services, 'Service', [], 'Services').map((text) => `${text} with a cluster IP`),
    ...many(kept.slices, 'set of endpoints', [], 'sets of endpoints'),
    ...many(kept.pods, 'Pod'),
    ...many(kept.nodes, 'Node'),
  ];
  const named = nodes.length === 0 ? '' : ` (${nameSome(nodes)})`;
  const stays = real.length === 0 ? '' : `; the input's own values stay: ${real.join(', ')}`;
  const way = isDefault ? '; --no-assume forbids this' : '';
  return `assumed, because the input lacks them: ${values.join(', ')}${named}${stays}${way}`;
}

function many(count: number, one: string, from: readonly string[] = [], more = `${one}s`): readonly string[] {
  if (count === 0) return [];
  return [`${formatCount(count)} ${count === 1 ? one : more}${from.length === 0 ? '' : ` from ${from.join(' and ')}`}`];
}

/** What a cluster would give a Service, and the input lacks. */
export const assignmentDiagnostics = {
  assumed: {
    severity: 'note',
    meaning: 'kpc assumes what manifests from git lack: addresses, node ports, Pods and Nodes',
    words: describeAssumed,
  },
  'no-cluster-ip': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: ClusterIpLack) => (problem === 'not-assigned' ? 'warning' : 'error'),
    },
    meaning: 'a Service has no cluster IP, and kpc has none to give it',
    words: (details: ClusterIpLack) => `${details.service}: ${describeClusterIp(details)}`,
  },
  'no-health-check-port': {
    severity: 'warning',
    meaning: 'a Service has no healthCheckNodePort yet, so load balancers cannot ask for its health',
    words: ({ service }: Lacking) =>
      `${service}: load balancers cannot ask for this Service's health, because there is no healthCheckNodePort yet: ${wayOut} --service-node-port-range`,
  },
  'no-load-balancer-ip': {
    severity: {
      among: ['error', 'warning', 'note'],
      weigh: weighLoadBalancer,
    },
    meaning: 'a load balancer has no address, and kpc has none to give it, or not the one that it asks for',
    words: describeLoadBalancer,
  },
  'no-node-port': {
    severity: {
      among: ['error', 'warning'],
      weigh: ({ problem }: NodePortLack) => (problem === 'not-assigned' ? 'warning' : 'error'),
    },
    meaning: 'a Service has no node port, and kpc has none to give it',
    words: (details: NodePortLack) => `${details.service}: ${describeNodePort(details)}`,
  },
  'outside-range': {
    severity: 'warning',
    meaning: 'a Service has a cluster IP or a node port that the API server has no range for',
    words: describeOutside,
  },
} satisfies DiagnosticTable;
