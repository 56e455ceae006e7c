import { skippedBecause } from '../words/calls.ts';
import { selectorWords } from '../../cluster/objects.ts';
import { assignedTexts } from '../../cluster/assign-addresses.ts';
import { isPlacedByKpc, portAddresses, type ShownPort } from '../../cluster/model.ts';
import type { UnboundHints } from '../../cluster/endpoint-choice.ts';
import type { LocalTraffic, MasqueradedClients } from '../../cluster/plan-masquerade.ts';
import { count, fitRows, formatCount, joinCells } from '../../base/printable.ts';
import { familyNames } from '../../kernel/address.ts';
import type { Location } from '../../kernel/place.ts';
import { addedRules, describePresent, tableWords } from '../changes.ts';
import type {
  EndpointDescription,
  KernelItem,
  PortDescription,
  PortInFamily,
  ServiceDescription,
} from '../../ask/describe/describe-services.ts';
import { cutBlock, lines, section, type Block } from '../lines.ts';
import { addressWords, listPolicies, type WriteValue } from '../port-facts.ts';
import type { DecompiledPort, Masquerade } from '../../snapshot/decompiled-port.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import type { SharedSubject } from '../../ask/describe/find-items.ts';
import { faultWords } from '../way/lack.ts';
import { placeWithout } from '../way/stop.ts';
import type { Because, PortRole } from '../../ask/describe/find-ports.ts';

/** `limit`: the most lines of a list to print. `hasRules`: whether to show kernel objects. */
export interface NodeWords {
  readonly hasRules: boolean;
  readonly node: string;
  readonly limit: number;
  readonly width?: number | undefined;
}

export const rulesHint = '--rules shows what is in the kernel';

export function nodeWords({ node: { name }, anyOf, assumed }: CompiledSnapshot): string {
  if (name === '') return anyOf ? 'one node or another' : 'a node without a name';
  return assumed.node ? `${name} (assumed)` : name;
}

export function describeServiceInWords(
  description: ServiceDescription,
  because: readonly Because[],
  words: NodeWords,
): Block {
  const { service, type, skipped, selector, place, ports, dns, environment, clusterIPs, assumed } = description;
  const mark = (value: string, port?: string): string =>
    assumed && assignedTexts(assumed, port).includes(value) ? `${value} (assumed)` : value;
  const names = dns.map(({ name, type: record, value }) => `${name} ${record} ${value}`);
  const variables = words.hasRules ? environment.map(({ name, value }) => `${name}=${value}`) : [];
  const where = `containers in namespace ${service.split('/')[0] ?? ''} created after this Service`;
  return [
    ...lines('heading', 0, `Service ${service}${at(place)}`),
    ...plain(
      ...because.map(describeBecause),
      `type ${type}`,
      skipped && `kube-proxy programs nothing: the Service ${skippedBecause[skipped]}`,
      selector && `selector ${selectorWords(selector)}`,
      clusterIPs.length > 0 && `cluster IP ${clusterIPs.map((text) => mark(text)).join(', ')}`,
    ),
    ...ports.flatMap((port) => {
      const name = port.families[0]?.port.portName;
      return portLines(port, words, (value) => mark(value, name));
    }),
    ...section('DNS names, as pods see them', plain(...names), words.limit),
    ...section(`Environment variables of ${where}`, plain(...variables), words.limit),
  ];
}

/** Tells how the text asked about relates to the Service. Undefined if it names the Service itself. */
function describeBecause(because: Because): string | undefined {
  switch (because.kind) {
    case 'endpoint':
      return `this is its endpoint ${because.endpoint}`;
    case 'chain':
      return `${because.chain} is ${because.to === undefined ? 'one of its chains' : `its chain for endpoint ${because.to}`}`;
    case 'affinity-set':
      return `${because.set} is the set of the clients of ${because.endpoint === undefined ? 'one of its endpoints' : `endpoint ${because.endpoint}`}`;
    case 'rule':
      return `this is rule ${because.number} of chain ${because.chain} (${tableWords(because.family, because.table)})`;
    case 'rule-elsewhere':
      return `a rule of chain ${because.chain} for this Service, which this node does not have`;
    default:
      return roleWords[because.kind];
  }
}

const roleWords: { readonly [K in Exclude<PortRole['kind'], 'endpoint'>]: string | undefined } = {
  name: undefined,
  'cluster-ip': 'this is its cluster IP',
  'external-ip': 'this is one of its external IPs',
  'load-balancer-ip': "this is its load balancer's address",
  unknown: 'this is one of its addresses',
  port: 'this is its port',
  'node-port': 'this is its node port',
  'health-check-node-port': 'this is its health check node port',
};

function portLines(
  { label, place, targetPort, problems = [], families, kernel }: PortDescription,
  words: NodeWords,
  mark: WriteValue,
): Block {
  const items = words.hasRules ? kernel.flatMap(kernelItemLines) : [];
  return [
    ...lines('heading', 0, `Port ${label}${at(place)}`),
    ...plain(targetPort !== undefined && `target port ${targetPort}`),
    ...lines('bad', 1, ...problems.map(faultWords)),
    ...families.flatMap((each) => familyLines(each, families.length > 1, words, mark)),
    ...section('In the kernel', plain(...items), words.limit * 2),
  ];
}

function familyLines(use: PortInFamily, dual: boolean, words: NodeWords, mark: WriteValue): Block {
  const { port, endpoints, fallback, masquerade, unboundHints } = use;
  const addresses = portAddresses(port).map(({ kind, address: { text } }) =>
    kind === 'cluster-ip' ? `${text} port ${port.port}/${port.protocol}` : `${addressWords[kind]} ${mark(text)}`,
  );
  if (port.nodePort > 0) addresses.push(`node port ${mark(String(port.nodePort))}`);
  const family = dual ? `${familyNames[port.family]} ` : '';
  return [
    ...plain(addresses.join(', ')),
    ...pathLines(port, fallback, masquerade, mark),
    ...plain(
      unboundHints && hintWords(unboundHints),
      `${count(endpoints.length, `${family}endpoint`)}${usedEndpointsWords(endpoints)} on ${words.node}`,
    ),
    ...endpointLines(endpoints, words),
  ];
}

/** Tells how many endpoints the node uses, separately for each policy if the numbers differ. */
function usedEndpointsWords(endpoints: readonly EndpointDescription[]): string {
  const used = (policy: 'cluster' | 'local'): string =>
    formatCount(endpoints.filter((endpoint) => isUse(endpoint[policy])).length);
  const differ = endpoints.some(({ cluster, local }) => cluster && local && isUse(cluster) !== isUse(local));
  if (differ) return `: policy Cluster uses ${used('cluster')}, policy Local ${used('local')}`;
  return `, ${formatCount(endpoints.filter(isUsedInWords).length)} used`;
}

/** Describes a Service port from a dump, as far as the state shows it. */
export function describeDecompiled(port: DecompiledPort, limit: number): Block {
  const endpoints = (port.endpoints ?? []).map(({ label, takes, draining }) => {
    const use = takes.length > 0 ? `  for policy ${takes.join(' and ')}` : '';
    return label + (draining ? '  weight 0: no new connections' : use);
  });
  // The port is unknown if a rule matches several ports, or every port except one.
  const number = port.port === undefined ? `${port.protocol}, port unknown` : `port ${port.port}/${port.protocol}`;
  return [
    ...lines('heading', 0, port.label),
    ...plain(
      ...portAddresses(port).map(({ kind, address }) => `${addressWords[kind]} ${address.text} ${number}`),
      Boolean(port.nodePort) && `node port ${port.nodePort}/${port.protocol}`,
    ),
    ...pathLines(port, port.fallback, port.masquerade),
    ...plain(headEndpoints(port)),
    ...cutBlock(lines('plain', 2, ...endpoints), limit, 2),
  ];
}

function headEndpoints({
  endpoints,
  fallback,
  service,
  internalPolicyLocal,
  scheduler,
  proxyPort,
}: DecompiledPort): string {
  if (proxyPort !== undefined && !endpoints)
    return `endpoints: unknown, because kube-proxy itself accepts connections, at port ${proxyPort}, and chooses one`;
  if (endpoints) return endpoints.length === 0 ? 'no endpoints' : `endpoints (${formatCount(endpoints.length)})`;
  if (fallback === 'local-drops') return 'endpoints: unknown, because the rules do not show endpoints on other nodes';
  // Names the kind of object that the dump lacks and that would lead to endpoints.
  const lacking = service === undefined ? 'the virtual servers' : 'the objects that lead to them';
  const known = scheduler === undefined ? lacking : 'the real servers';
  return `endpoints: unknown, because the dump does not show ${internalPolicyLocal === undefined ? known : 'all the chains that lead to them'}`;
}

/** Lists the policies and source ranges. Also says what happens without an endpoint, and which clients are masqueraded. */
function pathLines(
  port: ShownPort,
  fallback: PortInFamily['fallback'],
  masquerade: Masquerade = {},
  mark?: WriteValue,
): Block {
  const masqueraded = [
    ...(masquerade.clusterIP ? [`traffic to the cluster IP${clientWords(masquerade.clusterIP)}`] : []),
    ...(masquerade.external ? [`external traffic${clientWords(masquerade.external)}`] : []),
  ];
  const policies = listPolicies(port, mark).map(({ text }) => text);
  return [
    ...plain(policies.join(', ')),
    ...lines('bad', 1, fallback && fallbackWords(fallback, port)),
    ...plain(masqueraded.length > 0 && `masqueraded: ${masqueraded.join(', ')}`),
  ];
}

function clientWords(clients: MasqueradedClients): string {
  switch (clients.kind) {
    case 'all':
      return '';
    case 'node':
      return ' of the node itself';
    case 'all-but-pods':
      return ` that is not from ${podWords(clients.pods)}`;
  }
}

/** Tells how kube-proxy recognises the node's pods: "10.244.0.0/24" or "interface cni0". */
export function podWords(pods: LocalTraffic): string {
  switch (pods.kind) {
    case 'from-network':
      return pods.network.text;
    case 'from-interface':
      return `interface ${pods.name}`;
    case 'from-interfaces':
      return `interface ${pods.prefix}*`;
  }
}

function fallbackWords(fallback: NonNullable<PortInFamily['fallback']>, port: ShownPort): string {
  switch (fallback) {
    case 'no-endpoints-given':
      return 'no endpoints were given: the input holds no EndpointSlice or Endpoints for this Service';
    case 'no-endpoints':
      return 'no endpoint can accept connections, so kube-proxy refuses them';
    case 'local-drops':
      return isPlacedByKpc(port) && port.service !== undefined
        ? `traffic with policy Local is dropped ${placeWithout(port.service)}; no Pod is assumed on this node`
        : 'no endpoint on this node: traffic with policy Local is dropped';
    case 'local-to-all':
      return `no endpoint ${isPlacedByKpc(port) ? 'assumed ' : ''}on this node: in IPVS mode traffic with policy Local goes to endpoints on all nodes`;
  }
}

function hintWords(hints: UnboundHints): string {
  switch (hints.kind) {
    case 'endpoint-without-hint':
      return `zone hints are ignored: endpoint ${hints.endpoint} has none`;
    case 'node-without-zone':
      return 'zone hints are ignored: the node has no label topology.kubernetes.io/zone';
    case 'none-for-zone':
      return `zone hints are ignored: no hint is for zone ${hints.zone}`;
  }
}

/** Formats the endpoints as a table. On a narrow terminal, the last column gets the most space, because it gives the reasons. */
function endpointLines(endpoints: readonly EndpointDescription[], { limit, width }: NodeWords): Block {
  const rows = endpoints.map((endpoint) => {
    const words = `${useWords(endpoint)}${endpoint.assumed ? ' (assumed)' : ''}${at(endpoint.place)}`;
    return [endpoint.endpoint, endpoint.node ?? '', words];
  });
  const room = width === undefined ? undefined : width - 4;
  const fitted = fitRows(rows, { width: room, weights: { 2: 3 }, lists: [0] });
  const block = endpoints.flatMap((endpoint, i) =>
    lines(isUsedInWords(endpoint) ? 'good' : 'dim', 2, joinCells(fitted[i] ?? [])),
  );
  return cutBlock(block, limit, 2);
}

function isUsedInWords({ cluster, local }: EndpointDescription): boolean {
  return isUse(cluster) || isUse(local);
}

function isUse(kind: EndpointDescription['cluster' | 'local']): boolean {
  return kind === 'ready' || kind === 'last-resort' || kind === 'as-hinted' || kind === 'on-its-node';
}

function useWords(endpoint: EndpointDescription): string {
  const { cluster, local } = endpoint;
  if (cluster === undefined || local === undefined || cluster === local) {
    return endpointUseWords(cluster ?? local, endpoint);
  }
  return `for policy Cluster ${endpointUseWords(cluster, endpoint)}; for policy Local ${endpointUseWords(local, endpoint)}`;
}

function endpointUseWords(kind: EndpointDescription['cluster' | 'local'], endpoint: EndpointDescription): string {
  const { condition, nodeHints = [], zoneHints = [] } = endpoint;
  const words: { readonly [K in NonNullable<typeof kind>]: string } = {
    ready: 'used',
    'last-resort': 'used: terminating but still serving, and no endpoint is ready',
    'not-ready': `not used: ${condition}`,
    terminating: 'not used: terminating, and other endpoints are ready',
    'other-node-hinted': `not used: its hints are for ${nodeHints.join(', ')}`,
    'other-zone-hinted': `not used: its hints are for zone ${zoneHints.join(', ')}`,
    'other-node': 'not used: it runs on another node',
    'as-hinted': `used ${nodeHints.length > 0 ? `on ${nodeHints.join(', ')}` : `in zone ${zoneHints.join(', ')}`}`,
    'on-its-node': `used on ${endpoint.node ?? 'its node'}`,
  };
  return kind === undefined ? 'not used' : words[kind];
}

function kernelItemLines({ change, takenBy }: KernelItem): readonly string[] {
  const taken = takenBy === undefined ? '' : `: it belongs to ${takenBy}, which claims it too`;
  const text = describePresent(change, takenBy !== undefined);
  return [`${text}${taken}${at(change.place?.locate())}`, ...(addedRules(change) ?? []).map((rule) => `  ${rule}`)];
}

export function describeSharedInWords({ kind, name, family, table, type, items }: SharedSubject, limit: number): Block {
  const owners = new Set(items.flatMap(({ owner }) => owner ?? []));
  const ofPorts = owners.size === 0 ? '' : `, of ${count(owners.size, 'Service port')}`;
  const where = family && table ? ` (${tableWords(family, table)})` : '';
  const entries = `${name}${where}, ${type ?? ''}: ${count(items.length, 'entry')}${ofPorts}`;
  const title = {
    chain: `Chain ${name}${where}: ${count(items.length, 'rule')}${ofPorts}`,
    set: `Set ${entries}`,
    map: `Map ${entries}`,
    rule: `A rule that every node has, in chain ${name}${where}: it belongs to no Service`,
  }[kind];
  const own = items.flatMap(({ text, owner }) =>
    owner === undefined ? plain(text) : lines('good', 1, `${text}  ${owner}`),
  );
  return [...lines('heading', 0, title), ...cutBlock(own, limit, 1)];
}

function plain(...texts: readonly (string | false | undefined)[]): Block {
  return lines('plain', 1, ...texts);
}

/** Returns "  (svc.yaml:12)", or nothing. */
function at(place: Location | undefined): string {
  return place ? `  (${place.file}:${place.line})` : '';
}
