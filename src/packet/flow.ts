import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { SocketAddress } from '../kernel/socket-address.ts';
import type { Choices } from './explore.ts';
import { negateIf, type Maybe } from './maybe.ts';
import type { Hook, PacketProtocol, Step } from './packet.ts';
import type { Routing } from './routing.ts';

/** A packet on its way through the node. Rules change it as they do in the kernel. */
export interface Flow {
  readonly family: Family;
  readonly protocol: PacketProtocol;
  source: Address;
  destination: Address;
  port: number;
  mark: number;
  hook: Hook;
  /** Priority of what sees it now. */
  priority: number;
  /** Interfaces as rules see them: '' for none, undefined if not known. */
  input: string | undefined;
  output: string | undefined;
  /** What connection tracking keeps of its connection; undefined once IPVS has taken it out of tracking. */
  connection: Connection | undefined;
  /** The virtual server that took it. */
  server: VirtualServer | undefined;
  /** Where its destination was rewritten to. */
  endpoint: SocketAddress | undefined;
  readonly routing: Routing;
  readonly choices: Choices;
  readonly steps: Step[];
}

/** The half of a packet that a chain of type nat rewrites. */
export type NatHalf = 'destination' | 'source';

interface Connection {
  /** What nat has decided: it does so once for the destination, and once for the source. */
  readonly settled: Set<NatHalf>;
  /** What nat changed. What IPVS does is not among this. */
  readonly rewritten: Set<NatHalf>;
  masqueraded: boolean;
}

/** Where connection tracking begins: what is below sees packets without a connection. */
const trackingPriority = -200;

/** States and statuses that no connection has at its first packet. */
const laterStates: ReadonlySet<string> = new Set(
  'established related expected seen-reply assured confirmed dying'.split(' '),
);

/** The states and statuses of a connection whose first packet this is, as iptables and nft call them. */
export function hasState({ connection: kept, priority }: Flow, state: string): Maybe {
  const connection = priority > trackingPriority ? kept : undefined;
  switch (state.toLowerCase()) {
    case 'new':
      return connection !== undefined;
    case 'invalid':
      return connection === undefined && priority < trackingPriority;
    case 'untracked':
      return connection === undefined && priority > trackingPriority;
    case 'dnat':
      return connection?.rewritten.has('destination') === true;
    case 'snat':
      return connection?.rewritten.has('source') === true;
    default:
      return laterStates.has(state.toLowerCase()) ? false : undefined;
  }
}

/** Whether an interface has that name; a `wildcard` at its end matches any more characters. */
export function isInterface(name: string | undefined, pattern: string, wildcard: '+' | '*'): Maybe {
  // Packets from elsewhere never come by these, whatever the interface is.
  if (name === undefined) return pattern === 'lo' || pattern === 'kube-ipvs0' ? false : undefined;
  return pattern.endsWith(wildcard) ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** What the kernel calls the type of an address. */
export function hasAddressType({ routing }: Flow, address: Address, type: string): Maybe {
  const first = address.family === 'ipv4' ? address.bits >>> 24 : (address.groups[0] ?? 0) >>> 8;
  const isMulticast = address.family === 'ipv4' ? first >= 224 && first < 240 : first === 0xff;
  const isBroadcast = address.text === '255.255.255.255';
  const isOne = !isMulticast && !isBroadcast;
  switch (type.toLowerCase()) {
    case 'local':
      return isOne && routing.isLocal(address);
    case 'unicast':
      return isOne && negateIf(true, routing.isLocal(address));
    case 'multicast':
      return isMulticast;
    case 'broadcast':
      return isBroadcast;
    default:
      return undefined;
  }
}

/** Ports that a client's kernel chooses from by default (net.ipv4.ip_local_port_range). */
const ephemeral = { first: 32768, last: 60999 };

/** Whether a client's kernel chooses its port from among these. */
export function isSourcePortIn(first: number, last: number): Maybe {
  if (last < ephemeral.first || first > ephemeral.last) return false;
  return first <= ephemeral.first && last >= ephemeral.last ? true : undefined;
}

/** Sends the packet's connection on to another address. */
export function rewriteDestination(
  flow: Flow,
  { address, port = flow.port }: { readonly address: Address; readonly port: number | undefined },
): 'accept' {
  flow.destination = address;
  flow.port = port;
  flow.endpoint = { address, port };
  flow.connection?.rewritten.add('destination');
  return 'accept';
}

/** Gives the packet an address of the node for its source: that of the interface by which it leaves. */
export function masquerade(flow: Flow): 'accept' {
  const { connection, routing } = flow;
  if (!connection) return 'accept';
  connection.rewritten.add('source');
  connection.masqueraded = true;
  flow.source = routing.sourceTo(flow.destination);
  return 'accept';
}
