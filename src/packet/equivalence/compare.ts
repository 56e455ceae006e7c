import { addressAt, isLoopback, type Address } from '../../kernel/address.ts';
import type { AddressSpan } from '../../kernel/address-range.ts';
import { families, type Family } from '../../kernel/family.ts';
import { isSameEnd } from '../explore.ts';
import type { Fate, Packet, PacketProtocol, Way } from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import { packetOf, readSender, senderKinds, type Sender } from '../trace/question.ts';
import { wholeState, type Scene } from '../trace/scene.ts';
import { portKey, transports, type PortKey, Questions, isSingle, keyOfSpan } from './questions.ts';
import { representatives, type Only } from './representatives.ts';

/** A class of packets that the two sides treat differently, with one packet as its example. */
export interface Difference {
  readonly sender: Sender;
  readonly packet: Packet;
  readonly from: Fate;
  readonly to: Fate;
}

/** How much was compared. */
export interface Counts {
  /** Packets that were sent, one for each class. */
  readonly classes: number;
  /** Those of which neither side knows what it makes: they depend on rules that kpc does not understand. */
  readonly unknown: number;
}

/** A destination with ports that represent all of its ports. */
interface Destination {
  readonly address: Address;
  readonly ports: readonly { readonly protocol: PacketProtocol; readonly port: number }[];
}

/**
 * Sends one packet of each class to both sides. Two packets are of one class if nothing that either side asks can tell them
 * apart: destinations and ports are cut at all that occur, and sources at those that rules on the packet's way look at.
 */
export function compareScenes(from: Scene, to: Scene, found: (difference: Difference) => void, only?: Only): Counts {
  const sides = [new Questions(wholeState(from.side)), new Questions(wholeState(to.side))] as const;
  const nodes = ownAddresses([from, to]);
  const clients = new Clients(from.side.services ? from : to, [from, to], sides);
  let classes = 0;
  let unknown = 0;
  for (const family of families) {
    for (const { address, ports } of destinationsOf(family, nodes, sides, only)) {
      for (const { protocol, port } of ports) {
        const asked = new Map<string, AddressSpan>();
        const senders = [...clients.usual(family)];
        const done = new Set<string>();
        for (let at = 0; at < senders.length; at++) {
          const sender = senders[at] as Sender;
          if (isAnyones(sender, address, nodes)) {
            const packet = packetOf(sender, { address, port, protocol, label: undefined });
            const fates = [from.evaluate(packet), to.evaluate(packet)] as const;
            classes++;
            if (!endsAlike(fates, nodes)) found({ sender, packet, from: fates[0], to: fates[1] });
            else if (fates.some(({ verdict }) => verdict === 'unknown')) unknown++;
            for (const [i, questions] of sides.entries()) {
              for (const span of questions.sourcesAsked(packet, fates[i] as Fate)) asked.set(keyOfSpan(span), span);
            }
          }
          // Rules on the way of one sender's packet may distinguish others.
          if (at === senders.length - 1) senders.push(...clients.toldApart(family, asked, done));
        }
      }
    }
  }
  return { classes, unknown };
}

/** Whether a sender may send to an address by way of the node. */
function isAnyones({ enters, address: own }: Sender, to: Address, nodes: ReadonlyMap<string, Address>): boolean {
  // A loopback address is each host's own, and what a host sends to itself does not come by here.
  if (enters && (isLoopback(to) || own?.text === to.text)) return false;
  if (own && isLoopback(own) && !isLoopback(to)) return false;
  // An address that a mode gives the node for a Service is no client's.
  return enters !== undefined || !own || nodes.has(own.text);
}

/** The addresses of the node itself, without those that kube-proxy gives it. */
export function ownAddresses(scenes: readonly Scene[]): ReadonlyMap<string, Address> {
  const own = scenes.flatMap(({ links }) => links.flatMap(({ addresses }) => addresses));
  return new Map(own.map(({ address }) => [address.text, address]));
}

function* destinationsOf(
  family: Family,
  nodes: ReadonlyMap<string, Address>,
  sides: readonly Questions[],
  only: Only | undefined,
): Generator<Destination> {
  const asked = new Map(
    sides.flatMap(({ destinations }) => [...destinations]).map(([text, { address }]) => [text, address]),
  );
  const spans = sides.flatMap((side) => side.spans);
  const others = representatives(family, spans, ({ text }) => asked.has(text) || nodes.has(text));
  /** Ports that are asked for whatever the address. */
  const unbound = sides.flatMap(({ ports }) => [...ports.values()]);
  const free = freePorts(sides, unbound);
  let turn = 0;
  for (const address of new Map([...asked, ...nodes, ...others.map((each) => [each.text, each] as const)]).values()) {
    const isNode = nodes.has(address.text);
    if (address.family !== family || (only && !isNode && !only.addresses.has(address.text))) continue;
    const own = sides.flatMap(({ destinations }) => destinations.get(address.text) ?? []);
    const named = [...own.flatMap((each) => [...each.ports]), ...(isNode ? unbound.flat() : [])];
    const keys = new Set(only && isNode ? named.filter((key) => only.ports.has(key)) : named);
    // What is asked for with its ports alone is, with any other port, like the addresses around it.
    const isWhole = own.length === 0 || own.some((each) => each.isWhole);
    // Ports of any address lead to rules of the node's own addresses: elsewhere, one port of each rule is enough.
    if (isWhole && !isNode) for (const list of unbound) keys.add(list[turn++ % list.length] as PortKey);
    if (isNode || isWhole) for (const key of free) keys.add(key);
    const ports = [...keys].map((key) => {
      const [protocol, port] = key.split(' ');
      return { protocol: protocol as PacketProtocol, port: Number(port) };
    });
    yield { address, ports };
  }
}

/** One port of each protocol that nothing asks for, and a ping. */
function freePorts(sides: readonly Questions[], unbound: readonly (readonly PortKey[])[]): readonly PortKey[] {
  const bound = sides.flatMap(({ destinations }) => [...destinations.values()].flatMap(({ ports }) => [...ports]));
  const taken = new Set([...unbound.flat(), ...bound]);
  const free = (protocol: string): PortKey => {
    for (let port = 9; ; port++) if (!taken.has(portKey(protocol, port))) return portKey(protocol, port);
  };
  return [...transports.map(free), portKey('icmp', 0)];
}

/** Who sends: of each kind one, and one for each class of sources that rules tell apart. */
class Clients {
  readonly #scene: Scene;
  readonly #usual: { readonly [F in Family]: readonly Sender[] };
  readonly #taken: ReadonlySet<string>;
  readonly #known = new Map<string, readonly Sender[]>();
  readonly #byNetworks = new Map<string, readonly Address[]>();

  constructor(scene: Scene, scenes: readonly Scene[], sides: readonly Questions[]) {
    this.#scene = scene;
    const interfaces = [undefined, ...new Set(sides.flatMap((side) => [...side.interfaces]))];
    const usualOf = (family: Family): readonly Sender[] =>
      senderKinds.flatMap((from) => {
        const found = interfaces.flatMap((inInterface) => this.#read(from, family, inInterface));
        return [...new Map(found.map((sender) => [sender.enters?.interface, sender])).values()];
      });
    this.#usual = { ipv4: usualOf('ipv4'), ipv6: usualOf('ipv6') };
    this.#taken = new Set([
      ...sides.flatMap(({ destinations }) => [...destinations.keys()]),
      ...scenes.flatMap(({ endpoints }) => [...endpoints.values()].map(({ address }) => address.text)),
    ]);
  }

  #read(from: string, family: Family, inInterface?: string): readonly Sender[] {
    const key = `${family} ${from} ${inInterface}`;
    let read = this.#known.get(key);
    if (!read) {
      const sender = readSender({ from, inInterface, namespace: undefined }, family, this.#scene);
      this.#known.set(key, (read = sender.kind === 'read' ? [sender.value] : []));
    }
    return read;
  }

  usual(family: Family): readonly Sender[] {
    return this.#usual[family];
  }

  /** Senders for the sources that rules ask for, and for the classes that these leave, besides the addresses that are done. */
  toldApart(family: Family, asked: ReadonlyMap<string, AddressSpan>, done: Set<string>): readonly Sender[] {
    const own = [...asked.values()].filter((span) => span.family === family);
    const networks = own.filter((span) => !isSingle(span));
    const key = `${family} ${networks.map(keyOfSpan).sort().join()}`;
    let others = this.#byNetworks.get(key);
    if (!others) {
      const known = this.#usual[family].flatMap(({ address }) => address ?? []);
      others = representatives(family, networks, ({ text }) => this.#taken.has(text), known);
      this.#byNetworks.set(key, others);
    }
    const singles = own.filter(isSingle).map(({ first }) => addressAt(family, first));
    return [...singles, ...others].flatMap(({ text }) => {
      if (done.has(text)) return [];
      done.add(text);
      return this.#read(text, family);
    });
  }
}

/** Probabilities that iptables writes are rounded. */
const tolerance = 1e-6;

/** Whether both sides make the same of a packet. How the node is called as its source is one of its own addresses. */
export function endsAlike([from, to]: readonly [Fate, Fate], nodes: ReadonlyMap<string, Address>): boolean {
  const endOf = ({ verdict, endpoint, source }: Way): string => {
    const isKept = verdict === 'delivered' || verdict === 'forwarded' || verdict === 'local';
    const where = endpoint ? `${endpoint.address.text} ${endpoint.port}` : '';
    return isKept ? `${verdict} ${where} ${sourceWord(source, nodes)}` : verdict;
  };
  return isSameEnd(from.ways, to.ways, endOf, tolerance);
}

/** The source that receivers see: an address, or "node" for one of the node's own. */
export function sourceWord(source: Fate['source'], nodes: ReadonlyMap<string, Address>): string {
  return source === 'masqueraded' || isUnknownOwn(source) || nodes.has(source.text) ? 'node' : source.text;
}
