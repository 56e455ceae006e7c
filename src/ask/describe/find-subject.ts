import { mostSuggestions, nearest } from '../../base/names.ts';
import { nameSome } from '../../base/printable.ts';
import { groupBy } from '../../cluster/grouping.ts';
import {
  portAddresses,
  serviceName,
  servicePortLabel,
  type PortAddress,
  type ServiceInfo,
  type ShownPort,
} from '../../cluster/model.ts';
import { fullName, type Pod, type Sourced } from '../../cluster/objects.ts';
import { nodeAddresses } from '../../cluster/node-context.ts';
import type { CompiledSnapshot, DumpedSnapshot } from '../../snapshot/snapshot.ts';
import { findDumpListeners, type Coverage } from '../../dumps/coverage.ts';
import { isLoopback, joinHostPort, parseAddress, type Address } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import { formatKey } from '../../kernel/nftables/format.ts';
import type { KernelState } from '../../kernel/state.ts';
import { setName, serviceLink, findNodePortServers } from '../../kube-proxy/ipvs-objects.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { isKubeProxyTable, nftSets } from '../../kube-proxy/nft-table.ts';
import {
  describeListeners,
  findNodePortListeners,
  listensOn,
  type FindListeners,
} from '../../kube-proxy/node-port-listeners.ts';
import { endpointOn, PortDraft, type DecompiledPort } from '../../snapshot/decompiled-port.ts';
import { describeSet, findItems, modeOfName, type HeldState, type ItemRole, type SharedSubject } from './find-items.ts';
import { bareName, nameOfPod, parseAsked, type Asked, type AskedAddress } from './parse-asked.ts';

export type FoundSubject =
  | { readonly kind: 'services'; readonly matches: readonly ServiceMatch[] }
  /** A chain or set that Service ports share, or that every node has. */
  | { readonly kind: 'shared'; readonly subjects: readonly SharedSubject[] }
  /** `why` is a sentence. */
  | { readonly kind: 'nothing'; readonly why: string };

/** A Service that a question leads to. */
interface ServiceMatch {
  readonly service: ServiceInfo;
  /** The labels of the ports in question. */
  readonly labels: ReadonlySet<string>;
  readonly because: readonly Because[];
}

/** How the subject of the question relates to the Service port. */
export type Because = PortRole | ItemRole;

/** Where a text is looked up. */
interface Known<P extends ShownPort> extends HeldState {
  readonly ports: readonly P[];
  readonly node: AskedNode;
  /** The Service port of a chain that the state lacks. */
  readonly labelOfChain?: (chain: string) => string | undefined;
}

interface Match<P extends ShownPort> {
  readonly port: P;
  readonly because: Because;
}

/** What a text refers to: Service ports, or else chains and sets that none or all of them have. */
interface Found<P extends ShownPort> {
  readonly asked: Asked;
  readonly matches: readonly Match<P>[];
  readonly subjects: readonly SharedSubject[];
  /** Why no Service answers at an address. */
  readonly unanswered: string | undefined;
}

/**
 * Finds what a text refers to: a line of iptables-save, a chain, a set or one of its entries, an address with or without a port,
 * a node port, a Service by name ("name", "namespace/name", either with ":port"), or its DNS name.
 */
function find<P extends ShownPort>(text: string, { ports, node, labelOfChain, ...held }: Known<P>): Found<P> {
  const what = bareName(text.trim());
  const { owner, subjects = [] } = findItems(what, held) ?? {};
  const label = owner?.label ?? labelOfChain?.(what);
  const asked = parseAsked(label ?? what);
  const because = owner?.role ?? { kind: 'name' };
  const owned = ports.filter((port) => port.label === label).map((port) => ({ port, because }));
  return {
    asked,
    matches: owned.length > 0 ? owned : findPorts(ports, asked, node),
    subjects,
    unanswered: asked.address && explainUnanswered(ports, asked.address, node),
  };
}

/** Finds what a text refers to in manifests or a bundle. */
export function findSubject(text: string, view: CompiledSnapshot): FoundSubject {
  const { cluster, node } = view;
  const isOwn: AskedNode['isOwn'] = (own) => node.hostAddresses.some((each) => each.text === own.text);
  const known = {
    state: view.state,
    owners: view.owners,
    ports: [...cluster.servicePorts, ...cluster.services.flatMap(portsNotProgrammed)],
    node: { isOwn, listeners: findNodePortListeners(view.state) },
  };
  const { asked, subjects, unanswered, ...found } = find(text, known);
  const pods = findPods(asked, view.objects.pods);
  const matches =
    found.matches.length > 0 ? found.matches : pods.flatMap(addressesOf).flatMap((each) => find(each, known).matches);
  if (matches.length > 0) {
    const byService = groupBy(matches, ({ port }) => serviceName(port));
    const services = cluster.services.flatMap((service): readonly ServiceMatch[] => {
      const own = byService.get(labelOf(service)) ?? [];
      const because = new Map(own.map((each) => [JSON.stringify(each.because), each.because]));
      const labels = new Set(own.map(({ port }) => port.label));
      return own.length === 0 ? [] : [{ service, labels, because: [...because.values()] }];
    });
    return { kind: 'services', matches: services };
  }
  if (subjects.length > 0) return { kind: 'shared', subjects };
  const unserved = asked.address && explainUnserved(asked.address, view);
  const nothing = `no Service, address, port, chain or set matches ${JSON.stringify(asked.text)}`;
  return { kind: 'nothing', why: unanswered ?? unserved ?? explainIdle(pods) ?? `${nothing}${hint(asked, view)}` };
}

/** The Pods with this name, as kubectl writes it ("pod/web-0" or "pod/shop/web-0"), or with this address. */
function findPods({ text, address }: Asked, pods: readonly Sourced<Pod>[]): readonly Sourced<Pod>[] {
  const name = nameOfPod(text);
  return pods.filter((pod) => {
    const { metadata } = pod.object;
    if (address) return addressesOf(pod).includes(address.address.text);
    return name !== undefined && (metadata.name === name || fullName(metadata) === name);
  });
}

function addressesOf({ object: { status } }: Sourced<Pod>): readonly string[] {
  return status?.addresses.map(({ text }) => text) ?? [];
}

/** Why no Service selects these Pods; undefined without any. */
function explainIdle(pods: readonly Sourced<Pod>[]): string | undefined {
  if (pods.length === 0) return undefined;
  const clauses = pods.map((pod) => {
    const [address] = addressesOf(pod);
    const title = `Pod ${fullName(pod.object.metadata)}`;
    return address === undefined ? `${title} has no address yet` : `${title} (${address}) is an endpoint of no Service`;
  });
  return nameSome(clauses);
}

/** The ports of a Service that kube-proxy does not program. A headless Service has endpoints without ports. */
function portsNotProgrammed(service: ServiceInfo): readonly ShownPort[] {
  const { namespace, name, skipped, ports, headlessEndpoints } = service;
  if (skipped === undefined) return [];
  const own = ports.length > 0 ? ports : [{ name: '', port: undefined, protocol: 'TCP' as const }];
  const endpoints = headlessEndpoints.flatMap(({ address: text }) => {
    const address = parseAddress(text);
    return address ? [{ ...endpointOn(address), status: undefined }] : [];
  });
  return own.map(({ name: portName, port, protocol }) => {
    const draft = new PortDraft(servicePortLabel(namespace, name, portName), 'ipv4', protocol);
    return { ...draft.finish(), port, endpoints };
  });
}

/** What a text refers to in a dump: Service ports, even if only another mode's rules show them, or else chains and sets. */
type FoundInDump =
  | {
      readonly kind: 'found';
      readonly ports: readonly DecompiledPort[];
      readonly subjects: readonly SharedSubject[] | undefined;
    }
  | { readonly kind: 'nothing'; readonly why: string };

/** Finds what a text refers to in a dump. */
export function findInDump(text: string, dump: DumpedSnapshot): FoundInDump {
  const { owners, state, shown } = dump;
  const { asked, matches, ...found } = find(text, {
    state,
    owners,
    ports: [...shown.ports, ...shown.leftovers.ports],
    node: nodeOfDump(state, dump.coverage),
    // A chain may be known only by name.
    labelOfChain: (name) => owners.ofChain({ name, rules: [] }) ?? owners.ofNftChain({ name }),
  });
  if (matches.length > 0) return { kind: 'found', ports: matches.map(({ port }) => port), subjects: undefined };
  const subjects = [...found.subjects, ...healthCheckSets(asked, dump)];
  if (subjects.length > 0) return { kind: 'found', ports: [], subjects };
  const nothing = `the dump shows no Service, chain or set that matches ${JSON.stringify(text)}`;
  return { kind: 'nothing', why: found.unanswered ?? nothing };
}

/** The sets with a health check node port: a kernel only has its number, not its Service. */
function healthCheckSets({ number }: Asked, dump: DumpedSnapshot): readonly SharedSubject[] {
  if (!number || (number.protocol ?? 'TCP') !== 'TCP') return [];
  const names = new Set(families.map((family) => setName('healthCheckNodePort', family)));
  return dump.state.sets
    .filter(({ name, entries }) => names.has(name) && entries.some(({ port }) => port === number.port))
    .map((set) => describeSet(set, dump));
}

function labelOf({ namespace, name }: ServiceInfo): string {
  return `${namespace}/${name}`;
}

/** A clause on what an unknown text could mean, or ''. */
function hint({ text, address, names }: Asked, view: CompiledSnapshot): string {
  const { mode } = view.settings;
  const maker = modeOfName(text);
  if (maker !== undefined && maker !== mode) {
    return `; ${modeFacts[mode].title} has no chain of that kind, so this may be one that --proxy-mode ${maker} makes`;
  }
  const suggestions = address ? [] : suggest(names.at(-1)?.name ?? text, view.cluster.services);
  return suggestions.length === 0 ? '' : `; did you mean ${suggestions.join(' or ')}?`;
}

/** Ports of Services with exactly this name; else Services with this name in other namespaces, or with similar names. */
function suggest(named: string, services: readonly ServiceInfo[]): readonly string[] {
  const known = services.filter((service) => service.name === named || labelOf(service) === named);
  if (known.length > 0) {
    return known
      .slice(0, mostSuggestions)
      .flatMap((service) => service.ports.map(({ name, port }) => `${labelOf(service)}:${name || port}`));
  }
  const bare = named.slice(named.indexOf('/') + 1);
  const all = new Set(services.map(({ name }) => name));
  const near = all.has(bare) ? [bare] : nearest(bare, [...all]);
  return services.flatMap((each) => (near.includes(each.name) ? [labelOf(each)] : [])).slice(0, mostSuggestions);
}

interface AskedNode {
  isOwn(address: Address): boolean;
  readonly listeners: FindListeners;
}

/** How a name, address or number relates to a Service port. */
export type PortRole =
  | { readonly kind: PortAddress['kind'] | 'node-port' | 'health-check-node-port' | 'name' | 'port' }
  | { readonly kind: 'endpoint'; readonly endpoint: string };

/** Reads the node's addresses from a dump. If it shows none of a family, any address counts as the node's. */
function nodeOfDump(state: KernelState, coverage: Pick<Coverage, 'virtualServers'>): AskedNode {
  const own: Readonly<Record<Family, Set<string>>> = { ipv4: new Set(), ipv6: new Set() };
  for (const { name, addresses } of state.links) {
    if (name !== serviceLink) for (const { address } of addresses) own[address.family].add(address.text);
  }
  const isNodePort = findNodePortServers(state);
  for (const server of state.virtualServers) if (isNodePort(server)) own[server.family].add(server.address.text);
  for (const { name, family, sets } of state.nftables) {
    if (!isKubeProxyTable(name)) continue;
    for (const { key } of sets.get(nftSets.nodePortIPs)?.elements ?? []) own[family].add(formatKey(key));
  }
  return {
    isOwn: ({ family, text }) => own[family].size === 0 || own[family].has(text),
    listeners: findDumpListeners(state, coverage),
  };
}

/** Finds the Service ports in question. */
function findPorts<P extends ShownPort>(ports: readonly P[], asked: Asked, node: AskedNode): readonly Match<P>[] {
  const matching = (roleIn: (port: P) => PortRole | undefined): readonly Match<P>[] =>
    ports.flatMap((port) => {
      const because = roleIn(port);
      return because ? [{ port, because }] : [];
    });
  const found = matching((port) => roleOf(port, asked, node));
  // A bare number is more likely a node port than a Service's own.
  return found.length > 0 ? found : matching((port) => (hasOwnPort(port, asked) ? { kind: 'port' } : undefined));
}

/** How the subject relates to a Service port; undefined if it does not. */
function roleOf(port: ShownPort, asked: Asked, node: AskedNode): PortRole | undefined {
  const { text, address, number, names } = asked;
  if (port.label === text) return { kind: 'name' };
  const protocol = (address ?? number)?.protocol ?? port.protocol;
  if (number) {
    if (protocol === port.protocol && port.nodePort === number.port) return { kind: 'node-port' };
    const isHealthCheck = port.healthCheckNodePort === number.port && (number.protocol ?? 'TCP') === 'TCP';
    return isHealthCheck ? { kind: 'health-check-node-port' } : undefined;
  }
  if (address) return protocol === port.protocol ? roleOfAddress(port, address, node) : undefined;
  // In IPVS mode an unnamed port is called by its address.
  const isNamed = names.some(
    (each) =>
      (each.name === port.service || each.name === serviceName(port)) &&
      (each.port === undefined || each.port === port.portName || each.port === String(port.port)),
  );
  return isNamed ? { kind: 'name' } : undefined;
}

/** How an address, with or without a port, relates to a Service port. */
function roleOfAddress(port: ShownPort, asked: AskedAddress, node: AskedNode): PortRole | undefined {
  const [endpoint] = endpointsAt(port, asked.address, asked.port);
  if (endpoint) return { kind: 'endpoint', endpoint: endpoint.label };
  if (listensAt(port, asked, node) === 'yes') return { kind: 'node-port' };
  if (asked.port !== undefined && asked.port !== port.port) return undefined;
  const own = portAddresses(port).find(({ address }) => address.text === asked.address.text);
  return own && { kind: own.kind };
}

function hasOwnPort({ port, protocol }: ShownPort, { number }: Asked): boolean {
  return number !== undefined && number.port === port && !number.isOfNode && (number.protocol ?? protocol) === protocol;
}

/** The endpoints at an address. Dumps, and Services without ports, may show one by address alone. */
function endpointsAt({ endpoints = [] }: ShownPort, { text }: Address, port: number | undefined) {
  return endpoints.filter(
    (each) => each.address?.text === text && (port === undefined || each.port === undefined || each.port === port),
  );
}

/** Whether a node port is reached at an address. `deaf`: the address is the node's, but node ports do not listen on it. */
function listensAt(port: ShownPort, asked: AskedAddress, node: AskedNode): 'yes' | 'deaf' | 'no' {
  const { nodePort, family, protocol } = port;
  if (asked.port === undefined || asked.port !== nodePort || asked.address.family !== family) return 'no';
  // Every node has loopback, whether or not its addresses are known.
  const isOwn = isLoopback(asked.address) || node.isOwn(asked.address);
  if (!isOwn || (asked.protocol ?? protocol) !== protocol) return 'no';
  return listensOn(node.listeners({ family, protocol, port: nodePort }), asked.address) === false ? 'deaf' : 'yes';
}

/**
 * Why no Service answers at an address: it is the node's but node ports do not listen on it, or its Services have other ports.
 * Undefined if neither applies.
 */
function explainUnanswered(ports: readonly ShownPort[], asked: AskedAddress, node: AskedNode): string | undefined {
  const { address, protocol, port: number } = asked;
  if (number === undefined) return undefined;
  const deaf = ports.find((port) => listensAt(port, asked, node) === 'deaf');
  if (deaf) {
    const listeners = node.listeners({ family: deaf.family, protocol: deaf.protocol, port: number });
    // In IPVS mode an unnamed port is called by its node port.
    const isNamed = deaf.service !== undefined || portAddresses(deaf).length > 0;
    const owner = isNamed ? ` of ${deaf.label}` : '';
    const only = listeners.kind === 'listed' ? ' only' : '';
    return `no Service answers at ${joinHostPort(address.text, number)}: node port ${number}${owner} listens on ${describeListeners(listeners)}${only}`;
  }
  const lacks = `has no port ${number}${protocol === undefined ? '' : `/${protocol}`}`;
  /** A clause for each owner of the address, with its ports. */
  const owners = new Map<string, Set<string>>();
  for (const port of ports) {
    const isOwner = portAddresses(port).some((each) => each.address.text === address.text);
    const sockets = isOwner ? [port.port] : endpointsAt(port, address, undefined).map((endpoint) => endpoint.port);
    if (sockets.length === 0) continue;
    const role = isOwner ? 'belongs to' : 'is an endpoint of';
    const clause =
      port.service === undefined ? lacks : `${role} ${serviceName(port)}, which ${lacks}${isOwner ? '' : ' there'}`;
    const shown = owners.get(clause) ?? new Set();
    for (const each of sockets) if (each !== undefined) shown.add(`${each}/${port.protocol}`);
    owners.set(clause, shown);
  }
  if (owners.size === 0) return undefined;
  const clauses = [...owners].map(([clause, own]) =>
    own.size === 0 ? clause : `${clause} (has ${[...own].join(', ')})`,
  );
  return nameSome(clauses.map((clause) => `${address.text} ${clause}`));
}

/** Why kube-proxy programs nothing on this node for an address in the input; undefined if it does. */
export function explainUnserved(
  asked: { readonly address: Address; readonly port?: number | undefined; readonly protocol?: string | undefined },
  { objects: { services, nodes }, cluster, node }: CompiledSnapshot,
): string | undefined {
  const { address, port, protocol } = asked;
  const { text } = address;
  const isServed = cluster.servicePorts.some(({ clusterIP, externalIPs, loadBalancerIPs }) =>
    [clusterIP, ...externalIPs, ...loadBalancerIPs].some((each) => each.text === text),
  );
  if (isServed || node.hostAddresses.some((each) => each.text === text)) return undefined;
  const proxied = services.find(
    ({ object: { spec, ingress } }) =>
      spec.type === 'LoadBalancer' &&
      ingress.some(({ ip, ipMode }) => ipMode === 'Proxy' && ip !== undefined && parseAddress(ip)?.text === text),
  );
  if (proxied) {
    const { namespace, name } = proxied.object.metadata;
    return `${text} is a load balancer address of ${namespace}/${name} with ipMode Proxy: kube-proxy programs nothing for it, so that packets pass the load balancer`;
  }
  const owner = nodes.find(({ object }) => nodeAddresses(object).some((each) => each.text === text));
  const name = owner?.object.metadata.name;
  if (name === undefined || name === node.name) return undefined;
  const ofNodePort = cluster.servicePorts.find(
    (each) =>
      port !== undefined &&
      each.nodePort === port &&
      each.family === address.family &&
      (protocol === undefined || each.protocol === protocol.toUpperCase()),
  );
  const other = node.name === '' ? '' : `, not of ${node.name}`;
  const answers = ofNodePort ? `; node port ${ofNodePort.nodePort} of ${ofNodePort.label} answers there` : '';
  return `${text} is an address of node ${name}${other}${answers}: ask with --node ${name}`;
}
