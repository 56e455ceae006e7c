import { anIP, manifests, aService } from './examples.ts';
import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import { severityBy, wordsBy, type DiagnosticTable, type Words } from './diagnostic-rows.ts';

const asTheClusterHasThem =
  'give the objects as the cluster has them (kubectl get svc,endpointslices -A -o yaml), or let kpc choose with';

/** The Service, "namespace/name", that lacks something. */
interface Lacking {
  readonly service: string;
}

type WithRanges = Lacking & { readonly ranges: readonly string[] };

interface OutsideRange {
  readonly field: 'clusterIP' | 'nodePort';
  /** "10.96.0.0/16, fd00::/108", "30000-32767". */
  readonly range: string;
  readonly values: readonly { readonly service: string; readonly value: string | number }[];
}

function describeOutside({ field, range, values }: OutsideRange): Words {
  const help = 'write one of the range, or name the range of the cluster';
  const [first] = values;
  if (first && values.length === 1) {
    const wrong = `${field} ${first.value} is outside of the range ${range}, and the API server refuses it`;
    return [`${first.service}: ${wrong}`, help];
  }
  const some = nameSome(values.map(({ service, value }) => `${service} ${value}`));
  return [
    `${formatCount(values.length)} values of ${field} are outside of the range ${range}, and the API server refuses them (${some})`,
    help,
  ];
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
      'range-is-full': ({ service, range }: Lacking & { readonly range: string }) => [
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
      'not-assigned': ({ services }: { readonly services: readonly string[] }) => {
        const which = services.length === 1 ? '1 Service' : `${formatCount(services.length)} Services`;
        const [verb, owner] = services.length === 1 ? ['has', 'its load balancer'] : ['have', 'their load balancers'];
        return [
          `${which} of type LoadBalancer ${verb} no address yet, so kube-proxy has no rules for ${owner}: ${nameSome(services)}`,
          'let kpc choose with --load-balancer-ip-range',
        ];
      },
      'range-is-full': ({ service, ranges }: WithRanges) => [
        `${service}: no address of ${ranges.join(', ')} is free for this Service`,
        'name a larger range with --load-balancer-ip-range',
      ],
      /** `asked` is what loadBalancerIP is. */
      'not-the-one-asked-for': ({ service, ranges, asked }: WithRanges & { readonly asked: string }) => [
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
      'not-assigned': ({ service, ports }: Lacking & { readonly ports: readonly string[] }) => [
        `${service}: kube-proxy opens no node port for ${ports.join(', ')}, because there is no nodePort yet`,
        `${asTheClusterHasThem} --service-node-port-range`,
      ],
      'range-is-full': ({ service, first, last }: Lacking & { readonly first: number; readonly last: number }) => [
        `${service}: no node port from ${first} to ${last} is free for this Service`,
        'name a larger range with --service-node-port-range',
      ],
    }),
  },
  'outside-range': {
    severity: 'warning',
    meaning: 'a Service has a cluster IP or a node port that the API server has no range for',
    example: () =>
      manifests(
        aService(`type: NodePort, ${anIP}, ports: [{ port: 80, nodePort: 8080 }]`),
        '--service-node-port-range',
        '30000-32767',
      ),
    words: describeOutside,
  },
} satisfies DiagnosticTable;
