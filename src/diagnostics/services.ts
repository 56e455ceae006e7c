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
  'address-conflict': row(
    'warning',
    // Without an address it is a node port. kpc gives it to `holder`. `isRefused`: the API server gives it away once.
    (
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
  ),
  'duplicate-port': row(
    severityBy('isOfSlice', 'error', { true: 'warning' }),
    // `first`: index of the port that has it. A slice's names must be unique to the API server, per protocol to kube-proxy.
    (details: Texts<'field' | 'value'> & Numbers<'first'> & { readonly isOfSlice?: true }) => [
      details.value === ''
        ? `this port has no name, nor has ports[${details.first}]`
        : `${details.field} ${details.value} is already used by ports[${details.first}]`,
      `give each port a ${details.field} of its own`,
    ],
  ),
  'external-ips': row('warning', ({ services }: Lists<'services'>) => [
    `externalIPs of ${nameSome(services)}: ${endWords('external-ips')}`,
    'give the Services the address of a load balancer (MetalLB, kube-vip) or a Gateway; "kpc migrate --to-kubernetes-version" shows what breaks',
  ]),
  'forwarding-changes-port': row(
    'error',
    // `wrong` is which port would change.
    ({ method, wrong, help }: Texts<'method' | 'wrong' | 'help'>) => [
      `kpc.dev/ipvs-forwarding-method is "${method}", which cannot change a port, but ${wrong}`,
      help,
    ],
  ),
  'ignored-field': row('warning', ({ field, needs }: Texts<'field' | 'needs'>) => [
    `${field} means nothing here, and the API server refuses it: it needs ${needs}`,
    'leave it out',
  ]),
  'long-comment': row(
    'warning',
    // `lack` is what the Service has not on the nodes where kube-proxy writes the comment.
    ({ servicePort, lack, limit }: Texts<'servicePort' | 'lack'> & Numbers<'limit'>) => [
      `${servicePort}: kube-proxy writes this name of ${servicePort.length} bytes as a comment on nodes where the Service has ${lack.replaceAll('-', ' ')}, but nft takes ${limit} and refuses all rules with it; kpc cuts the comment`,
      'shorten the names',
    ],
  ),
  'missing-cluster-ip': row('warning', ({ first }: Texts<'first'>) => [
    'the API server accepts clusterIPs only with a clusterIP',
    `add clusterIP: ${first}`,
  ]),
  'missing-ip-families': row('warning', ({ families }: Numbers<'families'>) => [
    `kube-proxy takes only the first of clusterIPs, because there ${families > 0 ? 'is only one family in ipFamilies' : 'are no ipFamilies'}`,
    'name the family of each address in ipFamilies',
  ]),
  'node-address': row('warning', ({ service, address, node: owner }: Texts<'service' | 'address' | 'node'>) => [
    `${service} has the address ${address} of Node ${owner}: IPVS mode puts it on kube-ipvs0 of every node, and no other node can reach ${owner} by it any more, kubelet and API server included`,
    'give the Service an address that no node has, or use a node port or another mode',
  ]),
  'no-ports': row('warning', 'kube-proxy programs nothing for this Service: it has no ports'),
  'too-large': row(
    'error',
    ({ lines, limit, service, factors }: TooLarge) =>
      `the input comes to about ${lines} rules, but the limit for an input of this size is ${limit}: Service ${service} has ${factors.ports} ports, ${factors.pairs} pairs of a port and an endpoint, ${factors.addresses} addresses, ${factors.sourceRanges} source ranges`,
  ),
  'unloadable-range': row(
    'warning',
    (details: Texts<'servicePort' | 'range'> & { readonly family: 'ipv4' | 'ipv6' }) => [
      `${details.servicePort}: no ipset takes the source range ${details.range}: kube-proxy of this release goes on without it and lets no client in, and ipset.restore does not load`,
      `write ${details.family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1'}`,
    ],
  ),
  'unnamed-port': row('warning', ['a port without a name', 'name each port if there are several']),
  assumed: row('note', describeAssumed),
  'not-assigned': row(
    'warning',
    wordsBy('field', {
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
  ),
  'no-load-balancer-ip': row(
    'note',
    // All Services that lack an address, sorted.
    ({ services }: Lists<'services'>) => {
      const [have, owner] = services.length === 1 ? ['has', 'its load balancer'] : ['have', 'their load balancers'];
      return [
        `${count(services.length, 'Service')} of type LoadBalancer ${have} no address yet, so kube-proxy has no rules for ${owner}: ${nameSome(services)}`,
        'let kpc choose with --load-balancer-ip-range',
      ];
    },
  ),
  'other-load-balancer-ip': row(
    'warning',
    // `holder` has it, or asks for it with the same port.
    ({
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
  ),
  'range-is-full': row(
    'error',
    // `service` is what needs it: a Service, or Pods. `help` says where to give a larger range.
    ({ what, service, ranges, help }: Texts<'what' | 'service' | 'help'> & Lists<'ranges'>) => [
      `${service}: no ${what} of ${nameSome(ranges)} is free`,
      help,
    ],
  ),
  'assumed-endpoints': row(
    'note',
    // `workloads`: each as "3 of Deployment default/web".
    ({ pods, workloads }: Numbers<'pods'> & Lists<'workloads'>) => {
      const which = pods === 1 ? '1 ready Pod and its address are' : `${pods} ready Pods and their addresses are`;
      return `${which} assumed: ${nameSome(workloads)}; the manifest.json of a bundle lists all`;
    },
  ),
  'empty-selector': row('warning', ({ service }: Texts<'service'>) => [
    `the selector of ${service} is empty: here it takes all Pods of the namespace, but the API server stores it as none`,
    'name labels, or leave it out',
  ]),
  'endpoints-from-pods': row(
    'note',
    // `services` get endpoints made from Pods of the input; `kept` counts those that keep the endpoints in the input.
    ({ services, kept }: Lists<'services'> & Numbers<'kept'>) => {
      const which = services.length === 1 ? nameSome(services) : `${services.length} Services (${nameSome(services)})`;
      const made = `the endpoints of ${which} are made from the Pods in the input, as the endpointslice controller makes them`;
      const keep = `${kept} ${kept === 1 ? 'Service keeps' : 'Services keep'} the EndpointSlices or Endpoints in the input`;
      return [...(services.length > 0 ? [made] : []), ...(kept > 0 ? [keep] : [])].join('; ');
    },
  ),
  'extra-addresses': row('warning', ({ index, count: number }: Numbers<'index' | 'count'>) => [
    `endpoints[${index}] has ${number} addresses: kube-proxy uses only the first`,
    'use one endpoint for each address',
  ]),
  'no-endpoints-given': row(
    'warning',
    // `services` have no endpoints in the input; `selecting` counts the Services with a selector.
    (details: Lists<'services'> & Numbers<'selecting'> & { readonly hasWorkloads: boolean }) => {
      const { services, selecting, hasWorkloads } = details;
      const names = nameSome(services);
      return [
        selecting === 1
          ? `the input holds no EndpointSlice or Endpoints of ${names}: the compiled rules refuse all connections to it`
          : `the input holds no EndpointSlices or Endpoints of ${services.length} of ${selecting} Services with a selector (${names}): the compiled rules refuse all connections to them`,
        `add them (kubectl get endpointslices -A -o yaml)${hasWorkloads ? ", or assume the input's workloads have ready Pods: --assume-endpoints" : ''}`,
      ];
    },
  ),
  'no-pod-address': row(
    severityBy('problem', 'error', { 'host-network': 'warning', 'no-network-of-family': 'warning' }),
    wordsBy('problem', {
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
  ),
  'no-such-service': row('note', ({ services }: Lists<'services'>) => [
    `the input holds EndpointSlices or Endpoints of ${printable(nameSome(services))}, but no such ${services.length === 1 ? 'Service' : 'Services'}: they are not used`,
    'add the Service, or leave them out',
  ]),
  'selects-nothing': row(
    { among: ['warning', 'note'], weigh: (likely: Likely) => (mayBeUnseen(likely) ? 'note' : 'warning') },

    // `selector` is the first Service's, as "app=web".
    ({ services, selector, ...likely }: Lists<'services'> & Texts<'selector'> & Likely) => {
      const [it, has] = services.length === 1 ? ['it', 'has'] : ['they', 'have'];
      const so = mayBeUnseen(likely) ? '' : `, so ${it} ${has} no endpoints`;
      return [
        services.length === 1
          ? `${nameSome(services)} matches no Pod in the input (${printable(selector)})${so}`
          : `${services.length} Services (${nameSome(services)}) match no Pod in the input${so}`,
        likelyCause(likely),
      ];
    },
  ),
  'slice-without-service': row(
    'warning',
    // `service` is the value of the label, if it is not a valid name; undefined without a label.
    ({ service }: { readonly service?: string | undefined }) => [
      `kube-proxy skips this EndpointSlice: ${service === undefined ? `it has no label ${serviceNameLabel}` : `no Service can have the name ${quote(service)}`}`,
      `write the name of its Service as the label ${serviceNameLabel}`,
    ],
  ),
  'too-many': row(
    'warning',
    wordsBy('object', {
      EndpointSlice: ({ field, count: number, limit }: Limited & Texts<'field'>) => [
        `the EndpointSlice has ${number} ${field}, and the API server takes ${limit} in one`,
        'split it into several slices',
      ],
      Endpoints: ({ field, count: number, limit }: Limited & Texts<'field'>) => [
        `the Endpoints object has ${number} ${field} at this port, and the control plane mirrors ${limit}: the ready ones first, sorted as text`,
        'write EndpointSlices instead',
      ],
    }),
  ),
  'too-many-pods': row(
    'error',
    // A Pod counts once for each Service that selects it.
    ({ of, count: number, limit, largest, most }: Limited & Texts<'of' | 'largest'> & Numbers<'most'>) =>
      `the ${of} of the input come to ${number} Pods, and the limit is ${limit}: ${largest} alone has ${most}`,
  ),
  'unknown-port': row(
    'warning',
    // `found`: the existing ports, each as "http/TCP".
    // `service` is whose port it is.
    (details: Texts<'service' | 'owner' | 'protocol' | 'name'> & Numbers<'port'> & Lists<'found'>) => {
      const { owner, protocol, name, port, found } = details;
      const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${printable(name)}`;
      return [
        `${owner} has a ${what}, so the Service port ${port} has no endpoints`,
        found.length === 0
          ? `they have no ${name === '' ? 'ports' : 'port with a name'}`
          : `their ports: ${printable(nameSome(found))}`,
      ];
    },
  ),
} satisfies DiagnosticTable;
