import { addressAt, isLoopback, type Address } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { Fate, Packet, PacketProtocol, Way } from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import { packetOf, readSender, senderKinds, type Sender } from '../trace/question.ts';
import { wholeState, type Scene } from '../trace/scene.ts';
import { portKey, readQuestions, transports, type PortKey, type Questions } from './questions.ts';
import { type AddressSpan } from '../../kernel/address-range.ts';
import { isSingle, keyOfSpan, representatives } from './spans.ts';
import { isSameEnd } from '../explore.ts';

/** A class of packets that the two sides treat differently, with one packet as its example. */
export interface Difference {
  readonly sender: Sender;
  readonly packet: Packet;
  readonly from: Fate;
  readonly to: Fate;
}

export interface Counts {
  /** Packets that were sent, one for each class. */
  readonly classes: number;
  /** Those of which neither side knows what it makes: they depend on rules that kpc does not understand. */
  readonly unknown: number;
}

/** What of a node's packets is asked about: those to these addresses, and to these ports of the node itself. */
export interface Only {
  readonly addresses: ReadonlySet<string>;
  readonly ports: ReadonlySet<PortKey>;
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
  const sides = [readQuestions(wholeState(from.side)), readQuestions(wholeState(to.side))] as const;
  const nodes = ownAddresses([from, to]);
  const clients = new Clients(from.side.services ? from : to, [from, to], sides);
  let classes = 0;
  let unknown = 0;
  for (const family of families) {
    for (const { address, ports } of destinationsOf(family, nodes, sides, only)) {
      for (const { protocol, port } of ports) {
        const asked = new Map<string, AddressSpan>();
        const senders = clients.of(family, asked);
        for (const sender of senders) {
          // A loopback address is each host's own, and what a host sends to itself does not come by here.
          if (sender.enters && (isLoopback(address) || sender.address?.text === address.text)) continue;
          if (sender.address && isLoopback(sender.address) && !isLoopback(address)) continue;
          // An address that a mode gives the node for a Service is no client's.
          if (!sender.enters && sender.address && !nodes.has(sender.address.text)) continue;
          const packet = packetOf(sender, { address, port, protocol, label: undefined });
          const fates = [from.evaluate(packet), to.evaluate(packet)] as const;
          classes++;
          if (!endsAlike(fates, nodes)) found({ sender, packet, from: fates[0], to: fates[1] });
          else if (fates.some(({ verdict }) => verdict === 'unknown')) unknown++;
          for (const [i, questions] of sides.entries()) {
            for (const span of questions.sourcesAsked(packet, fates[i] as Fate)) asked.set(keyOfSpan(span), span);
          }
        }
      }
    }
  }
  return { classes, unknown };
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
  const others = representatives(
    family,
    sides.flatMap(({ spans }) => spans),
    ({ text }) => asked.has(text) || nodes.has(text),
  );
  const ports = new PortPlan(sides);
  let turn = 0;
  for (const address of new Map([...asked, ...nodes, ...others.map((each) => [each.text, each] as const)]).values()) {
    const isNode = nodes.has(address.text);
    if (address.family !== family || (only && !isNode && !only.addresses.has(address.text))) continue;
    const own = sides.flatMap(({ destinations }) => destinations.get(address.text) ?? []);
    const named = [...own.flatMap((each) => [...each.ports]), ...(isNode ? ports.unbound.flat() : [])];
    const keys = new Set(only && isNode ? named.filter((key) => only.ports.has(key)) : named);
    // What is asked for with its ports alone is, with any other port, like the addresses around it.
    const isWhole = own.length === 0 || own.some((each) => each.isWhole);
    // Ports of any address lead to rules of the node's own addresses: elsewhere, one port of each rule is enough.
    if (isWhole && !isNode) for (const list of ports.unbound) keys.add(list[turn++ % list.length] as PortKey);
    if (isNode || isWhole) for (const key of ports.others) keys.add(key);
    yield {
      address,
      ports: [...keys].map((key) => {
        const [protocol, port] = key.split(' ');
        return { protocol: protocol as PacketProtocol, port: Number(port) };
      }),
    };
  }
}

/** Ports that are no one's alone. */
class PortPlan {
  /** Those that are asked for whatever the address. */
  readonly unbound: readonly (readonly PortKey[])[];
  /** One of each protocol that nothing asks for, and a ping. */
  readonly others: readonly PortKey[];

  constructor(sides: readonly Questions[]) {
    this.unbound = sides.flatMap(({ ports }) => ports);
    const taken = new Set([
      ...this.unbound.flat(),
      ...sides.flatMap(({ destinations }) => [...destinations.values()].flatMap(({ ports }) => [...ports])),
    ]);
    const free = (protocol: string): PortKey => {
      for (let port = 9; ; port++) if (!taken.has(portKey(protocol, port))) return portKey(protocol, port);
    };
    this.others = [...transports.map(free), portKey('icmp', 0)];
  }
}

/** Who sends: of each kind one, and one for each class of sources that rules tell apart. */
class Clients {
  readonly #scene: Scene;
  readonly #interfaces: readonly string[];
  readonly #usual: { readonly [F in Family]: readonly Sender[] };
  readonly #taken: ReadonlySet<string>;
  readonly #byAddress = new Map<string, Sender | undefined>();
  readonly #byNetworks = new Map<string, readonly Address[]>();

  constructor(scene: Scene, scenes: readonly Scene[], sides: readonly Questions[]) {
    this.#scene = scene;
    this.#interfaces = [...new Set(sides.flatMap(({ interfaces }) => [...interfaces]))];
    this.#usual = { ipv4: this.#usualOf('ipv4'), ipv6: this.#usualOf('ipv6') };
    this.#taken = new Set([
      ...sides.flatMap(({ destinations }) => [...destinations.keys()]),
      ...scenes.flatMap(({ ports }) => ports.flatMap(({ endpoints }) => endpoints.map(({ address }) => address.text))),
    ]);
  }

  #usualOf(family: Family): readonly Sender[] {
    return senderKinds.flatMap((from) => {
      const found = [undefined, ...this.#interfaces].flatMap((inInterface) => {
        const sender = readSender({ from, inInterface, namespace: undefined }, family, this.#scene);
        return sender.kind === 'read' ? [sender.value] : [];
      });
      return [...new Map(found.map((sender) => [sender.enters?.interface, sender])).values()];
    });
  }

  /** While they are taken, `asked` fills with the sources that rules ask for, which more of them stand for. */
  *of(family: Family, asked: ReadonlyMap<string, AddressSpan>): Generator<Sender> {
    yield* this.#usual[family];
    const done = new Set<string>();
    for (let isNew = true; isNew;) {
      isNew = false;
      for (const { text } of this.#sources(family, [...asked.values()])) {
        if (done.has(text)) continue;
        done.add(text);
        isNew = true;
        const sender = this.#senderAt(text, family);
        if (sender) yield sender;
      }
    }
  }

  #sources(family: Family, asked: readonly AddressSpan[]): readonly Address[] {
    const own = asked.filter((span) => span.family === family);
    const singles = own.filter(isSingle).map(({ first }) => addressAt(family, first));
    const networks = own.filter((span) => !isSingle(span));
    const key = `${family} ${networks.map(keyOfSpan).sort().join()}`;
    let others = this.#byNetworks.get(key);
    if (!others) {
      const known = this.#usual[family].flatMap(({ address }) => address ?? []);
      this.#byNetworks.set(
        key,
        (others = representatives(family, networks, ({ text }) => this.#taken.has(text), known)),
      );
    }
    return [...singles, ...others];
  }

  #senderAt(text: string, family: Family): Sender | undefined {
    if (!this.#byAddress.has(text)) {
      const sender = readSender({ from: text, inInterface: undefined, namespace: undefined }, family, this.#scene);
      this.#byAddress.set(text, sender.kind === 'read' ? sender.value : undefined);
    }
    return this.#byAddress.get(text);
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
