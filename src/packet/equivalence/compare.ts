import { addressAt, isLoopback, type Address } from '../../kernel/address.ts';
import { spanOf, type AddressSpan } from '../../kernel/address-range.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { SetEntry } from '../../kernel/ipset/set-entry.ts';
import { spanOfValue } from '../../kernel/nftables/nft-meaning.ts';
import { isSameEnd } from '../explore.ts';
import type { AskedSource, Fate, Packet, PacketProtocol, Way } from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import { packetOf, readSender, senderKinds, type Sender } from '../trace/question.ts';
import { wholeState, type Scene } from '../trace/scene.ts';
import { type PortKey, Questions, isSingle } from './questions.ts';
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

/**
 * Sends one packet of each class to both sides. Two packets are of one class if nothing that either side asks can tell them
 * apart: destinations and ports are cut at all that occur, and sources at those that rules on the packet's way look at.
 */
export function compareScenes(from: Scene, to: Scene, found: (difference: Difference) => void, only?: Only): Counts {
  const asked = new Questions([wholeState(from.side), wholeState(to.side)]);
  const nodes = ownAddresses([from, to]);
  const endpoints = [from, to].flatMap((scene) => [...scene.endpoints.values()].map(({ address }) => address.text));
  const clients = new Clients(from.side.services ? from : to, asked, new Set(endpoints));
  const counts = { classes: 0, unknown: 0 };
  for (const [address, keys] of destinationsOf(asked, nodes, only)) {
    for (const key of keys) {
      const [name, port] = key.split(' ');
      const target = { address, port: Number(port), protocol: name as PacketProtocol, label: undefined };
      const sources = new Set<AskedSource>();
      const reached = new Map<string, Address>();
      const senders = [...clients.usual[address.family]];
      const done = new Set<string>();
      for (let at = 0; at < senders.length; at++) {
        const sender = senders[at] as Sender;
        if (isAnyones(sender, address, nodes)) {
          const packet = packetOf(sender, target);
          const fates = [from.evaluate(packet), to.evaluate(packet)] as const;
          counts.classes++;
          if (!endsAlike(fates, nodes)) found({ sender, packet, from: fates[0], to: fates[1] });
          else if (fates.some(({ verdict }) => verdict === 'unknown')) counts.unknown++;
          for (const fate of fates) {
            for (const value of fate.sources) sources.add(value);
            // An endpoint cannot answer a packet that has its own address for source.
            for (const each of fate.endpoints) reached.set(each.address.text, each.address);
          }
        }
        // Rules on the way of one sender's packet may distinguish others.
        if (at === senders.length - 1) senders.push(...clients.toldApart(address.family, sources, reached, done));
      }
    }
  }
  return counts;
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

/** One address of each class, with ports that represent all of its ports. */
function* destinationsOf(
  asked: Questions,
  nodes: ReadonlyMap<string, Address>,
  only: Only | undefined,
): Generator<readonly [Address, ReadonlySet<PortKey>]> {
  const { destinations, spans, ports: unbound } = asked;
  const known = [...[...destinations.values()].map(({ address }) => address), ...nodes.values()];
  const others = families.flatMap((family) =>
    representatives(family, spans, ({ text }) => destinations.has(text) || nodes.has(text)),
  );
  const free = asked.freePorts();
  const turns = { ipv4: 0, ipv6: 0 };
  const all = new Map([...known, ...others].map((each) => [each.text, each]));
  for (const address of [...all.values()].toSorted((a, b) => a.family.localeCompare(b.family))) {
    const isNode = nodes.has(address.text);
    if (only && !isNode && !only.addresses.has(address.text)) continue;
    const own = destinations.get(address.text);
    const named = [...(own?.ports ?? []), ...(isNode ? [...unbound.values()].flat() : [])];
    const keys = new Set(only && isNode ? named.filter((key) => only.ports.has(key)) : named);
    // What is asked for with its ports alone is, with any other port, like the addresses around it.
    const isWhole = own?.isWhole !== false;
    // Ports of any address lead to rules of the node's own addresses: elsewhere, one port of each rule is enough.
    if (isWhole && !isNode)
      for (const list of unbound.values()) keys.add(list[turns[address.family]++ % list.length] as PortKey);
    if (isNode || isWhole) for (const key of free) keys.add(key);
    yield [address, keys];
  }
}

/** Who sends: of each kind one, and one for each class of sources that rules tell apart. */
class Clients {
  readonly usual: { readonly [F in Family]: readonly Sender[] };
  readonly #scene: Scene;
  readonly #held: ReadonlySet<string>;
  readonly #isTaken: (address: Address) => boolean;
  readonly #known = new Map<string, readonly Sender[]>();
  readonly #spans = new Map<AskedSource, readonly AddressSpan[]>();
  readonly #byNetworks = new Map<string, readonly Address[]>();

  constructor(scene: Scene, { interfaces, destinations, held }: Questions, endpoints: ReadonlySet<string>) {
    this.#scene = scene;
    this.#held = held;
    this.#isTaken = ({ text }) => destinations.has(text) || endpoints.has(text);
    const usualOf = (family: Family): readonly Sender[] =>
      senderKinds.flatMap((from) => {
        const found = [undefined, ...interfaces].flatMap((name) => this.#read(from, family, name));
        return [...new Map(found.map((sender) => [sender.enters?.interface, sender])).values()];
      });
    this.usual = { ipv4: usualOf('ipv4'), ipv6: usualOf('ipv6') };
  }

  #read(from: string, family: Family, inInterface?: string): readonly Sender[] {
    const sender = readSender({ from, inInterface, namespace: undefined }, family, this.#scene);
    return sender.kind === 'read' ? [sender.value] : [];
  }

  /** Senders for the sources that rules ask for, and for the classes that these leave, besides the addresses that are done. */
  toldApart(
    family: Family,
    asked: ReadonlySet<AskedSource>,
    reached: ReadonlyMap<string, Address>,
    done: Set<string>,
  ): readonly Sender[] {
    const own = [...asked].flatMap((value) => this.#spansOf(value)).filter((span) => span.family === family);
    const networks = own.filter((span) => !isSingle(span));
    const key = [family, ...new Set(networks.map(({ first, last }) => `${first} ${last}`))].join();
    let others = this.#byNetworks.get(key);
    if (!others) {
      const known = this.usual[family].flatMap(({ address }) => address ?? []);
      others = representatives(family, networks, this.#isTaken, known);
      this.#byNetworks.set(key, others);
    }
    const singles = own.filter(isSingle).map(({ first }) => addressAt(family, first));
    return [...singles, ...reached.values(), ...others].flatMap(({ text }) => {
      if (done.has(text)) return [];
      done.add(text);
      const senders = this.#known.get(text) ?? this.#read(text, family);
      this.#known.set(text, senders);
      return senders;
    });
  }

  #spansOf(asked: AskedSource): readonly AddressSpan[] {
    let spans = this.#spans.get(asked);
    if (!spans) {
      const values = isSet(asked) ? asked.map(({ address, network }) => address ?? network) : [asked];
      spans = values
        .flatMap((value) => (value && ('kind' in value ? spanOfValue(value) : spanOf(value))) ?? [])
        .filter((span) => !isSingle(span) || !this.#held.has(addressAt(span.family, span.first).text));
      this.#spans.set(asked, spans);
    }
    return spans;
  }
}

function isSet(asked: AskedSource): asked is readonly SetEntry[] {
  return Array.isArray(asked);
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
