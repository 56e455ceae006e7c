import { count, joinWords, quote, printable } from '../../base/printable.ts';
import { familyNames, joinHostPort } from '../../kernel/address.ts';
import { announcedEndWords } from './behaviours.ts';
import { byCase, type WordsOf, nameSome } from './rows.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import {
  type Assumed,
  type AssumedValues,
  type DualStack,
  type Likely,
  type RangedValue,
  mayBeUnseen,
  type serviceFindings,
} from '../../base/findings/services.ts';

/** Names of the values and objects that a cluster has and manifests may lack. */
export const valueNames: Readonly<Record<AssumedValues['what'] | 'externalIP', string>> = {
  clusterIP: 'cluster IP',
  nodePort: 'node port',
  healthCheckNodePort: 'health check node port',
  loadBalancerIP: 'load balancer address',
  externalIP: 'external IP',
  readyPod: 'ready Pod',
  Node: 'Node',
  clusterCIDR: 'clusterCIDR',
};

export function countValues(what: AssumedValues['what'], number: number): string {
  const name = valueNames[what];
  return count(number, name, `${name}${name.endsWith('s') ? 'es' : 's'}`);
}

const asTheClusterHasThem = 'give the objects as the cluster has them (kubectl get svc,endpointslices -A -o yaml)';

function assumedWords({ values, dualStack, nodes, unplaced, isDefault }: Assumed): string {
  const counts = values.map(({ what, count: number, from }) => {
    if (what === 'clusterCIDR') return `${what} ${from.join(',')}`;
    return `${countValues(what, number)}${from.length === 0 ? '' : ` from ${nameSome(from)}`}`;
  });
  const named = nodes.length === 0 ? '' : ` (${nameSome(nodes)})`;
  const both = dualStack ? `, a dual-stack cluster (as ${describeDualStack(dualStack)})` : '';
  const way = isDefault ? '; --no-assume turns this off' : '';
  return `assumed, because the input lacks them: ${counts.join(', ')}${named}${both}${describeUnplaced(unplaced)}${way}`;
}

function describeUnplaced(workloads: readonly string[]): string {
  if (workloads.length === 0) return '';
  return `, and a Node that fits the nodeSelector or affinity of ${printable(nameSome(workloads))}`;
}

function describeDualStack(reason: DualStack): string {
  const name = printable(reason.name);
  return reason.by === 'side' ? `${name} is dual-stack` : `Service ${name} needs ${familyNames[reason.family]}`;
}

const serviceNameLabel = 'kubernetes.io/service-name';

function likelyCause(likely: Likely): string | undefined {
  const { near, elsewhere, lacking, maker } = likely;
  if (near) return `did you mean ${printable(near.label)}, as ${printable(near.owner)} has?`;
  if (elsewhere !== undefined)
    return `${printable(elsewhere)} has these labels, but a Service selects only Pods of its own namespace`;
  if (lacking) {
    if (lacking.isOnOwner)
      return `${printable(lacking.owner)} itself has ${printable(lacking.label)}, but its Pods do not: add the label to the Pod template`;
    const lacks = `${printable(lacking.owner)} has all of these labels except ${printable(lacking.label)}`;
    return mayBeUnseen(likely)
      ? `${lacks}: add the label to the template, unless a program sets it at run time`
      : lacks;
  }
  return (
    maker && `compare the selector with the labels of the Pods, unless ${printable(maker)} makes Pods with these labels`
  );
}

const ofEachFamily = 'range of each family with --service-cluster-ip-range';

/** For each kind of value that comes from a range: the value's name, and the range to name instead if this one is used up. */
const rangedValues: Readonly<Record<RangedValue, readonly [value: string, help: string]>> = {
  clusterIP: [valueNames.clusterIP, 'larger range with --service-cluster-ip-range'],
  nodePort: [valueNames.nodePort, 'larger range with --service-node-port-range'],
  loadBalancerIP: [valueNames.loadBalancerIP, 'larger range with --load-balancer-ip-range'],
  podIP: ['address', 'larger network'],
  ipv4: ['IPv4 address', ofEachFamily],
  ipv6: ['IPv6 address', ofEachFamily],
};

/** Returns "no EndpointSlice or Endpoints of shop/web has a TCP port named http". */
export function unknownPortWords({ of, service, name, protocol }: ArgumentsOf<'unknown-port'>): string {
  const owner =
    of === 'pods' ? `container of the Pods that ${service} selects` : `EndpointSlice or Endpoints of ${service}`;
  return `no ${owner} has a ${protocol} port ${name === '' ? 'without a name' : `named ${printable(name)}`}`;
}

/** Words for problems with Services, their ports and endpoints, and with values that no cluster has assigned yet. */
export const serviceWords: WordsOf<typeof serviceFindings> = {
  'address-conflict': (details) => {
    const { address, port, protocol, holder, rival, isRefused } = details;
    const socket = address === undefined ? `node port ${port}` : joinHostPort(address, port);
    const claimed = `${socket}/${protocol} is claimed by ${holder} and ${rival}`;
    if (!isRefused) {
      const so = `kpc gives it to ${holder}, kube-proxy to whichever it programs last`;
      return [`${claimed}: ${so}`, 'change the address or port of one of them'];
    }
    return [
      `${claimed}: the API server refuses the second; kpc gives it to ${holder}`,
      `change or remove the ${address === undefined ? 'nodePort' : 'clusterIP'} of one of them`,
    ];
  },
  'duplicate-port': (details) => [
    details.value === ''
      ? `neither this port nor ports[${details.first}] has a name`
      : `${details.field} ${details.value} is already used by ports[${details.first}]`,
    `give each port its own ${details.field}`,
  ],
  'external-ips': ({ services }) => [
    `externalIPs of ${nameSome(services)}: ${announcedEndWords('external-ips')}`,
    'give the Services the address of a load balancer (MetalLB, kube-vip) or a Gateway; "kpc migrate --to-kubernetes-version" shows what breaks',
  ],
  'forwarding-changes-port': ({ method, label, ...change }) => {
    const wrong = `kpc.dev/ipvs-forwarding-method is "${method}", which cannot change a port, but ${label} has`;
    return 'nodePort' in change
      ? [
          `${wrong} node port ${change.nodePort}`,
          'use type ClusterIP, or allocateLoadBalancerNodePorts: false with type LoadBalancer',
        ]
      : [`${wrong} port ${change.port} and its endpoints port ${change.target}`, 'make the two ports equal'];
  },
  'ignored-field': ({ field, needs, clearedFrom }) => [
    `the API server ${clearedFrom === undefined ? `refuses ${field} here` : `of ${clearedFrom} or later clears ${field} here`}, because it needs ${needs}`,
    'remove it',
  ],
  'long-comment': ({ servicePort, lack, limit }) => [
    `${servicePort}: where the Service has ${lack.replaceAll('-', ' ')}, nft refuses all of kube-proxy's rules, because this ${servicePort.length}-byte name becomes a comment and nft allows ${limit} bytes; kpc truncates it`,
    'shorten the names',
  ],
  'missing-cluster-ip': ({ first }) => [
    'the API server accepts clusterIPs only with a clusterIP',
    `add clusterIP: ${first}`,
  ],
  'missing-ip-families': ({ families }) => [
    `kube-proxy uses only the first of clusterIPs, because ipFamilies ${families > 0 ? 'names only one family' : 'is missing'}`,
    'name the family of each address in ipFamilies',
  ],
  'node-address': ({ service, address, node: owner }) => [
    `${service} has the address ${address} of Node ${owner}: IPVS mode puts it on kube-ipvs0 of every node, so other nodes cannot reach ${owner}, its kubelet or its API server at that address`,
    "use a node port, another mode, or an address that is not a node's",
  ],
  'no-ports': 'kube-proxy programs nothing for this Service, because it has no ports',
  'too-large': ({ lines, limit, service, factors }) =>
    `the input makes about ${lines} rules, over the limit of ${limit} for its size: Service ${service} has ${factors.ports} ports, ${factors.pairs} pairs of a port and an endpoint, ${factors.addresses} addresses, ${factors.sourceRanges} source ranges`,
  'unloadable-range': (details) => [
    `${details.servicePort}: ipset refuses source range ${details.range}: this release's kube-proxy skips it, so no client gets in, and ipset.restore fails to load`,
    `write ${details.family === 'ipv4' ? '0.0.0.0/1 and 128.0.0.0/1' : '::/1 and 8000::/1'}`,
  ],
  'unnamed-port': ['this port has no name', 'name each port if there are several'],
  assumed: assumedWords,
  'not-assigned': byCase('field', {
    clusterIP: ({ service }) => [
      `${service}: kube-proxy skips this Service, because it has no clusterIP yet`,
      asTheClusterHasThem,
      'let kpc choose with --service-cluster-ip-range',
    ],

    nodePort: ({ service, ports }) => [
      `${service}: kube-proxy opens no node port for ${ports.join(', ')}, because there is no nodePort yet`,
      asTheClusterHasThem,
      'let kpc choose with --service-node-port-range',
    ],
    healthCheckNodePort: ({ service }) => [
      `${service}: load balancers cannot check this Service's health, because there is no healthCheckNodePort yet`,
      asTheClusterHasThem,
      'let kpc choose with --service-node-port-range',
    ],
  }),
  'no-load-balancer-ip': ({ services }) => {
    const [have, owner] = services.length === 1 ? ['has', 'its load balancer'] : ['have', 'their load balancers'];
    return [
      `${count(services.length, 'Service')} of type LoadBalancer ${have} no address yet, so kube-proxy has no rules for ${owner}: ${nameSome(services)}`,
      'let kpc choose with --load-balancer-ip-range',
    ];
  },
  'other-load-balancer-ip': ({ service, ranges, asked, holder }) =>
    holder === undefined
      ? [
          `${service}: loadBalancerIP ${asked} is not available from ${ranges.join(', ')}: kpc chooses another address`,
          'name a range that holds it with --load-balancer-ip-range',
        ]
      : [
          `${service}: loadBalancerIP ${asked} is taken by ${holder}: kpc chooses another address`,
          'give one of them another address; Services share an address only if they request it with different ports',
        ],
  'range-is-full': ({ what, service, pods = [], ranges }) => {
    const [value, help] = rangedValues[what];
    return [`${service ?? nameSome(pods)}: no ${value} of ${nameSome(ranges)} is free`, `name a ${help}`];
  },
  'assumed-endpoints': ({ pods, workloads, unplaced }) => {
    const which = pods === 1 ? '1 ready Pod and its address are' : `${pods} ready Pods and their addresses are`;
    return `${which} assumed: ${nameSome(workloads)}${describeUnplaced(unplaced)}; manifest.json in a bundle lists them all`;
  },
  'empty-selector': ({ service }) => [
    `the selector of ${service} is empty: kpc selects all Pods of the namespace, but the API server drops an empty selector`,
    'add labels',
    'remove it',
  ],
  'endpoints-from-pods': ({ services, kept }) => {
    const which = services.length === 1 ? nameSome(services) : `${services.length} Services (${nameSome(services)})`;
    const made = `the endpoints of ${which} are made from the Pods in the input, as the endpointslice controller makes them`;
    const keep = `${kept} ${kept === 1 ? 'Service uses' : 'Services use'} the EndpointSlices or Endpoints in the input`;
    return [...(services.length > 0 ? [made] : []), ...(kept > 0 ? [keep] : [])].join('; ');
  },
  'extra-addresses': ({ index, count: number }) => [
    `kube-proxy uses only the first of the ${number} addresses of endpoints[${index}]`,
    'write an endpoint for each address',
  ],
  'no-endpoints-given': (details) => {
    const { services, selecting, hasWorkloads } = details;
    const names = nameSome(services);
    return [
      selecting === 1
        ? `the input holds no EndpointSlice or Endpoints for ${names}, so the compiled rules refuse all connections to it`
        : `the input holds no EndpointSlices or Endpoints for ${services.length} of ${selecting} Services with a selector (${names}), so the compiled rules refuse all connections to them`,
      'add them (kubectl get endpointslices -A -o yaml)',
      hasWorkloads ? "assume the input's workloads have ready Pods: --assume-endpoints" : undefined,
    ];
  },
  'no-pod-address': byCase('problem', {
    'no-network': [
      'cannot assume endpoints: the Pod network is unknown',
      'name it, as in --assume-endpoints=10.244.0.0/16, or with --cluster-cidr',
      'give Nodes with podCIDRs',
    ],
    'no-network-of-family': ({ family }) => [
      `assumed Pods have no ${familyNames[family]} address, though Services have`,
      'name a network of each family, such as --assume-endpoints=10.244.0.0/16,fd00:10:244::/56',
    ],
    'host-network': ({ pods }) => [
      `cannot assume ${nameSome(pods)}: these Pods use the addresses of their Nodes, but the input holds no Nodes`,
      'add the Nodes (kubectl get nodes -o yaml)',
    ],
  }),
  'no-node-fits': ({ services, owner, wanted }) => [
    `no Node has ${printable(wanted)}, so the Pods of ${printable(owner)} stay Pending and are not endpoints of ${printable(nameSome(services))}`,
    'correct its nodeSelector or affinity',
    'give all Nodes (kubectl get nodes -o yaml)',
  ],
  'disagreeing-slices': ({ service, slices, endpoints }) => [
    `${joinWords(slices.map(printable), 'and')} of ${service} disagree about ${nameSome(endpoints)}: which of the two kube-proxy uses is chance, and kpc always chooses by the names of the slices`,
    'remove the outdated slice, or the endpoint from it',
  ],
  'no-such-service': ({ services }) => [
    `the input holds EndpointSlices or Endpoints for ${printable(nameSome(services))}, but no such ${services.length === 1 ? 'Service' : 'Services'}, so they are not used`,
    'add the Service',
    'remove them',
  ],
  'selects-nothing': ({ services, selector, isStale = false, ...likely }) => {
    const [it, has] = services.length === 1 ? ['it', 'has'] : ['they', 'have'];
    const so = isStale
      ? ', but its EndpointSlices still list endpoints: the controller will remove them'
      : mayBeUnseen(likely)
        ? ''
        : `, so ${it} ${has} no endpoints`;
    return [
      services.length === 1
        ? `${nameSome(services)} matches no Pod in the input (${printable(selector)})${so}`
        : `${services.length} Services (${nameSome(services)}) match no Pod in the input${so}`,
      likelyCause(likely),
    ];
  },
  'slice-without-service': ({ service }) => [
    `kube-proxy skips this EndpointSlice: ${service === undefined ? `it has no label ${serviceNameLabel}` : `no Service can have the name ${quote(service)}`}`,
    `write the name of its Service as the label ${serviceNameLabel}`,
  ],
  'too-many': byCase('object', {
    EndpointSlice: ({ field, count: number, limit }) => [
      `the API server refuses this EndpointSlice: it has ${number} ${field}, but ${limit} are allowed`,
      'split it',
    ],
    Endpoints: ({ field, count: number, limit }) => [
      `the Endpoints object has ${number} ${field} at this port, but the control plane mirrors only ${limit}: ready ones first, in text order`,
      'write EndpointSlices instead',
    ],
  }),
  'too-many-pods': ({ of, count: number, limit, largest, most }) =>
    `the ${of} in the input add up to ${number} Pods, but the limit is ${limit}: ${largest} alone has ${most}`,
  'unknown-port': (details) => {
    const { name, port, found } = details;
    return [
      `${unknownPortWords(details)}, so the Service port ${port} has no endpoints`,
      found.length === 0
        ? name === ''
          ? 'they have no ports'
          : 'none of their ports has a name'
        : `their ports: ${printable(nameSome(found))}`,
    ];
  },
};
