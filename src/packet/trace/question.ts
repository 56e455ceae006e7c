import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { detectLocalTraffic } from '../../cluster/local-traffic.ts';
import { nameInDns, nameInKubectl, parseAskedAddress, parseAskedName } from '../../describe/parse-asked.ts';
import { mostSuggestions, nearest } from '../../base/find-nearest.ts';
import {
  addressAfter,
  contains,
  isLoopback,
  joinHostPort,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { SocketAddress } from '../../kernel/socket-address.ts';
import type { Fate, Packet, PacketProtocol } from '../packet.ts';
import { serviceOf, type KnownPort, type Scene } from './scene.ts';

/** What is asked, as on the command line. */
export interface Question {
  readonly from: string;
  readonly to: string;
  readonly protocol: PacketProtocol | undefined;
  readonly inInterface: string | undefined;
  /** Of Services and Pods that are named without one. */
  readonly namespace: string | undefined;
}

/** Who sends: its address, and how it gets to the node. */
export interface Sender {
  /** In words: "a pod on this node". */
  readonly words: string;
  /** Undefined for the node, which chooses one itself. */
  readonly address: Address | undefined;
  readonly enters: Packet['enters'];
}

/** Where to: what was asked for, as an address. */
export interface Target {
  readonly address: Address;
  readonly port: number;
  readonly protocol: PacketProtocol;
  /** The Service that was named. */
  readonly label: string | undefined;
}

/** One packet with what becomes of it. */
export interface Trace {
  readonly sender: Sender;
  readonly target: Target;
  readonly fate: Fate;
}

/** Something that was read, or what is wrong with it. */
export type Read<T> = { readonly kind: 'read'; readonly value: T } | Wrong;

interface Wrong {
  readonly kind: 'wrong';
  readonly diagnostic: Diagnostic;
}

const read = <T>(value: T): Read<T> => ({ kind: 'read', value });

/** Refuses a question about a packet. */
export function wrong(details: ArgumentsOf<'bad-packet'>): Wrong {
  return { kind: 'wrong', diagnostic: diagnose('bad-packet', details) };
}

/** The senders that need no name. */
export const senderKinds = ['pod', 'remote-pod', 'node', 'external'] as const;

/** Who sends, as on the command line. */
export type NamedSender = Pick<Question, 'from' | 'inInterface' | 'namespace'>;

/** Who sends, to a target of that family. */
export function readSender({ from, inInterface, namespace }: NamedSender, family: Family, scene: Scene): Read<Sender> {
  const enters = (isPod: boolean): Packet['enters'] => {
    return { interface: inInterface ?? (isPod ? podInterface(scene, family) : nodeInterface(scene)) };
  };
  const kind = senderKinds.find((each) => each === from);
  if (kind === 'node') return read({ words: 'the node itself', address: undefined, enters: undefined });
  if (kind) {
    const { words, find, problem } = strangers[kind];
    const found = find(scene, family);
    return found ? read({ words, address: found, enters: enters(kind === 'pod') }) : nowhere(problem, scene);
  }
  const address = parseAddress(from);
  if (address) {
    if (address.family !== family) return wrong({ problem: 'other-family', from });
    const isOwn = [...scene.links, ...scene.side.state.links].some(({ addresses }) =>
      addresses.some((each) => each.address.text === address.text),
    );
    if (inInterface === undefined && isOwn) return read({ words: 'the node itself', address, enters: undefined });
    const isPod = scene.side.services?.node.podCIDRs.some((network) => contains(network, address)) === true;
    return read({ words: isPod ? 'a pod on this node' : 'a client', address, enters: enters(isPod) });
  }
  if (/^\d+(\.\d+){3}$/.test(from)) return wrong({ problem: 'no-address', text: from });
  const name = nameOfPod(from, namespace);
  const pod = scene.pods.get(name);
  if (!pod) {
    const near = nearest(name, [...scene.pods.keys()]);
    return wrong({ problem: 'no-sender', name, from, kinds: senderKinds, near });
  }
  const own = pod.status?.addresses.find((each) => each.family === family);
  if (!own) return wrong({ problem: 'no-address-of-pod', pod: name, family });
  const unnamed = nodesUnnamed(scene);
  if (unnamed) return unnamed;
  const isHere = pod.spec.nodeName !== '' && pod.spec.nodeName === scene.side.services?.node.name;
  return read({ words: `Pod ${name}${isHere ? '' : ' on another node'}`, address: own, enters: enters(isHere) });
}

/** The "namespace/name" of a Pod that is named with or without its kind and namespace. */
export function nameOfPod(words: string, namespace: string | undefined): string {
  const name = words.replace(/^pods?\//, '');
  return name.includes('/') ? name : `${namespace ?? 'default'}/${name}`;
}

/** Addresses of documentation, which no cluster gives to anything (RFC 5737, RFC 3849). */
const outside = { ipv4: parseNetwork('198.51.100.0/24'), ipv6: parseNetwork('2001:db8:ffff::/64') };

/** Senders for which kpc finds an address. */
const strangers = {
  pod: { words: 'a pod on this node', find: localPod, problem: 'no-pods-here' },
  'remote-pod': { words: 'a pod on another node', find: remotePod, problem: 'no-pods-elsewhere' },
  external: {
    words: 'a client outside the cluster',
    find: (scene: Scene, family: Family) => firstFree(outside[family], scene),
    problem: 'no-free-address',
  },
} as const;

function nowhere(problem: (typeof strangers)[keyof typeof strangers]['problem'], scene: Scene): Wrong {
  return nodesUnnamed(scene) ?? wrong({ problem });
}

/** Pods are on no node if none of several is named. */
function nodesUnnamed({ side, objects }: Scene): Wrong | undefined {
  const nodes = objects.nodes.length;
  return side.services?.node.name === '' && nodes > 1 ? wrong({ problem: 'no-node-named', nodes }) : undefined;
}

/** The interface that kube-proxy takes for the pods', if it looks at interfaces; no rule asks for any other. */
function podInterface({ side: { services } }: Scene, family: Family): string | undefined {
  const local = services && detectLocalTraffic(services.settings, services.node, family);
  if (local?.kind === 'from-interface') return local.name;
  if (local?.kind === 'from-interfaces') return `${local.prefix}0`;
  return services && 'cni0';
}

/** The one by which packets from elsewhere come. Where rules were compiled, none asks for it; of a dump it is not known. */
function nodeInterface({ side: { services } }: Scene): string | undefined {
  return services && 'eth0';
}

/** An address of a pod on this node that is no endpoint, if possible. */
function localPod(scene: Scene, family: Family): Address | undefined {
  const own = scene.side.services?.node.podCIDRs.find((network) => network.family === family);
  const known = firstFree(own, scene) ?? besideEndpoint(scene, family, true);
  // A dump says of no endpoint where it is.
  return known ?? (scene.side.services ? undefined : besideEndpoint(scene, family, undefined));
}

function remotePod(scene: Scene, family: Family): Address | undefined {
  const { services } = scene.side;
  const wide = services?.settings.clusterCIDRs.flatMap((text) => parseNetwork(text.trim()) ?? []) ?? [];
  const network = wide.find((each) => each.family === family);
  return (
    besideEndpoint(scene, family, false) ??
    firstFree(network, scene, services?.node.podCIDRs) ??
    besideEndpoint(scene, family, undefined)
  );
}

/** A free address beside that of an endpoint, which may be a pod's of the same node. */
function besideEndpoint(scene: Scene, family: Family, isLocal: boolean | undefined): Address | undefined {
  const endpoints = scene.ports.flatMap((port) => (port.family === family ? port.endpoints : []));
  const address = endpoints.find((endpoint) => endpoint.isLocal === isLocal)?.address;
  return address && (firstFree(parseNetwork(`${address.text}/${family === 'ipv4' ? 24 : 120}`), scene) ?? address);
}

/** Hosts of a network that are tried, from the last but one of 256: low ones are often routers and endpoints. */
const tried = 250;

function firstFree(network: Network | undefined, scene: Scene, except: readonly Network[] = []): Address | undefined {
  if (!network) return undefined;
  const known = [
    ...scene.ports.flatMap(({ endpoints, addresses }) => [...endpoints, ...addresses]),
    ...scene.links.flatMap(({ addresses }) => addresses),
  ];
  const taken = new Set(known.map(({ address }) => address.text));
  const blocks = network.prefixLength <= 16 ? 256 : 1;
  for (let block = 0; block < blocks; block++) {
    for (let host = tried; host > 1; host--) {
      const address = addressAfter(network.address, block * 256 + host);
      if (!contains(network, address)) continue;
      if (except.some((each) => contains(each, address))) break;
      if (!taken.has(address.text)) return address;
    }
  }
  return undefined;
}

/** Where to, and whether a client outside the cluster asks. */
type Asked = Pick<Question, 'to' | 'protocol' | 'namespace'> & { readonly isOutside: boolean };

/** What is asked for: an address and port, or a Service by its name, as kubectl or DNS writes it. */
function readTarget(asked: Asked, family: Family | undefined, scene: Scene): Read<Target> {
  const { to, protocol } = asked;
  const named = parseAskedAddress(to);
  if (named) {
    const { address } = named;
    const chosen = protocol ?? (named.protocol?.toLowerCase() as PacketProtocol | undefined) ?? 'tcp';
    const port = chosen === 'icmp' ? 0 : (named.port ?? onlyPort(scene.ports, address, chosen));
    if (port === undefined) {
      const own = scene.ports.filter((each) => hasAddress(each, address));
      const ports = [...new Set(own.map(nameNumber))];
      return wrong({ problem: 'which-port', to, ports, example: joinHostPort(address.text, own[0]?.port ?? 80) });
    }
    return read({ address, port, protocol: chosen, label: undefined });
  }
  const [, host = '', port] = /^(.*):(\d+)$/.exec(to) ?? [];
  if (parseAskedAddress(host)) return wrong({ problem: 'port-range', to });
  if (/^\d+(\.\d+){3}$/.test(port === undefined ? to : host)) return wrong({ problem: 'no-address', text: to });
  return readService(asked, family, scene);
}

function hasAddress({ addresses }: KnownPort, { text }: Address): boolean {
  return addresses.some(({ address }) => address.text === text);
}

function nameNumber({ port, protocol }: KnownPort): string {
  return `${port}/${protocol}`;
}

function onlyPort(ports: readonly KnownPort[], address: Address, protocol: PacketProtocol): number | undefined {
  const own = ports.filter((port) => port.protocol.toLowerCase() === protocol && hasAddress(port, address));
  const [first, ...others] = new Set(own.map(({ port }) => port));
  return others.length === 0 ? first : undefined;
}

function readService(
  { to, protocol, namespace, isOutside }: Asked,
  family: Family | undefined,
  scene: Scene,
): Read<Target> {
  const ports = findPorts(to, namespace, scene);
  if (ports.kind === 'wrong') return ports;
  const fitting = ports.value.filter(
    (port) =>
      (family === undefined || port.family === family) &&
      (protocol === undefined || protocol === 'icmp' || port.protocol.toLowerCase() === protocol),
  );
  const [first] = fitting;
  const way = first && wayTo(first, isOutside && nameInDns(to) === undefined, scene);
  if (!way) return wrong({ problem: 'no-such-port', to });
  const labels = new Set(fitting.map(({ label }) => label));
  if (labels.size > 1 && protocol !== 'icmp') {
    const examples = [...labels].map((label) => label.split('/').at(-1) ?? label);
    return wrong({ problem: 'which-port', to, ports: examples });
  }
  const chosen = protocol ?? (first.protocol.toLowerCase() as PacketProtocol);
  return read({ ...way, port: chosen === 'icmp' ? 0 : way.port, protocol: chosen, label: first.label });
}

/** The names, each "namespace/name", that are spelled like one with or without its namespace. */
export function nearNames(wanted: string, names: readonly string[]): readonly string[] {
  const known = [...new Set(names)];
  const comparable = (name: string): string => (wanted.includes('/') ? name : name.slice(name.indexOf('/') + 1));
  const close = new Set(nearest(wanted, known.map(comparable)));
  return known.filter((name) => close.has(comparable(name))).slice(0, mostSuggestions);
}

/** Whether a "namespace/name" is the wanted name, which may lack the namespace. */
export function isNamed(name: string, wanted: string): boolean {
  return name === wanted || (!wanted.includes('/') && name.endsWith(`/${wanted}`));
}

/** The ports of a Service that is named by its address, or as people, kubectl or DNS name it, each with a port or without. */
export function findPorts(what: string, namespace: string | undefined, scene: Scene): Read<readonly KnownPort[]> {
  const asked = parseAskedAddress(what);
  if (asked) {
    const found = scene.ports.filter(
      (each) =>
        hasAddress(each, asked.address) &&
        (asked.port ?? each.port) === each.port &&
        (asked.protocol ?? each.protocol) === each.protocol,
    );
    return found.length > 0 ? read(found) : wrong({ problem: 'no-service', name: what, near: [] });
  }
  const { name, port } = parseAskedName(nameInKubectl(what) ?? what);
  const wanted = name.includes('/') || namespace === undefined ? name : `${namespace}/${name}`;
  const own = scene.ports.filter((each) => isNamed(serviceOf(each), wanted));
  const services = new Set(own.map(serviceOf));
  if (services.size > 1) return wrong({ problem: 'several-services', name, names: [...services] });
  if (own.length === 0) {
    for (const each of scene.side.services?.cluster.services ?? []) {
      const service = `${each.namespace}/${each.name}`;
      if (each.skipped && isNamed(service, wanted)) return wrong({ problem: 'skipped', service, why: each.skipped });
    }
    return wrong({ problem: 'no-service', name: wanted, near: nearNames(wanted, scene.ports.map(serviceOf)) });
  }
  if (port === undefined) return read(own);
  const chosen = own.filter((each) => each.label.endsWith(`:${port}`) || String(each.port) === port);
  if (chosen.length > 0) return read(chosen);
  const known = [...new Set(own.map(nameNumber))];
  return wrong({ problem: 'no-port', service: [...services].join(''), port, ports: known });
}

/** The address by which a Service port is asked: its cluster IP, or from outside what it has for that. */
function wayTo(
  { addresses, port, nodePort, family }: KnownPort,
  isOutside: boolean,
  { links }: Scene,
): SocketAddress | undefined {
  const find = (kind: KnownPort['addresses'][number]['kind']) => addresses.find((each) => each.kind === kind)?.address;
  const outer = isOutside ? (find('load-balancer-ip') ?? find('external-ip')) : undefined;
  const own = links
    .flatMap((link) => link.addresses)
    .find((each) => each.family === family && !isLoopback(each.address));
  if (isOutside && !outer && nodePort !== undefined && own) return { address: own.address, port: nodePort };
  const address = outer ?? find('cluster-ip') ?? find('unknown');
  return address && port !== undefined ? { address, port } : undefined;
}

/** The packet that a sender sends to a target. */
export function packetOf(sender: Sender, target: Target): Packet {
  return {
    source: sender.address,
    destination: target.address,
    protocol: target.protocol,
    port: target.port,
    enters: sender.enters,
  };
}

/** What is wrong with the ends of a packet. */
interface WrongEnds {
  readonly kind: 'wrong';
  readonly faults: readonly { readonly end: 'from' | 'to'; readonly diagnostic: Diagnostic }[];
}

/** Both ends of a packet. */
export function readEnds(
  { from, to, protocol, inInterface, namespace }: Question,
  scene: Scene,
): { readonly kind: 'read'; readonly value: Omit<Trace, 'fate'> } | WrongEnds {
  const family = /^[\da-f:.]+$/i.test(from) ? (from.includes(':') ? 'ipv6' : 'ipv4') : undefined;
  const target = readTarget({ to, protocol, namespace, isOutside: from === 'external' }, family, scene);
  // Without a target, a sender of either family will do.
  const wanted = target.kind === 'read' ? [target.value.address.family] : families;
  const senders = wanted.map((each) => readSender({ from, inInterface, namespace }, each, scene));
  const sender = senders.find(({ kind }) => kind === 'read') ?? (senders[0] as Read<Sender>);
  if (target.kind === 'read' && sender.kind === 'read') {
    return { kind: 'read', value: { sender: sender.value, target: target.value } };
  }
  const ends = [{ end: 'from', ...sender } as const, { end: 'to', ...target } as const];
  return { kind: 'wrong', faults: ends.flatMap((each) => (each.kind === 'wrong' ? [each] : [])) };
}

/** Sends the packet that is asked about; or all that is wrong with it. */
export function ask(question: Question, scene: Scene): { readonly kind: 'read'; readonly value: Trace } | WrongEnds {
  const ends = readEnds(question, scene);
  if (ends.kind === 'wrong') return ends;
  const { sender, target } = ends.value;
  return { kind: 'read', value: { sender, target, fate: scene.evaluate(packetOf(sender, target)) } };
}
