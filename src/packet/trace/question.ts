import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { detectLocalTraffic } from '../../cluster/local-traffic.ts';
import { nameInDns, nameInKubectl, parseAskedAddress, parseAskedName } from '../../describe/parse-asked.ts';
import type { ShownPort } from '../../describe/shown-port.ts';
import type { PortAddress } from '../../diff/port-facts.ts';
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
import type { Fate, Packet, PacketProtocol } from '../packet.ts';
import { serviceOf, type Scene } from './scene.ts';

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
  const { services } = scene.side;
  const sender = (words: string, address: Address, isPod: boolean): Read<Sender> => {
    const usual = isPod ? podInterface(scene, family) : services && 'eth0';
    return read({ words, address, enters: { interface: inInterface ?? usual } });
  };
  const kind = senderKinds.find((each) => each === from);
  if (kind === 'node') return read({ words: 'the node itself', address: undefined, enters: undefined });
  if (kind) {
    const words = strangers[kind];
    const found = findStranger(kind, family, scene);
    if (found) return sender(words, found, kind === 'pod');
    return nodesUnnamed(scene) ?? wrong({ problem: 'no-address-for', sender: words });
  }
  const address = parseAddress(from);
  if (address) {
    if (address.family !== family) return wrong({ problem: 'other-family', from });
    const isOwn = [...scene.links, ...scene.side.state.links].some(({ addresses }) =>
      addresses.some((each) => each.address.text === address.text),
    );
    if (inInterface === undefined && isOwn) return read({ words: 'the node itself', address, enters: undefined });
    const isPod = services?.node.podCIDRs.some((network) => contains(network, address)) === true;
    return sender(isPod ? 'a pod on this node' : 'a client', address, isPod);
  }
  if (dottedQuad.test(from)) return wrong({ problem: 'no-address', text: from });
  const name = nameOfPod(from, namespace);
  const pod = scene.pods.get(name);
  if (!pod) {
    const near = nearest(name, [...scene.pods.keys()]);
    return wrong({ problem: 'no-sender', name, from, kinds: senderKinds, near });
  }
  const own = pod.status?.addresses.find((each) => each.family === family);
  if (!own) return wrong({ problem: 'no-address-of-pod', pod: name, family });
  const isHere = pod.spec.nodeName !== '' && pod.spec.nodeName === services?.node.name;
  return nodesUnnamed(scene) ?? sender(`Pod ${name}${isHere ? '' : ' on another node'}`, own, isHere);
}

const dottedQuad = /^\d+(\.\d+){3}$/;

/** The "namespace/name" of a Pod that is named with or without its kind and namespace. */
export function nameOfPod(words: string, namespace: string | undefined): string {
  const name = words.replace(/^pods?\//, '');
  return name.includes('/') ? name : `${namespace ?? 'default'}/${name}`;
}

/** Senders for which kpc finds an address. */
const strangers = {
  pod: 'a pod on this node',
  'remote-pod': 'a pod on another node',
  external: 'a client outside the cluster',
} as const;

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

/** Addresses of documentation, which no cluster gives to anything (RFC 5737, RFC 3849). */
const outside = { ipv4: parseNetwork('198.51.100.0/24'), ipv6: parseNetwork('2001:db8:ffff::/64') };

/** An address of such a sender that nothing in the cluster has. */
function findStranger(kind: keyof typeof strangers, family: Family, scene: Scene): Address | undefined {
  const { services } = scene.side;
  const podCIDRs = services?.node.podCIDRs ?? [];
  /** An address beside that of an endpoint. */
  const beside = (isLocal: boolean | undefined): Address | undefined => {
    const own = [...scene.endpoints.values()].find(
      (each) => each.address.family === family && each.isLocal === isLocal,
    );
    return (
      own && (firstFree(parseNetwork(`${own.address.text}/${family === 'ipv4' ? 24 : 120}`), scene) ?? own.address)
    );
  };
  switch (kind) {
    case 'pod': {
      const found = firstFree(
        podCIDRs.find((network) => network.family === family),
        scene,
      );
      // A dump says of no endpoint where it is.
      return found ?? beside(services ? true : undefined);
    }
    case 'remote-pod': {
      const wide = services?.settings.clusterCIDRs.flatMap((text) => parseNetwork(text.trim()) ?? []) ?? [];
      const network = wide.find((each) => each.family === family);
      return beside(false) ?? firstFree(network, scene, podCIDRs) ?? beside(undefined);
    }
    case 'external':
      return firstFree(outside[family], scene);
  }
}

/** Hosts of a network that are tried, from the last but one of 256: low ones are often routers and endpoints. */
const tried = 250;

function firstFree(network: Network | undefined, scene: Scene, except: readonly Network[] = []): Address | undefined {
  if (!network) return undefined;
  const taken = new Set([
    ...[...scene.endpoints.values()].map(({ address }) => address.text),
    ...scene.ports.flatMap(({ addresses }) => addresses.map(({ address }) => address)),
    ...scene.links.flatMap(({ addresses }) => addresses.map(({ address }) => address.text)),
  ]);
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
  const { to, namespace } = asked;
  const named = parseAskedAddress(to);
  if (!named) {
    const [, host = to] = /^(.*):\d+$/.exec(to) ?? [];
    if (parseAskedAddress(host)) return wrong({ problem: 'port-range', to });
    if (dottedQuad.test(host)) return wrong({ problem: 'no-address', text: to });
    const ports = findPorts(to, namespace, scene);
    return ports.kind === 'wrong' ? ports : readService(asked, ports.value, family, scene);
  }
  const { address } = named;
  const protocol = asked.protocol ?? (named.protocol?.toLowerCase() as PacketProtocol | undefined) ?? 'tcp';
  const own = scene.ports.filter((each) => hasAddress(each, address));
  const [only, ...others] = new Set(own.filter((each) => isOf(each, protocol)).map(({ port }) => port));
  const port = protocol === 'icmp' ? 0 : (named.port ?? (others.length === 0 ? only : undefined));
  if (port !== undefined) return read({ address, port, protocol, label: undefined });
  const ports = [...new Set(own.map(nameNumber))];
  return wrong({ problem: 'which-port', to, ports, example: joinHostPort(address.text, own[0]?.port ?? 80) });
}

function hasAddress({ addresses }: ShownPort, { text }: Address): boolean {
  return addresses.some(({ address }) => address === text);
}

function isOf(port: ShownPort, protocol: PacketProtocol): boolean {
  return port.protocol.toLowerCase() === protocol;
}

function nameNumber({ port, protocol }: ShownPort): string {
  return `${port}/${protocol}`;
}

function readService(
  { to, protocol, isOutside }: Asked,
  ports: readonly ShownPort[],
  family: Family | undefined,
  scene: Scene,
): Read<Target> {
  const fitting = ports.filter(
    (port) => (family ?? port.family) === port.family && (!protocol || protocol === 'icmp' || isOf(port, protocol)),
  );
  const [first] = fitting;
  const way = first && wayTo(first, isOutside && nameInDns(to) === undefined, scene);
  if (!way) return wrong({ problem: 'no-such-port', to });
  const labels = [...new Set(fitting.map(({ name }) => name))];
  if (labels.length > 1 && protocol !== 'icmp') {
    return wrong({ problem: 'which-port', to, ports: labels.map((label) => label.replace(/^.*\//, '')) });
  }
  const chosen = protocol ?? (first.protocol.toLowerCase() as PacketProtocol);
  return read({ ...way, port: chosen === 'icmp' ? 0 : way.port, protocol: chosen, label: first.name });
}

/** The names, each "namespace/name", that are spelled like one with or without its namespace. */
export function nearNames(wanted: string, names: readonly string[]): readonly string[] {
  const bare = (name: string): string => (wanted.includes('/') ? name : name.slice(name.indexOf('/') + 1));
  const near = [...new Set(names)].filter((name) => nearest(wanted, [bare(name)]).length > 0);
  return near.slice(0, mostSuggestions);
}

/** Whether a "namespace/name" is the wanted name, which may lack the namespace. */
export function isNamed(name: string, wanted: string): boolean {
  return name === wanted || (!wanted.includes('/') && name.endsWith(`/${wanted}`));
}

/** The ports of a Service that is named by its address, or as people, kubectl or DNS name it, each with a port or without. */
export function findPorts(what: string, namespace: string | undefined, scene: Scene): Read<readonly ShownPort[]> {
  const asked = parseAskedAddress(what);
  if (asked) {
    const found = scene.ports.filter(
      (each) =>
        hasAddress(each, asked.address) &&
        (asked.port ?? each.port) === each.port &&
        (asked.protocol ?? each.protocol) === each.protocol,
    );
    return found.length > 0 ? read(found) : wrong({ problem: 'no-such', kind: 'Service', name: what, near: [] });
  }
  const { name, port } = parseAskedName(nameInKubectl(what) ?? what);
  const wanted = name.includes('/') || namespace === undefined ? name : `${namespace}/${name}`;
  const own = scene.ports.filter((each) => isNamed(serviceOf(each.name), wanted));
  const services = [...new Set(own.map((each) => serviceOf(each.name)))];
  if (services.length > 1) return wrong({ problem: 'several', kind: 'Service', name, names: services });
  if (own.length === 0) {
    const others = scene.side.services?.cluster.services ?? [];
    const idle = others.find((each) => each.skipped && isNamed(`${each.namespace}/${each.name}`, wanted));
    if (idle?.skipped)
      return wrong({ problem: 'skipped', service: `${idle.namespace}/${idle.name}`, why: idle.skipped });
    const names = scene.ports.map((each) => serviceOf(each.name));
    return wrong({ problem: 'no-such', kind: 'Service', name: wanted, near: nearNames(wanted, names) });
  }
  if (port === undefined) return read(own);
  const chosen = own.filter((each) => each.name.endsWith(`:${port}`) || String(each.port) === port);
  if (chosen.length > 0) return read(chosen);
  const known = [...new Set(own.map(nameNumber))];
  return wrong({ problem: 'no-port', service: services.join(''), port, ports: known });
}

/** The address by which a Service port is asked: its cluster IP, or from outside what it has for that. */
function wayTo({ addresses, port, nodePort, family }: ShownPort, isOutside: boolean, { links }: Scene) {
  const find = (kind: PortAddress['kind']) => addresses.find((each) => each.kind === kind)?.address;
  const outer = isOutside ? (find('load-balancer-ip') ?? find('external-ip')) : undefined;
  const own = links
    .flatMap((link) => link.addresses)
    .find((each) => each.family === family && !isLoopback(each.address));
  if (isOutside && outer === undefined && nodePort !== undefined && own)
    return { address: own.address, port: nodePort };
  const address = parseAddress(outer ?? find('cluster-ip') ?? find('unknown') ?? '');
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

/** Sends the packet that is asked about; or all that is wrong with its ends. */
export function ask(
  { from, to, protocol, inInterface, namespace }: Question,
  scene: Scene,
):
  | { readonly kind: 'read'; readonly value: Trace }
  | {
      readonly kind: 'wrong';
      readonly faults: readonly { readonly end: 'from' | 'to'; readonly diagnostic: Diagnostic }[];
    } {
  const asked = { to, protocol, namespace, isOutside: from === 'external' };
  const target = readTarget(asked, parseAddress(from)?.family, scene);
  // Without a target, a sender of either family will do.
  const wanted = target.kind === 'read' ? [target.value.address.family] : families;
  const senders = wanted.map((each) => readSender({ from, inInterface, namespace }, each, scene));
  const sender = senders.find(({ kind }) => kind === 'read') ?? (senders[0] as Read<Sender>);
  if (target.kind === 'read' && sender.kind === 'read') {
    const fate = scene.evaluate(packetOf(sender.value, target.value));
    return { kind: 'read', value: { sender: sender.value, target: target.value, fate } };
  }
  const ends = [{ end: 'from', ...sender } as const, { end: 'to', ...target } as const];
  return { kind: 'wrong', faults: ends.flatMap((each) => (each.kind === 'wrong' ? [each] : [])) };
}
