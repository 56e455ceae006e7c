import type { ServicePort } from '../cluster/model.ts';
import { factsOf, type PortAddress } from '../diff/port-facts.ts';
import { isLoopback, joinHostPort, type Address } from '../kernel/address.ts';
import { parseSocketAddress } from '../kernel/socket-address.ts';
import { listensOn, type FindListeners, type NodePortListeners } from '../kube-proxy/node-port-listeners.ts';
import { parseAskedAddress, type AskedAddress, type AskedPort } from './asked-address.ts';
import type { DecompiledPort } from './decompiled-port.ts';

/** A Service port as a question can name it, of manifests or of a dump. */
export interface AskablePort extends Omit<DecompiledPort, 'endpoints'> {
  readonly endpoints: readonly { readonly endpoint: string }[] | undefined;
}

/** A node as it is asked about: its own addresses, and those that node ports listen on. */
export interface AskedNode {
  isOwn(address: Address): boolean;
  readonly listeners: FindListeners;
}

/** What an address or a number is to a Service port. */
export type PortRole =
  | { readonly kind: PortAddress['kind'] | 'node-port' | 'health-check-node-port' }
  | { readonly kind: 'endpoint'; readonly endpoint: string };

/** An address of Services that was asked for with a port that they do not have. */
export interface ClosedPort {
  readonly address: string;
  /** "81", or "81/UDP" where the protocol was asked for. */
  readonly port: string;
  readonly owners: readonly {
    /** "namespace/name"; undefined where nothing names it. */
    readonly service: string | undefined;
    readonly isEndpoint: boolean;
    /** "80/TCP". */
    readonly ports: readonly string[];
  }[];
}

/** A node port that was asked for at an address of the node on which node ports do not listen. */
export interface DeafNodePort {
  readonly port: number;
  /** Of the Service port; undefined where nothing names it. */
  readonly label: string | undefined;
  readonly address: string;
  readonly listeners: NodePortListeners;
}

/** A Service port of manifests. */
export function askablePort(port: ServicePort): AskablePort {
  const endpoints = port.endpoints.map(({ label }) => ({ endpoint: label }));
  return { ...factsOf(port, undefined), name: port.label, endpoints };
}

/** What an address, with or without a port, is to a Service port. */
export function roleOfAddress(port: AskablePort, asked: AskedAddress, node: AskedNode): PortRole | undefined {
  if (!isMeant(port, asked.protocol)) return undefined;
  const [endpoint] = endpointsAt(port, asked);
  if (endpoint !== undefined) return { kind: 'endpoint', endpoint };
  if (listensAt(port, asked, node) === 'yes') return { kind: 'node-port' };
  if (asked.port !== undefined && asked.port !== port.port) return undefined;
  const own = port.addresses.find(({ address }) => address === asked.address.text);
  return own && { kind: own.kind };
}

/** What a port of the node is to a Service port. */
export function roleOfNumber(port: AskablePort, asked: AskedPort): PortRole | undefined {
  if (port.nodePort === asked.port && isMeant(port, asked.protocol)) return { kind: 'node-port' };
  const isHealthCheck = port.healthCheckNodePort === asked.port && (asked.protocol ?? 'TCP') === 'TCP';
  return isHealthCheck ? { kind: 'health-check-node-port' } : undefined;
}

/** Whether a bare number is a Service's own port; of a node port with that number it is more likely. */
export function hasOwnPort(port: AskablePort, asked: AskedPort): boolean {
  return !asked.isOfNode && asked.port === port.port && isMeant(port, asked.protocol);
}

function isMeant(port: AskablePort, protocol: string | undefined): boolean {
  return protocol === undefined || protocol === port.protocol;
}

/** The endpoints at an address, "ip:port"; a dump may show one by its address alone. */
function endpointsAt({ endpoints = [] }: AskablePort, { address, port }: Omit<AskedAddress, 'protocol'>) {
  const names = endpoints.map(({ endpoint }) => endpoint);
  if (port !== undefined) return names.filter((name) => name === joinHostPort(address.text, port));
  return names.filter((name) => name === address.text || parseSocketAddress(name)?.address.text === address.text);
}

/**
 * Whether a node port is reached at an address: `deaf` where the address is the node's, but not one that node ports listen
 * on.
 */
function listensAt(
  { nodePort, family, protocol }: AskablePort,
  asked: AskedAddress,
  node: AskedNode,
): 'yes' | 'deaf' | 'no' {
  if (asked.port === undefined || asked.port !== nodePort || asked.address.family !== family) return 'no';
  if (asked.protocol !== undefined && asked.protocol !== protocol) return 'no';
  // Loopback is every node's, whether or not its addresses are known.
  if (!isLoopback(asked.address) && !node.isOwn(asked.address)) return 'no';
  return listensOn(node.listeners({ family, protocol, port: nodePort }), asked.address) === false ? 'deaf' : 'yes';
}

/** The Service port whose node port a text names, at an address of the node on which it does not listen. */
export function findDeafPort(ports: readonly AskablePort[], what: string, node: AskedNode): DeafNodePort | undefined {
  const asked = parseAskedAddress(what);
  const found = asked && ports.find((port) => listensAt(port, asked, node) === 'deaf');
  if (!asked || found?.nodePort === undefined) return undefined;
  const { name, family, protocol, nodePort } = found;
  const listeners = node.listeners({ family, protocol, port: nodePort });
  // In IPVS mode a port that nothing names is called by its node port.
  const label = name.startsWith('node port ') ? undefined : name;
  return { port: nodePort, label, address: asked.address.text, listeners };
}

/** The Services of an address that was asked for with another port than theirs. */
export function findClosedPort(ports: readonly AskablePort[], what: string): ClosedPort | undefined {
  const asked = parseAskedAddress(what);
  if (asked?.port === undefined) return undefined;
  const { address } = asked;
  const owners = new Map<string, ClosedPort['owners'][number]>();
  for (const port of ports) {
    const isEndpoint = port.addresses.every((each) => each.address !== address.text);
    const endpoints = isEndpoint ? endpointsAt(port, { address, port: undefined }) : [];
    if (isEndpoint && endpoints.length === 0) continue;
    const own = isEndpoint ? endpoints.map((name) => parseSocketAddress(name)?.port) : [port.port];
    const [service] = splitName(port.name);
    const key = service === undefined ? '' : `${service} ${isEndpoint}`;
    const known = owners.get(key)?.ports ?? [];
    const shown = own.flatMap((number) => (number === undefined ? [] : [`${number}/${port.protocol}`]));
    owners.set(key, { service, isEndpoint, ports: [...new Set([...known, ...shown])] });
  }
  return owners.size === 0 ? undefined : { ...closedAt(asked, asked.port), owners: [...owners.values()] };
}

/** The address and the port that were asked for. */
export function closedAt({ address, protocol }: AskedAddress, port: number): Omit<ClosedPort, 'owners'> {
  return { address: address.text, port: protocol === undefined ? String(port) : `${port}/${protocol}` };
}

/** The Service and the port in "namespace/name:port", or in one without its namespace; nothing in an address. */
export function splitName(name: string): readonly [service?: string, port?: string] {
  const [, service, port] = /^((?:[^/: ]+\/)?[^/: ]+)(?::([^/: ]+))?$/.exec(name) ?? [];
  return service === undefined ? [] : port === undefined ? [service] : [service, port];
}
