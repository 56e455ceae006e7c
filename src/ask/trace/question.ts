import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { detectLocalTraffic } from '../../cluster/plan-masquerade.ts';
import {
  hostInDns,
  hostOf,
  nameInDns,
  nameInKubectl,
  parseAskedAddress,
  parseAskedName,
} from '../describe/parse-asked.ts';
import { isLeftToOther } from '../../cluster/build-cluster.ts';
import { fullName, type Pod } from '../../cluster/objects.ts';
import { portAddresses, serviceName, type PortAddress, type ShownPort } from '../../cluster/model.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { compareText } from '../../kernel/compare.ts';
import { mostSuggestions, nearest } from '../../base/names.ts';
import { shellWord } from '../../base/printable.ts';
import {
  addressAfter,
  addressBits,
  contains,
  isLoopback,
  joinHostPort,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import { unknownOwn, type Fate, type Packet, type PacketProtocol } from '../../packet/packet.ts';
import { isIn } from './pod-networks.ts';
import { sceneOf, type Scene } from './scene.ts';

/** A question, as on the command line. */
export interface Question {
  readonly from: string;
  readonly to: string;
  readonly protocol: PacketProtocol | undefined;
  readonly inInterface: string | undefined;
  /** Namespace for Services and Pods named without one. */
  readonly namespace: string | undefined;
}

/** The sender's address, and where its packets enter the node. */
export interface Sender {
  /** In words, such as "a pod on this node". */
  readonly words: string;
  /** Undefined for the node, which chooses one itself. */
  readonly address: Address | undefined;
  readonly enters: Packet['enters'];
  /** Whether it is a pod on the node. */
  readonly isPod?: boolean;
  /** Whether kpc chose the address, as one of many that such a sender may have. */
  readonly isExample?: boolean;
}

export interface Destination {
  readonly address: Address;
  readonly port: number;
  readonly protocol: PacketProtocol;
  /** The Service, if it was named. */
  readonly label: string | undefined;
}

export interface Trace {
  readonly sender: Sender;
  readonly target: Destination;
  readonly fate: Fate;
}

/** A value, or the diagnostic that says why it could not be read. */
export type Read<T> = { readonly kind: 'read'; readonly value: T } | Wrong;

interface Wrong {
  readonly kind: 'wrong';
  readonly diagnostic: Finding;
}

const read = <T>(value: T): Read<T> => ({ kind: 'read', value });

/** Nothing has the name that is asked for. */
export function absent(details: ArgumentsOf<'not-found'>): Wrong {
  return { kind: 'wrong', diagnostic: diagnose('not-found', details) };
}

export function wrong(details: ArgumentsOf<'bad-packet'>): Wrong {
  return { kind: 'wrong', diagnostic: diagnose('bad-packet', details) };
}

/** Kinds of senders that need no name. */
export const senderKinds = ['pod', 'remote-pod', 'node', 'external'] as const;

export type NamedSender = Pick<Question, 'from' | 'inInterface' | 'namespace'>;

export function readSender({ from, inInterface, namespace }: NamedSender, family: Family, scene: Scene): Read<Sender> {
  const { side } = scene;
  const sender = (words: string, address: Address, isPod: boolean, isExample = false): Read<Sender> => {
    const usual = isPod ? podInterface(scene, family) : side.kind === 'dump' ? undefined : 'eth0';
    return read({ words, address, enters: { interface: inInterface ?? usual }, isPod, isExample });
  };
  const kind = senderKinds.find((each) => each === from);
  if (kind === 'node') return read({ words: 'the node itself', address: undefined, enters: undefined });
  if (kind) {
    const words = strangers[kind];
    const found = findStranger(kind, family, scene);
    if (found) return sender(words, found, kind === 'pod', true);
    return nodesUnnamed(scene) ?? wrong({ problem: 'no-address-for', sender: words });
  }
  const address = parseAddress(from);
  if (address) {
    if (address.family !== family) return wrong({ problem: 'other-family', from });
    if (inInterface === undefined && isOfNode(address, scene))
      return read({ words: 'the node itself', address, enters: undefined });
    const isPod = side.node?.podCIDRs.some((network) => contains(network, address)) === true;
    return sender(isPod ? 'a pod on this node' : 'a client', address, isPod);
  }
  if (dottedQuad.test(from)) return wrong({ problem: 'no-address', text: from });
  const workload = workloadOf(from, namespace);
  const pod = podOf(from, namespace, side);
  const name = pod
    ? fullName(pod.metadata)
    : workload
      ? `of ${workload.kind} ${workload.name}`
      : nameOfPod(from, namespace);
  if (!pod && scene.side.objects.unread.has('pods'))
    return wrong({ problem: 'unread', what: `Pod ${name}`, kinds: ['Pods'] });
  if (!pod) {
    const named = workload ? workloadsOf(side) : [...side.pods.keys()];
    const near = [...nearest(from.toLowerCase(), senderKinds), ...nearest(workload ? wordsOf(workload) : name, named)];
    return absent({ problem: 'no-sender', name, from, kinds: senderKinds, near });
  }
  const { nodeName, hostNetwork } = pod.spec;
  const own = pod.status?.addresses.find((each) => each.family === family);
  const isHere = nodeName !== '' && nodeName === side.node?.name;
  // A Pod with the node's network is the node to the kernel. A dump is of a node without a name.
  if (hostNetwork && (isHere || (own && isOfNode(own, scene))))
    return read({ words: `Pod ${name} with the node's network`, address: undefined, enters: undefined });
  if (!own) return wrong({ problem: 'no-address-of-pod', pod: name, family });
  const where = isHere ? '' : hostNetwork ? " with another node's network" : ' on another node';
  return nodesUnnamed(scene) ?? sender(`Pod ${name}${where}`, own, isHere);
}

/** Whether the node has the address, also for a Service. */
function isOfNode({ text }: Address, { side, links }: Scene): boolean {
  return (
    side.heldAddresses.has(text) ||
    links.some(({ addresses }) => addresses.some(({ address }) => address.text === text))
  );
}

/**
 * The scene where a named Pod's packets meet kube-proxy: its own node's, if the input has that Node and nothing names another. Any
 * other sender asks in the scene at hand.
 */
export function sceneOfSender({ from, namespace }: Pick<Question, 'from' | 'namespace'>, scene: Scene): Scene {
  const { side } = scene;
  if (side.kind !== 'manifests' || side.settings.hostnameOverride !== '') return scene;
  const home = podOf(from, namespace, side)?.spec.nodeName ?? '';
  const own = home === '' || home === side.nodeName ? undefined : side.onNode(home);
  return own ? sceneOf(own) : scene;
}

/** The Pod that a sender's name means, or a Pod of the workload. */
function podOf(from: string, namespace: string | undefined, side: Scene['side']): Pod | undefined {
  if (parseAddress(from) || senderKinds.some((each) => each === from)) return undefined;
  const workload = workloadOf(from, namespace);
  return workload ? podOfWorkload(workload, side) : side.pods.get(nameOfPod(from, namespace));
}

const dottedQuad = /^\d+(\.\d+){3}$/;

/** "namespace/name" of a Pod, which may be written without its kind or namespace. */
export function nameOfPod(words: string, namespace: string | undefined): string {
  const name = words.replace(/^pods?\//, '');
  return name.includes('/') ? name : `${namespace ?? 'default'}/${name}`;
}

interface NamedWorkload {
  readonly kind: string;
  /** "namespace/name". */
  readonly name: string;
}

/** kubectl's names for workload kinds. */
const workloadWords: ReadonlyMap<string, string> = new Map(
  (
    [
      ['Deployment', ['deployment', 'deployments', 'deploy']],
      ['StatefulSet', ['statefulset', 'statefulsets', 'sts']],
      ['DaemonSet', ['daemonset', 'daemonsets', 'ds']],
      ['ReplicaSet', ['replicaset', 'replicasets', 'rs']],
      ['ReplicationController', ['replicationcontroller', 'replicationcontrollers', 'rc']],
      ['Job', ['job', 'jobs']],
    ] as const
  ).flatMap(([kind, words]) => words.map((word) => [word, kind] as const)),
);

/** A workload as kubectl names it: deployment/web, or deployment/shop/web. */
function workloadOf(words: string, namespace: string | undefined): NamedWorkload | undefined {
  const at = words.indexOf('/');
  const kind = workloadWords.get(words.slice(0, at).toLowerCase());
  return kind === undefined ? undefined : { kind, name: nameOfPod(words.slice(at + 1), namespace) };
}

/** The workloads of the Pods, as a question may name them. */
function workloadsOf({ pods }: Scene['side']): readonly string[] {
  const all = [...pods.values()].flatMap(({ metadata: { namespace }, owner }) =>
    owner ? [wordsOf({ kind: owner.kind, name: fullName({ namespace, name: owner.name }) })] : [],
  );
  return [...new Set(all)];
}

function wordsOf({ kind, name }: NamedWorkload): string {
  return `${kind.toLowerCase()}/${name}`;
}

/** A Pod of a workload, on this node if possible. */
function podOfWorkload(workload: NamedWorkload, { pods, nodeName }: Scene['side']): Pod | undefined {
  const own = [...pods.values()].filter((pod) => isOfWorkload(pod, workload));
  return own.find(({ spec }) => spec.nodeName !== '' && spec.nodeName === nodeName) ?? own[0];
}

/** The ReplicaSet between a Deployment and its Pods is named after the Deployment plus a hash of the template. */
function isOfWorkload({ metadata, owner }: Pod, { kind, name }: NamedWorkload): boolean {
  if (!owner) return false;
  const full = fullName({ namespace: metadata.namespace, name: owner.name });
  if (owner.kind === kind) return full === name;
  const hash = metadata.labels['pod-template-hash'];
  return kind === 'Deployment' && owner.kind === 'ReplicaSet' && full === `${name}-${hash}`;
}

/** Kinds of senders that kpc finds an address for. */
const strangers = {
  pod: 'a pod on this node',
  'remote-pod': 'a pod on another node',
  external: 'a client outside the cluster',
} as const;

/** Without a named node, no pod is on the node. */
function nodesUnnamed({ side }: Scene): Wrong | undefined {
  const nodes = side.objects.nodes.length;
  return side.node?.name === '' && nodes > 1 ? wrong({ problem: 'no-node-named', nodes }) : undefined;
}

/** The interface by which kube-proxy recognises pods; cni0 if it recognises them by address. */
function podInterface({ side, podTraffic }: Scene, family: Family): string | undefined {
  const [seen] = podTraffic.interfaces;
  if (side.kind === 'dump') return seen?.replace(/[+*]$/, '0');
  const local = detectLocalTraffic(side.settings, side.node, family);
  if (local?.kind === 'from-interface') return local.name;
  return local?.kind === 'from-interfaces' ? `${local.prefix}0` : 'cni0';
}

/** Documentation networks, which no cluster uses (RFC 5737, RFC 3849). */
const outside = { ipv4: parseNetwork('198.51.100.0/24'), ipv6: parseNetwork('2001:db8:ffff::/64') };

function findStranger(kind: keyof typeof strangers, family: Family, scene: Scene): Address | undefined {
  if (kind === 'external') return firstFree(outside[family], scene);
  const { side } = scene;
  return side.kind === 'dump' ? findPodOfDump(kind, family, scene) : findPod(kind, family, scene, side);
}

function findPod(
  kind: 'pod' | 'remote-pod',
  family: Family,
  scene: Scene,
  { node: { name, podCIDRs }, settings, objects }: CompiledSnapshot,
): Address | undefined {
  const besideOf = (isLocal: boolean | undefined) => beside(family, scene, (each) => each.isLocal === isLocal);
  if (kind === 'pod') {
    const own = podCIDRs.find((network) => network.family === family);
    return firstFree(own, scene) ?? besideOf(true);
  }
  const others = objects.nodes.flatMap(({ object }) => (object.metadata.name === name ? [] : object.podCIDRs));
  for (const text of [...others, ...settings.clusterCIDRs]) {
    const network = parseNetwork(text.trim());
    const found = network?.family === family ? firstFree(network, scene, podCIDRs) : undefined;
    if (found) return found;
  }
  return besideOf(false) ?? besideOf(undefined);
}

/**
 * Picks a pod address for a dump, which does not show where endpoints are. Pods have addresses in the network that the rules name; pods of
 * this node are in a link's network within it. If the rules name no network, takes an address next to an endpoint.
 */
function findPodOfDump(kind: 'pod' | 'remote-pod', family: Family, scene: Scene): Address | undefined {
  const wide = scene.podTraffic.networks.filter((network) => network.family === family);
  const ofLinks = scene.links
    .flatMap(({ addresses }) => addresses)
    .flatMap(({ address, prefixLength }) => parseNetwork(`${address.text}/${prefixLength}`) ?? [])
    .filter((network) => network.family === family && network.prefixLength < addressBits[family]);
  const here = ofLinks.filter(({ address }) => isIn(wide, address));
  const isPods = (address: Address): boolean => wide.length === 0 || isIn(wide, address);
  const besideOf = (isHere: boolean | undefined) =>
    beside(family, scene, ({ address }) => isPods(address) && (isHere === undefined || isIn(here, address) === isHere));
  const [network] = wide;
  if (kind === 'pod') return firstFree(here[0], scene) ?? besideOf(undefined) ?? firstFree(network, scene);
  return besideOf(here.length > 0 ? false : undefined) ?? firstFree(network, scene, here);
}

/** An address next to that of an endpoint with a network of its own. */
function beside(
  family: Family,
  scene: Scene,
  isMeant: (endpoint: { readonly address: Address; readonly isLocal: boolean | undefined }) => boolean,
): Address | undefined {
  const hosts = hostsOf(scene);
  for (const endpoint of scene.side.endpoints.of(family)) {
    const { address } = endpoint;
    if (hosts.has(address.text) || !isMeant(endpoint)) continue;
    return firstFree(parseNetwork(`${address.text}/${family === 'ipv4' ? 24 : 120}`), scene) ?? address;
  }
  return undefined;
}

/** Addresses that are no Pod's alone: those of nodes, of Pods with the network of their node, and of the API server. */
function hostsOf({ side, links }: Scene): ReadonlySet<string> {
  const { objects, pods, ports } = side;
  return new Set([
    ...objects.nodes.flatMap(({ object }) => object.addresses.map(({ address }) => address)),
    ...links.flatMap(({ addresses }) => addresses.map(({ address }) => address.text)),
    ...[...pods.values()].flatMap(({ spec, status }) =>
      spec.hostNetwork ? (status?.addresses ?? []).map(({ text }) => text) : [],
    ),
    ...ports.flatMap((port) =>
      serviceName(port) === 'default/kubernetes'
        ? (port.endpoints ?? []).flatMap(({ address }) => address?.text ?? [])
        : [],
    ),
  ]);
}

/** firstFree counts down from this host number, because routers and endpoints often have low ones. */
const tried = 250;
const blockSize = 256;
/** How many blocks of a large network are looked at. */
const blocks = 256;

function firstFree(network: Network | undefined, scene: Scene, except: readonly Network[] = []): Address | undefined {
  if (!network) return undefined;
  const { endpoints } = scene.side;
  const own = new Set(scene.links.flatMap(({ addresses }) => addresses.map(({ address }) => address.text)));
  const isTaken = ({ text }: Address) => endpoints.has(text) || endpoints.isOfService(text) || own.has(text);
  let start = network.address;
  for (let block = 0; block < blocks && contains(network, start); block++) {
    const passed = except.find((each) => contains(each, start));
    const hosts = passed ? 0 : tried;
    for (let host = hosts; host > 1; host--) {
      const address = addressAfter(start, host);
      if (contains(network, address) && !isIn(except, address) && !isTaken(address)) return address;
    }
    start = passed
      ? addressAfter(passed.address, 2 ** (addressBits[network.family] - passed.prefixLength))
      : addressAfter(start, blockSize);
  }
  return undefined;
}

/** Whether a question uses only addresses and kinds of senders. */
export function hasNoNames({ from, to }: Pick<Question, 'from' | 'to'>): boolean {
  const isOfKind = senderKinds.some((kind) => kind === from);
  return parseAskedAddress(to) !== undefined && (isOfKind || parseAddress(from) !== undefined);
}

type Asked = Pick<Question, 'to' | 'protocol' | 'namespace'> & { readonly isOutside: boolean };

/** Reads a destination: an address with a port, or a Service name as kubectl or DNS writes it. */
function readDestination(asked: Asked, family: Family | undefined, scene: Scene): Read<Destination> {
  const { to, namespace } = asked;
  const named = parseAskedAddress(to);
  const ofNode = named ? undefined : readNodeSocket(asked, family, scene);
  if (ofNode) return ofNode;
  if (!named) {
    const [, host = to] = /^(.*):\d+$/.exec(to) ?? [];
    if (parseAskedAddress(host)) return wrong({ problem: 'port-range', to });
    if (dottedQuad.test(host)) return wrong({ problem: 'no-address', text: to });
    const ports = findPorts(to, namespace, scene);
    if (ports.kind === 'read') return readService(asked, ports.value, family, scene);
    return readHost(asked, family, scene) ?? ports;
  }
  const { address } = named;
  const protocol = asked.protocol ?? (named.protocol?.toLowerCase() as PacketProtocol | undefined) ?? 'tcp';
  const own = scene.side.ports.filter((each) => hasAddress(each, address));
  const [only, ...others] = new Set(own.filter((each) => isOf(each, protocol)).map(({ port }) => port));
  const port = protocol === 'icmp' ? 0 : (named.port ?? (others.length === 0 ? only : undefined));
  if (port !== undefined) return read({ address, port, protocol, label: undefined });
  const ports = [...new Set(own.map(nameNumber))];
  return wrong({ problem: 'which-port', to, ports, example: joinHostPort(address.text, own[0]?.port ?? 80) });
}

/** Reads the DNS name of a headless Service's endpoint, such as web-0.db.shop.svc; undefined if no such Service is known. */
function readHost(
  { to, protocol = 'tcp', namespace }: Asked,
  family: Family | undefined,
  { side }: Scene,
): Read<Destination> | undefined {
  const asked = hostInDns(to);
  if (!asked) return undefined;
  const wanted = asked.namespace ?? namespace;
  const known = (side.kind === 'dump' ? side.named : side.cluster)?.services ?? [];
  const services = known.filter(
    (each) =>
      each.skipped === 'headless' && each.name === asked.service && (wanted ?? each.namespace) === each.namespace,
  );
  const [service] = services;
  if (!service) return undefined;
  const names = services.map(fullName);
  if (names.length > 1) return wrong({ problem: 'several', kind: 'Service', name: asked.service, names });
  // DNS knows no others.
  const ready = service.headlessEndpoints.filter((endpoint) => endpoint.ready);
  const own = ready.filter((endpoint) => hostOf(endpoint) === asked.host);
  const addresses = own.flatMap(({ address }) => parseAddress(address) ?? []);
  const hosts = [...new Set(ready.map(hostOf))].toSorted(compareText);
  const near = nearest(asked.host, hosts).slice(0, mostSuggestions);
  if (addresses.length === 0)
    return absent({ problem: 'no-host', service: names.join(), name: asked.host, near, hosts });
  const address = addresses.find((each) => each.family === (family ?? each.family));
  if (!address) return wrong({ problem: 'no-address-of-pod', pod: asked.host, family: family ?? 'ipv4' });
  const numbers = service.ports.map((port) => (typeof port.targetPort === 'number' ? port.targetPort : port.port));
  const named = numbers[service.ports.findIndex(({ name }) => name !== '' && name === asked.port)];
  const port =
    protocol === 'icmp' ? 0 : (named ?? numberOf(asked.port ?? (numbers.length === 1 ? numbers.join() : '')));
  if (port !== undefined) return read({ address, port, protocol, label: undefined });
  return wrong({
    problem: 'which-port',
    to,
    ports: numbers.map(String),
    example: `${to.replace(/:.*/, '')}:${numbers[0] ?? 80}`,
  });
}

/** A port's number; undefined for another text. */
function numberOf(text: string): number | undefined {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535 ? Number(text) : undefined;
}

/** How a question names a port of the node at any of its addresses. */
export function nodeSocketText({ port, protocol }: Pick<Packet, 'port' | 'protocol'>): string {
  return protocol === 'icmp' ? 'node' : `node:${port}`;
}

/** The port in a text from nodeSocketText, 0 if it has none; undefined for any other text. */
function parseNodeSocket(text: string): number | undefined {
  const [isNode, port = '0'] = /^node(?::(\d{1,5}))?$/.exec(text) ?? [];
  return isNode === undefined || Number(port) > 65535 ? undefined : Number(port);
}

/** Reads a port of the node; undefined for anything else. "node" without a port may be a Service of that name. */
function readNodeSocket(
  { to, protocol = 'tcp', namespace }: Asked,
  family: Family | undefined,
  scene: Scene,
): Read<Destination> | undefined {
  const isIcmp = protocol === 'icmp';
  if (to === 'node' && !isIcmp) {
    const isService = findPorts(to, namespace, scene).kind === 'read';
    return isService
      ? undefined
      : wrong({ problem: 'which-port', to, ports: [], example: nodeSocketText({ port: 30080, protocol }) });
  }
  const port = parseNodeSocket(to);
  if (port === undefined || (port === 0) !== isIcmp)
    return /^node:\d+$/.test(to) ? wrong({ problem: 'port-range', to }) : undefined;
  const wanted = family === undefined ? families : [family];
  const own = wanted.flatMap((each) => ownAddress(each, scene) ?? []);
  return read({ address: own[0] ?? unknownOwn[family ?? 'ipv4'], port, protocol, label: undefined });
}

/** An address by which other hosts know the node. */
function ownAddress(family: Family, { links }: Scene): Address | undefined {
  return links
    .flatMap((link) => link.addresses)
    .find(({ address, scope }) => address.family === family && !isLoopback(address) && scope !== 'link')?.address;
}

export function hasAddress(port: ShownPort, { text }: Address): boolean {
  return portAddresses(port).some(({ address }) => address.text === text);
}

function isOf(port: ShownPort, protocol: PacketProtocol): boolean {
  return port.protocol.toLowerCase() === protocol;
}

/** "service:port", or the Service alone if the port has no name. */
function joinNames(service: string, portName = ''): string {
  return portName === '' ? service : `${service}:${portName}`;
}

function nameNumber({ port, protocol }: ShownPort): string {
  return `${port}/${protocol}`;
}

function readService(
  { to, protocol, isOutside }: Asked,
  ports: readonly ShownPort[],
  family: Family | undefined,
  scene: Scene,
): Read<Destination> {
  const fitting = ports.filter(
    (port) => (family ?? port.family) === port.family && (!protocol || protocol === 'icmp' || isOf(port, protocol)),
  );
  const [first] = fitting;
  const way = first && wayTo(first, isOutside && nameInDns(to) === undefined, scene);
  if (!way) return absent({ problem: 'no-such-port', to });
  const names = new Map(fitting.map(({ label, service = label, portName }) => [label, joinNames(service, portName)]));
  if (names.size > 1 && protocol !== 'icmp') return wrong({ problem: 'which-port', to, ports: [...names.values()] });
  const chosen = protocol ?? (first.protocol.toLowerCase() as PacketProtocol);
  return read({ ...way, port: chosen === 'icmp' ? 0 : way.port, protocol: chosen, label: first.label });
}

/** The "namespace/name" entries spelled like the wanted name, which may lack a namespace. */
export function nearNames(wanted: string, names: readonly string[]): readonly string[] {
  const bare = (name: string): string => (wanted.includes('/') ? name : name.slice(name.indexOf('/') + 1));
  const near = [...new Set(names)].filter((name) => nearest(wanted, [bare(name)]).length > 0);
  return near.slice(0, mostSuggestions);
}

/** Whether a "namespace/name" is the wanted name, which may lack the namespace. */
export function isNamed(name: string, wanted: string): boolean {
  return name === wanted || (!wanted.includes('/') && name.endsWith(`/${wanted}`));
}

/** The ports of a Service named by address, or by name as people, kubectl or DNS write it, with or without a port. */
export function findPorts(what: string, namespace: string | undefined, scene: Scene): Read<readonly ShownPort[]> {
  const asked = parseAskedAddress(what);
  if (asked) {
    const found = scene.side.ports.filter(
      (each) =>
        hasAddress(each, asked.address) &&
        (asked.port ?? each.port) === each.port &&
        (asked.protocol ?? each.protocol) === each.protocol,
    );
    return found.length > 0 ? read(found) : noService(what, [], scene);
  }
  const { name, port } = parseAskedName(nameInKubectl(what) ?? what);
  const wanted = name.includes('/') || namespace === undefined ? name : `${namespace}/${name}`;
  const { side } = scene;
  const isWanted = (each: ShownPort): boolean => isNamed(serviceName(each), wanted);
  const shown = side.ports.filter(isWanted);
  // The node may have no rule for a Service that is named by manifests beside its dump.
  const named = side.kind === 'dump' ? (side.named?.servicePorts ?? []) : [];
  const own = shown.length > 0 ? shown : named.filter(isWanted);
  const services = [...new Set(own.map((each) => serviceName(each)))];
  if (services.length > 1) return wrong({ problem: 'several', kind: 'Service', name, names: services });
  if (own.length === 0) {
    const others = scene.side.cluster?.services ?? [];
    const idle = others.find((each) => each.skipped && isNamed(`${each.namespace}/${each.name}`, wanted));
    if (idle?.skipped)
      return wrong({ problem: 'skipped', service: `${idle.namespace}/${idle.name}`, why: idle.skipped });
    const left = scene.side.objects.services.find(
      ({ object }) => isLeftToOther(object) && isNamed(fullName(object.metadata), wanted),
    );
    if (left) return wrong({ problem: 'skipped', service: fullName(left.object.metadata), why: 'other-proxy' });
    const names = scene.side.ports.map((each) => serviceName(each));
    return noService(wanted, nearNames(wanted, names), scene);
  }
  if (port === undefined) return read(own);
  const asWritten = port.toUpperCase();
  const chosen = own.filter(
    (each) => each.portName === port || String(each.port) === port || nameNumber(each) === asWritten,
  );
  if (chosen.length > 0) return read(chosen);
  const known = [...new Set(own.map(nameNumber))];
  return absent({ problem: 'no-port', service: services.join(''), port, ports: known });
}

function noService(name: string, near: readonly string[], { side }: Scene): Wrong {
  const files = side.kind === 'dump' ? side.name.split(', ').map(shellWord).join(' ') : undefined;
  return absent({ problem: 'no-such', kind: 'Service', name, near, ...(files === undefined ? {} : { files }) });
}

/** The address to send to: the cluster IP, or for a client outside a load balancer address, external IP or node port. */
function wayTo(shown: ShownPort, isOutside: boolean, scene: Scene) {
  const { port, nodePort, family } = shown;
  const addresses = portAddresses(shown);
  const find = (kind: PortAddress['kind']) => addresses.find((each) => each.kind === kind)?.address;
  const outer = isOutside ? (find('load-balancer-ip') ?? find('external-ip')) : undefined;
  const own = ownAddress(family, scene);
  if (isOutside && !outer && nodePort && (own || scene.side.kind === 'dump'))
    return { address: own ?? unknownOwn[family], port: nodePort };
  const address = outer ?? find('cluster-ip') ?? find('unknown');
  return address && port !== undefined ? { address, port } : undefined;
}

/**
 * Whether a packet goes to a node port at an address that the input does not have. A Node lists one or two addresses, but a node
 * may have more: on another network card, a VPN, or a virtual IP.
 */
function isUnplaced({ destination, port, protocol }: Packet, { side, links }: Scene): boolean {
  if (side.kind === 'dump' || side.node.hostAddresses.some(isLoopback)) return false;
  const isNodePort = side.ports.some(
    (each) => each.nodePort === port && each.family === destination.family && isOf(each, protocol),
  );
  const isKnown =
    side.endpoints.isOfService(destination.text) ||
    side.endpoints.has(destination.text) ||
    side.node.podCIDRs.some((network) => contains(network, destination)) ||
    side.objects.nodes.some(({ object }) => object.addresses.some(({ address }) => address === destination.text)) ||
    links.some(({ addresses }) => addresses.some(({ address }) => address.text === destination.text));
  return isNodePort && !isKnown;
}

export function packetOf(sender: Sender, target: Destination): Packet {
  return {
    source: sender.address,
    destination: target.address,
    protocol: target.protocol,
    port: target.port,
    enters: sender.enters,
  };
}

/** Whether an address is of no pod and no node of the manifests: such a client asks a Service at an address for outside. */
function isClientOutside(address: Address | undefined, { side, links }: Scene): boolean {
  if (!address || side.kind === 'dump') return false;
  const networks = side.settings.clusterCIDRs.flatMap((text) => parseNetwork(text.trim()) ?? []);
  const isOwn = links.some((link) => link.addresses.some((each) => each.address.text === address.text));
  const isNode = side.objects.nodes.some(({ object }) =>
    object.addresses.some((each) => each.address === address.text),
  );
  const isEndpoint = side.endpoints.has(address.text);
  const isPod = isEndpoint || isIn([...networks, ...side.node.podCIDRs], address);
  return networks.length + side.node.podCIDRs.length > 0 && !isOwn && !isNode && !isPod;
}

/** Sends the packet of a question. Reports faults in both sender and destination. */
export function ask(
  { from, to, protocol, inInterface, namespace }: Question,
  scene: Scene,
):
  | { readonly kind: 'read'; readonly value: Trace }
  | {
      readonly kind: 'wrong';
      readonly faults: readonly { readonly end: 'from' | 'to'; readonly diagnostic: Finding }[];
    } {
  const asked = {
    to,
    protocol,
    namespace,
    isOutside: from === 'external' || isClientOutside(parseAddress(from), scene),
  };
  const target = readDestination(asked, parseAddress(from)?.family, scene);
  // Without a destination, a sender of either family will do.
  const wanted = target.kind === 'read' ? [target.value.address.family] : families;
  const senders = wanted.map((each) => readSender({ from, inInterface, namespace }, each, scene));
  const sender = senders.find(({ kind }) => kind === 'read') ?? (senders[0] as Read<Sender>);
  if (target.kind === 'read' && sender.kind === 'read') {
    const packet = packetOf(sender.value, target.value);
    const isOpen = isUnplaced(packet, scene);
    const found = scene.evaluate({ ...packet, isUnplaced: isOpen });
    // In IPVS mode every address of the node has its own virtual server, so an unknown address has none here.
    const isBlind = isOpen && scene.side.state.virtualServers.length > 0;
    const fate = isBlind && found.otherwise?.verdict === 'local' ? { ...found, otherwise: undefined } : found;
    return { kind: 'read', value: { sender: sender.value, target: target.value, fate } };
  }
  const ends = [{ end: 'from', ...sender } as const, { end: 'to', ...target } as const];
  return { kind: 'wrong', faults: ends.flatMap((each) => (each.kind === 'wrong' ? [each] : [])) };
}
