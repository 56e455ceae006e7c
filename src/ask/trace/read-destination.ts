import {
  headlessServices,
  hostInDns,
  hostOf,
  nameInDns,
  nameInKubectl,
  parseAskedAddress,
  parseAskedName,
} from '../describe/parse-asked.ts';
import { namelessMode } from '../describe/read-dumped.ts';
import { fullName } from '../../cluster/objects.ts';
import {
  portAddresses,
  serviceName,
  type PortAddress,
  type ShownPort,
  hasAddress,
  hasProtocol,
} from '../../cluster/model.ts';
import { compareText } from '../../kernel/compare.ts';
import { mostSuggestions, nearest } from '../../base/names.ts';
import { shellWord } from '../../base/printable.ts';
import { families, type Family, joinHostPort, parseAddress } from '../../kernel/address.ts';
import { unknownOwn, type Packet, type PacketProtocol } from '../../packet/packet.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { addressOfNode, nodeAddressFor } from './node-addresses.ts';
import type { Scene } from './scene.ts';
import {
  read,
  absent,
  wrong,
  numberOf,
  wrongDestination,
  nearNames,
  isNamed,
  type Question,
  type Destination,
  type Read,
  type Wrong,
} from './question.ts';

type DestinationQuestion = Pick<Question, 'to' | 'protocol' | 'namespace'> & { readonly isOutside: boolean };

export function readDestination(
  asked: DestinationQuestion,
  family: Family | undefined,
  scene: Scene,
): Read<Destination> {
  const { to, namespace } = asked;
  const named = parseAskedAddress(to);
  const other =
    wrongDestination(to) ?? (named ? undefined : (readNodeSocket(asked, family, scene) ?? readPortName(asked, scene)));
  if (other) return other;
  if (!named) {
    const ports = findNamedPorts(to, namespace, scene);
    if (ports.kind === 'read') return readServiceDestination(asked, ports.value, family, scene);
    return readDnsName(asked, family, scene) ?? ports;
  }
  const { address } = named;
  const protocol = asked.protocol ?? (named.protocol?.toLowerCase() as PacketProtocol | undefined) ?? 'tcp';
  const own = scene.side.ports.filter((each) => hasAddress(each, address));
  const [only, ...others] = new Set(own.filter((each) => hasProtocol(each, protocol)).map(({ port }) => port));
  const port = protocol === 'icmp' ? 0 : (named.port ?? (others.length === 0 ? only : undefined));
  if (port !== undefined) return read({ address, port, protocol, label: undefined });
  const ports = [...new Set(own.map(nameNumber))];
  return wrong({ problem: 'which-port', to, ports, example: joinHostPort(address.text, own[0]?.port ?? 80) });
}

/** Reads an address with the name of a port there, such as "10.96.0.1:https". Undefined for any other text. */
function readPortName({ to, protocol }: DestinationQuestion, { side }: Scene): Read<Destination> | undefined {
  const [, host = '', port = ''] = /^\[?(.+?)\]?:([a-z0-9-]+)$/.exec(to) ?? [];
  const address = parseAddress(host);
  const own = address ? side.ports.filter((each) => hasAddress(each, address)) : [];
  if (!address || own.length === 0) return undefined;
  const chosen = own.find(
    (each) => each.portName === port && (!protocol || protocol === 'icmp' || hasProtocol(each, protocol)),
  );
  if (chosen?.port === undefined)
    return absent({
      problem: 'no-port',
      service: to.slice(0, -port.length - 1),
      port,
      ports: [...new Set(own.map(nameNumber))],
      near: nearPorts(port, own),
    });
  const spoken = protocol ?? (chosen.protocol.toLowerCase() as PacketProtocol);
  return read({ address, port: spoken === 'icmp' ? 0 : chosen.port, protocol: spoken, label: undefined });
}

/** Reads the DNS name of a headless Service's endpoint, such as web-0.db.shop.svc; undefined if no such Service is known. */
function readDnsName(
  { to, protocol = 'tcp', namespace }: DestinationQuestion,
  family: Family | undefined,
  { side }: Scene,
): Read<Destination> | undefined {
  const asked = hostInDns(to);
  if (!asked) return undefined;
  const known = (side.kind === 'dump' ? side.named : side.cluster)?.services ?? [];
  const services = headlessServices({ ...asked, namespace: asked.namespace ?? namespace }, known);
  const [service] = services;
  if (!service) return undefined;
  const names = services.map(fullName);
  if (names.length > 1) return wrong({ problem: 'several', kind: 'Service', name: asked.service, names });
  // Only ready endpoints have DNS names.
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

/** Returns the text for a port at any address of the node. kpc trace reads "node:30080" as IPv4, so IPv6 is "node/ipv6:30080". */
export function nodeSocketText({ port, protocol }: Pick<Packet, 'port' | 'protocol'>, family: Family): string {
  const node = family === 'ipv6' ? 'node/ipv6' : 'node';
  return protocol === 'icmp' ? node : `${node}:${port}`;
}

const nodeSocket = /^node(?:\/(ipv[46]))?(?::(\d{1,5})(?:\/(tcp|udp|sctp))?)?$/i;

function parseNodeSocket(text: string) {
  const [isNode, named, port = '0', suffix] = nodeSocket.exec(text) ?? [];
  if (isNode === undefined || Number(port) > 65535) return undefined;
  const protocol = suffix?.toLowerCase() as PacketProtocol | undefined;
  return { port: Number(port), family: families.find((each) => each === named), protocol };
}

/** Reads a port of the node. Undefined for any other text. "node" without a port may be the name of a Service instead. */
function readNodeSocket(
  { to, protocol: asked, namespace }: DestinationQuestion,
  ofSender: Family | undefined,
  scene: Scene,
): Read<Destination> | undefined {
  const named = parseNodeSocket(to);
  const protocol = asked ?? named?.protocol ?? 'tcp';
  const isIcmp = protocol === 'icmp';
  if (to === 'node' && !isIcmp) {
    const isService = findNamedPorts(to, namespace, scene).kind === 'read';
    return isService
      ? undefined
      : wrong({ problem: 'which-port', to, ports: [], example: nodeSocketText({ port: 30080, protocol }, 'ipv4') });
  }
  if (!named || (named.port === 0) !== isIcmp)
    return /^node:\d+(?:\/|$)/.test(to) ? wrong({ problem: 'port-range', to }) : undefined;
  const { port, family = ofSender } = named;
  const wanted = family === undefined ? families : [family];
  const own = wanted.flatMap((each) => nodeAddressFor({ family: each, protocol, port }, scene) ?? []);
  return read({ address: own[0] ?? unknownOwn[family ?? 'ipv4'], port, protocol, label: undefined });
}

function joinNames(service: string, portName = ''): string {
  return portName === '' ? service : `${service}:${portName}`;
}

/** Returns a port's number if rules show it. Otherwise returns the port's name. */
function nameNumber({ port, portName = '', protocol }: ShownPort): string {
  return port === undefined ? portName : `${port}/${protocol}`;
}

function readServiceDestination(
  { to, protocol, isOutside }: DestinationQuestion,
  ports: readonly ShownPort[],
  family: Family | undefined,
  scene: Scene,
): Read<Destination> {
  const fitting = ports.filter(
    (port) =>
      (family ?? port.family) === port.family && (!protocol || protocol === 'icmp' || hasProtocol(port, protocol)),
  );
  const [first] = fitting;
  const way = first && wayTo(first, isOutside && nameInDns(to) === undefined, scene);
  if (!way) {
    const others = protocol && fitting.length === 0 ? [...new Set(ports.map(nameNumber))] : [];
    return absent({ problem: 'no-such-port', to, others });
  }
  const names = new Map(fitting.map(({ label, service = label, portName }) => [label, joinNames(service, portName)]));
  if (names.size > 1 && protocol !== 'icmp') return wrong({ problem: 'which-port', to, ports: [...names.values()] });
  const chosen = protocol ?? (first.protocol.toLowerCase() as PacketProtocol);
  return read({ ...way, port: chosen === 'icmp' ? 0 : way.port, protocol: chosen, label: first.label });
}

/** Finds a Service's ports by the Service's address or name. The name may be in plain, kubectl or DNS form, with or without a port. */
export function findNamedPorts(what: string, namespace: string | undefined, scene: Scene): Read<readonly ShownPort[]> {
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
  const own = side.namedPorts.filter(isWanted);
  const services = [...new Set(own.map((each) => serviceName(each)))];
  if (services.length > 1) return wrong({ problem: 'several', kind: 'Service', name, names: services });
  if (own.length === 0) {
    const others = scene.side.cluster?.services ?? [];
    const idle = others.find((each) => each.skipped && isNamed(fullName(each), wanted));
    if (idle?.skipped) return wrong({ problem: 'skipped', service: fullName(idle), why: idle.skipped });
    const number = numberOf(port ?? name);
    const node = addressOfNode(name, side)?.text;
    if (node !== undefined) {
      const use = number === undefined ? node : joinHostPort(node, number);
      return absent({ problem: 'is-node', name, kind: 'Service', use });
    }
    const names = side.namedPorts.map((each) => serviceName(each));
    const isBare = number !== undefined && (name === '' || port === undefined);
    const near = isBare ? [`node:${number}`] : nearNames(wanted, names);
    return noService(
      wanted || what,
      near,
      scene,
      side.kind === 'dump' && !side.named ? namelessMode(side.shown) : undefined,
    );
  }
  if (port === undefined) return read(own);
  const asWritten = port.toUpperCase();
  const chosen = own.filter(
    (each) => each.portName === port || String(each.port) === port || nameNumber(each) === asWritten,
  );
  if (chosen.length > 0) return read(chosen);
  const known = [...new Set(own.map(nameNumber))].filter((each) => each !== '');
  return absent({ problem: 'no-port', service: services.join(''), port, ports: known, near: nearPorts(port, own) });
}

function nearPorts(name: string, ports: readonly ShownPort[]): readonly string[] {
  return nearest(name, [...new Set(ports.flatMap(({ portName }) => portName || []))]);
}

function noService(name: string, near: readonly string[], { side }: Scene, nameless?: ProxyMode): Wrong {
  const files = side.kind === 'dump' ? side.name.split(', ').map(shellWord).join(' ') : undefined;
  return absent({
    problem: 'no-such',
    kind: 'Service',
    name,
    near,
    ...(files === undefined ? {} : { files }),
    ...(nameless ? { nameless } : {}),
  });
}

/** Returns the address to send to: the cluster IP, or for an outside client a load balancer address, external IP or node port. */
function wayTo(shown: ShownPort, isOutside: boolean, scene: Scene) {
  const { port, nodePort, family } = shown;
  const addresses = portAddresses(shown);
  const find = (kind: PortAddress['kind']) => addresses.find((each) => each.kind === kind)?.address;
  const clusterIP = find('cluster-ip');
  // If the cluster IP is known, an address of unknown kind is a load balancer address or an external IP.
  const other = clusterIP && find('unknown');
  const outer = isOutside ? (find('load-balancer-ip') ?? find('external-ip') ?? other) : undefined;
  if (isOutside && !outer && nodePort) {
    const protocol = shown.protocol.toLowerCase() as PacketProtocol;
    const own = nodeAddressFor({ family, protocol, port: nodePort }, scene);
    if (own || scene.side.kind === 'dump') return { address: own ?? unknownOwn[family], port: nodePort };
  }
  const address = outer ?? clusterIP ?? find('unknown');
  return address && port !== undefined ? { address, port } : undefined;
}
