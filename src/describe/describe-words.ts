import { assignedTexts } from '../cluster/assign-addresses.ts';
import type { UnboundHints } from '../cluster/endpoint-choice.ts';
import { count, formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import type { Location } from '../kernel/place.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { tableWords } from '../diff/changes/change-words.ts';
import type { EndpointDescription, PortDescription, PortInFamily, ServiceDescription } from './describe-services.ts';
import { joinHostPort } from '../kernel/address.ts';
import { describeListeners } from '../kube-proxy/node-port-listeners.ts';
import { describeElsewhere } from './unserved-address.ts';
import type { ClosedPort, DeafNodePort } from './find-port.ts';
import type { Because, Finding } from './find-subject.ts';
import type { SharedSubject } from './find-nftables.ts';
import { describePolicies } from '../diff/port-facts.ts';
import type { Masquerade, MasqueradedClients } from './decompiled-port.ts';
import type { KernelItem } from './kernel-items.ts';

/** A line for people; `depth` is how far it is moved in. */
export interface DescriptionLine {
  readonly role: 'heading' | 'plain' | 'dim' | 'good' | 'bad';
  readonly depth: number;
  readonly text: string;
  /** The columns that the text is made of, if it is a row of a table. */
  readonly cells?: readonly string[];
}

/** How a node is called in texts. */
export interface NodeWords {
  readonly node: string;
  readonly limit: number;
}

/** A Service with all that stems from it. */
export function describeServiceInWords(
  description: ServiceDescription,
  because: readonly Because[],
  words: NodeWords,
): readonly DescriptionLine[] {
  const { service, type, place, ports, dns, environment, clusterIPs } = description;
  const mark = markAssumed(description);
  const reasons = because.flatMap((each) => describeBecause(each) ?? []);
  return [
    line('heading', 0, `Service ${service}${at(place)}`),
    ...reasons.map((reason) => line('plain', 1, reason)),
    line('plain', 1, `type ${type}${describeSkipped(description)}`),
    ...(clusterIPs.length > 0 ? [line('plain', 1, `cluster IP ${clusterIPs.map(mark).join(', ')}`)] : []),
    ...ports.flatMap((port) => portLines(port, words, mark)),
    ...section(
      'DNS names, as pods see them',
      dns,
      words.limit,
      ({ name, type: record, value }) => `${name} ${record} ${value}`,
    ),
    ...section(
      `Environment variables of containers in namespace ${service.split('/')[0] ?? ''} created after this Service`,
      environment,
      words.limit,
      ({ name, value }) => `${name}=${value}`,
    ),
  ];
}

function describeSkipped({ skipped }: ServiceDescription): string {
  if (skipped === undefined) return '';
  switch (skipped) {
    case 'headless':
      return ', headless (clusterIP: None): kube-proxy programs nothing, DNS answers with the endpoints';
    case 'external-name':
      return ': kube-proxy programs nothing, DNS answers with another name';
    case 'no-cluster-ip':
      return ', without a cluster IP yet: kube-proxy programs nothing';
  }
}

/** What the thing asked about is; undefined where it is the Service itself. */
function describeBecause(because: Because): string | undefined {
  switch (because.kind) {
    case 'name':
      return undefined;
    case 'cluster-ip':
      return 'this is its cluster IP';
    case 'external-ip':
      return 'this is one of its external IPs';
    case 'load-balancer-ip':
      return "this is its load balancer's address";
    case 'unknown':
      return 'this is one of its addresses';
    case 'port':
      return 'this is its port';
    case 'node-port':
      return 'this is its node port';
    case 'health-check-node-port':
      return 'this is its health check node port';
    case 'endpoint':
      return `this is its endpoint ${because.endpoint}`;
    case 'chain':
      return because.to === undefined
        ? `${because.chain} is one of its chains`
        : `${because.chain} is its chain for endpoint ${because.to}`;
    case 'affinity-set':
      return `${because.set} is the set of the clients of ${because.endpoint === undefined ? 'one of its endpoints' : `endpoint ${because.endpoint}`}`;
    case 'rule':
      return `this is rule ${because.number} of chain ${because.chain} (${tableWords(because.family, because.table)})`;
    case 'rule-elsewhere':
      return `a rule of chain ${because.chain} for this Service; this rule is not on this node`;
  }
}

/** Says of a value of a Service whether kpc chose it. */
type Mark = (value: string) => string;

function markAssumed({ assumed }: ServiceDescription): Mark {
  if (!assumed) return (value) => value;
  const chosen = new Set(assignedTexts(assumed));
  return (value) => (chosen.has(value) ? `${value} (assumed)` : value);
}

function portLines(port: PortDescription, words: NodeWords, mark: Mark): readonly DescriptionLine[] {
  return [
    line('heading', 0, `Port ${port.label}${at(port.place)}`),
    ...port.families.flatMap((each) => familyLines(each, port.families.length > 1, words, mark)),
    ...section('In the kernel', port.kernel.flatMap(kernelLines), words.limit * 2, (text) => text),
  ];
}

function familyLines(port: PortInFamily, dual: boolean, words: NodeWords, mark: Mark): readonly DescriptionLine[] {
  const addresses = [
    ...port.externalIPs.map((address) => `external IP ${address}`),
    ...port.loadBalancerIPs.map((address) => `load balancer address ${mark(address)}`),
    ...(port.nodePort === undefined ? [] : [`node port ${mark(String(port.nodePort))}`]),
  ];
  const used = port.endpoints.filter(isUsedInWords).length;
  return [
    line('plain', 1, [`${port.clusterIP} port ${port.port}/${port.protocol}`, ...addresses].join(', ')),
    ...pathLines(port),
    ...(port.unboundHints ? [line('plain', 1, hintWords(port.unboundHints))] : []),
    line(
      'plain',
      1,
      `${count(port.endpoints.length, dual ? `${port.family === 'ipv4' ? 'IPv4' : 'IPv6'} endpoint` : 'endpoint')}, ${formatCount(used)} used on ${words.node}`,
    ),
    ...cutLines(alignEndpoints(port.endpoints), words.limit, 2),
  ];
}

/** What is known of the way that packets to a Service port take, of manifests or of a kernel. */
type KnownPath = Parameters<typeof describePolicies>[0] & {
  readonly fallback?: NonNullable<PortInFamily['fallback']>;
  readonly masquerade?: Masquerade;
};

/** Policies, source ranges, what becomes of packets that no endpoint takes, and whose source address changes. */
export function pathLines(port: KnownPath): readonly DescriptionLine[] {
  const policies = describePolicies(port).join(', ');
  const { fallback, masquerade } = port;
  return [
    ...(policies === '' ? [] : [line('plain', 1, policies)]),
    ...(fallback === undefined ? [] : [line('bad', 1, fallbackWords(fallback))]),
    ...(masquerade === undefined ? [] : [line('plain', 1, `masqueraded: ${masqueradeWords(masquerade)}`)]),
  ];
}

function masqueradeWords({ clusterIP, external }: Masquerade): string {
  return [
    ...(clusterIP ? [`traffic to the cluster IP${clientWords(clusterIP)}`] : []),
    ...(external ? [`external traffic${clientWords(external)}`] : []),
  ].join(', ');
}

function clientWords(clients: MasqueradedClients): string {
  switch (clients.kind) {
    case 'all':
      return '';
    case 'all-but':
      return ` that is not from ${clients.clients}`;
    case 'node':
      return ' of the node itself';
  }
}

function fallbackWords(fallback: NonNullable<PortInFamily['fallback']>): string {
  switch (fallback) {
    case 'no-endpoints-given':
      return 'no endpoints were given: the input holds no EndpointSlice or Endpoints of this Service';
    case 'no-endpoints':
      return 'no endpoint can take traffic: connections are refused';
    case 'local-drops':
      return 'no endpoint on this node: traffic of policy Local is dropped';
    case 'local-to-all':
      return 'no endpoint on this node: in IPVS mode traffic of policy Local goes to endpoints on all nodes';
  }
}

function hintWords(hints: UnboundHints): string {
  switch (hints.kind) {
    case 'endpoint-without-hint':
      return `zone hints are ignored: endpoint ${hints.endpoint} has none`;
    case 'node-without-zone':
      return 'zone hints are ignored: the node has no label topology.kubernetes.io/zone';
    case 'none-for-zone':
      return `zone hints are ignored: none is for zone ${hints.zone}`;
  }
}

function alignEndpoints(endpoints: readonly EndpointDescription[]): readonly DescriptionLine[] {
  const width = (texts: readonly string[]) => Math.max(0, ...texts.map(({ length }) => length));
  const names = width(endpoints.slice(0, 1000).map(({ endpoint }) => endpoint));
  const nodes = width(endpoints.slice(0, 1000).map(({ node }) => (node?.length ? node : '')));
  return endpoints.map((each) => {
    const { endpoint, node = '', place } = each;
    const words = `${useWords(each)}${each.assumed ? ' (assumed)' : ''}${at(place)}`;
    const text = [endpoint.padEnd(names), node.padEnd(nodes), words].join('  ');
    return { ...line(isUsedInWords(each) ? 'good' : 'dim', 2, text), cells: [endpoint, node, words] };
  });
}

function isUsedInWords({ cluster, local }: EndpointDescription): boolean {
  return [cluster, local].some((kind) => kind === 'ready' || kind === 'last-resort');
}

/** Whether an endpoint is used, and why. */
function useWords(endpoint: EndpointDescription): string {
  const { cluster, local } = endpoint;
  if (cluster === undefined || local === undefined || cluster === local) {
    return reasonWords(cluster ?? local, endpoint);
  }
  return `for policy Cluster ${reasonWords(cluster, endpoint)}; for policy Local ${reasonWords(local, endpoint)}`;
}

function reasonWords(kind: EndpointDescription['cluster'], endpoint: EndpointDescription): string {
  switch (kind) {
    case 'ready':
      return 'used';
    case 'last-resort':
      return 'used: terminating but still serving, and no endpoint is ready';
    case 'not-ready':
      return `not used: ${endpoint.condition}`;
    case 'terminating':
      return 'not used: terminating, and other endpoints are ready';
    case 'other-node-hinted':
      return `not used: its hints are for ${(endpoint.nodeHints ?? []).join(', ')}`;
    case 'other-zone-hinted':
      return `not used: its hints are for zone ${(endpoint.zoneHints ?? []).join(', ')}`;
    case 'other-node':
      return 'not used: it runs on another node';
    case undefined:
      return 'not used';
  }
}

function kernelLines(item: KernelItem): readonly string[] {
  const place = at(item.place);
  const taken = 'takenBy' in item ? `taken by ${item.takenBy}, which claims it too` : undefined;
  switch (item.kind) {
    case 'virtual-server': {
      const servers = count(item.realServers.length, 'real server');
      return [`virtual server ${item.name} ${item.options}, ${servers}${taken ? `: ${taken}` : ''}${place}`];
    }
    case 'address':
      return [`address ${item.address} on ${item.link}${place}`];
    case 'set-entry':
      return [`set ${item.set}: ${item.value}${place}`];
    case 'nft-element': {
      const set = `${item.set} (${tableWords(item.family, 'nftables')})`;
      return [`in ${set}: ${item.element}${taken ? `, ${taken}` : ''}${place}`];
    }
    case 'nft-set':
      return [`set ${item.set} (${tableWords(item.family, 'nftables')})${place}`];
    case 'chain':
    case 'rules':
    case 'nft-chain': {
      const table = tableWords(item.family, item.kind === 'nft-chain' ? 'nftables' : item.table);
      const rules = item.rules.map((rule) => `  ${rule}`);
      return [`${item.kind === 'rules' ? 'in ' : ''}chain ${item.chain} (${table})${place}`, ...rules];
    }
  }
}

/** A chain or a set that belongs to no single Service port. */
export function describeSharedInWords(subject: SharedSubject, limit: number): readonly DescriptionLine[] {
  const owners = new Set(subject.items.flatMap(({ owner }) => owner ?? []));
  const ofPorts = owners.size === 0 ? '' : `, of ${count(owners.size, 'Service port')}`;
  const where = subject.family && subject.table ? ` (${tableWords(subject.family, subject.table)})` : '';
  const title = {
    chain: `Chain ${subject.name}${where}: ${count(subject.items.length, 'rule')}${ofPorts}`,
    set: `Set ${subject.name}${where}, ${subject.type ?? ''}: ${count(subject.items.length, 'entry', 'entries')}${ofPorts}`,
    map: `Map ${subject.name}${where}, ${subject.type ?? ''}: ${count(subject.items.length, 'entry', 'entries')}${ofPorts}`,
    rule: `A rule of chain ${subject.name}${where}, which every node has: it belongs to no Service`,
  }[subject.kind];
  const lines = subject.items.map(({ text, owner }) =>
    line(owner === undefined ? 'plain' : 'good', 1, owner === undefined ? text : `${text}  ${owner}`),
  );
  return [line('heading', 0, title), ...cutLines(lines, limit, 1)];
}

/** Instead of the Services that are too many to show. */
export function describeHidden(hidden: number): DescriptionLine {
  return line('dim', 0, `… and ${count(hidden, 'more Service')}`);
}

/** What to say where nothing was found. */
export function describeNothing(
  what: string,
  { suggestions, otherMode, deaf, closed, elsewhere }: Finding & { readonly kind: 'nothing' },
): string {
  if (deaf) return describeDeaf(deaf);
  if (closed) return describeClosed(closed);
  if (elsewhere) return describeElsewhere(elsewhere);
  const hint = otherMode
    ? `; ${modeFacts[otherMode.lacking].title} has no chain of that kind, so this may be one that --proxy-mode ${otherMode.maker} makes`
    : suggestions.length === 0
      ? ''
      : `; did you mean ${suggestions.join(' or ')}?`;
  return `no Service, address, port, chain or set matches ${JSON.stringify(what)}${hint}`;
}

/** Why no Service answers at the number of a node port, on an address of the node. */
export function describeDeaf({ port, label, address, listeners }: DeafNodePort): string {
  const owner = label === undefined ? '' : ` of ${label}`;
  return `no Service answers at ${joinHostPort(address, port)}: node port ${port}${owner} listens on ${describeListeners(listeners)}${listeners.kind === 'listed' ? ' only' : ''}`;
}

/** Whose an address is that was asked for with a port that its Services do not have. */
export function describeClosed({ address, port, owners }: ClosedPort): string {
  const clauses = owners.map(({ service, isEndpoint, ports }) => {
    const has = ports.length === 0 ? '' : ` (has ${ports.join(', ')})`;
    if (service === undefined) return `${address} has no port ${port}${has}`;
    return isEndpoint
      ? `${address} is an endpoint of ${service}, which has no port ${port} there${has}`
      : `${address} belongs to ${service}, which has no port ${port}${has}`;
  });
  return nameSome(clauses);
}

function section<T>(
  title: string,
  items: readonly T[],
  limit: number,
  words: (item: T) => string,
): readonly DescriptionLine[] {
  if (items.length === 0) return [];
  return [
    line('heading', 0, title),
    ...cutLines(
      items.map((item) => line('plain', 1, words(item))),
      limit,
      1,
    ),
  ];
}

/** The first lines, and how many there are more. */
export function cutLines(lines: readonly DescriptionLine[], limit: number, depth: number): readonly DescriptionLine[] {
  if (lines.length <= limit + 1) return lines;
  const hidden = lines.length - limit;
  return [...lines.slice(0, limit), line('dim', depth, `… and ${formatCount(hidden)} more`)];
}

/** "  (svc.yaml:12)", or nothing. */
function at(place: Location | undefined): string {
  return place ? `  (${place.file}:${place.line})` : '';
}

/** One line of a description. */
export function line(role: DescriptionLine['role'], depth: number, text: string): DescriptionLine {
  return { role, depth, text };
}
