import { type Address, addressAt, type Family, isLinkLocal, isLoopback, type Network } from '../../kernel/address.ts';
import { isSingle, spanOf, type AddressSpan } from '../../kernel/address-range.ts';
import { uniqueBy } from '../../cluster/grouping.ts';
import { isLinkNamed } from '../../kernel/link/link.ts';
import type { SetEntry } from '../../kernel/ipset/set-entry.ts';
import { spanOfValue } from '../../kernel/nftables/nft-delta.ts';
import { interfaceOf } from '../../packet/packet.ts';
import type { AskedSource } from '../../packet/step.ts';
import { readSender } from '../trace/read-sender.ts';
import { senderKinds, type Sender } from '../trace/question.ts';
import type { Scene } from '../trace/scene.ts';
import { representatives, type Kinds } from '../trace/address-cells.ts';
import { placesOfSenders, type Places, type SenderPlace } from './places.ts';
import type { Questions } from './questions.ts';

export interface PlacedSender extends Sender {
  readonly place: SenderPlace;
  /** The network that decides the sender's place, if a network does. */
  readonly among?: Network | undefined;
  readonly isMoved?: boolean;
}

const placesOfKinds: { readonly [K in (typeof senderKinds)[number]]: SenderPlace } = {
  pod: 'pod',
  'remote-pod': 'other-node',
  node: 'node',
  external: 'outside',
};

/**
 * Reports whether the sender's packets to the address can reach a node that has `nodes` as its own addresses. Every node programs all
 * Services, so a Pod's packets to a Service are handled on the Pod's own node. Other nodes send packets only to this node's own addresses.
 */
export function existsOn(nodes: ReadonlyMap<string, Address>, sender: PlacedSender, to: Address): boolean {
  const { enters, address: own, place } = sender;
  // A packet from the node's own address never comes in from another host.
  if (enters && own && nodes.has(own.text)) return false;
  // Every host has its own loopback addresses, and packets from a host to itself do not pass this node.
  if (enters && (isLoopback(to) || own?.text === to.text)) return false;
  if (own && isLoopback(own) && !isLoopback(to)) return false;
  // No router forwards packets to a link-local address.
  if (isLinkLocal(to) && (place === 'other-node' || place === 'outside') && !(own && isLinkLocal(own))) return false;
  if (place === 'other-node' && !nodes.has(to.text)) return false;
  // Some modes give the node addresses of Services. No client has such an address.
  return enters !== undefined || !own || nodes.has(own.text);
}

/** Returns the node's addresses, except those that kube-proxy adds. */
export function knownOwnAddresses(scenes: readonly Scene[]): ReadonlyMap<string, Address> {
  const own = scenes.flatMap(({ links }) => links.flatMap(({ addresses }) => addresses));
  return new Map(own.map(({ address }) => [address.text, address]));
}

interface ClientSide {
  readonly scene: Scene;
  readonly places: Places;
  readonly own: ReadonlyMap<string, Address>;
}

export class Clients {
  readonly usual: { readonly [F in Family]: readonly PlacedSender[] };
  /** A dump is last in this list, because it shows the least about senders. */
  readonly #sides: readonly ClientSide[];
  readonly #links: { readonly ofPods: readonly string[]; readonly others: readonly string[] };
  readonly #held: ReadonlySet<string>;
  readonly #isTaken: (address: Address) => boolean;
  readonly #known = new Map<string, readonly PlacedSender[]>();
  readonly #spans = new Map<AskedSource, readonly AddressSpan[]>();
  readonly #byNetworks = new Map<string, readonly Address[]>();
  readonly #nodes: ReadonlyMap<string, Address>;
  readonly #places: Places;
  readonly #kinds: Kinds;

  constructor(
    scenes: readonly [Scene, Scene],
    { interfaces, destinations, held }: Questions,
    nodes: ReadonlyMap<string, Address>,
  ) {
    const ordered = scenes[0].side.kind === 'dump' ? scenes.toReversed() : scenes;
    this.#sides = ordered.map((scene) => {
      return { scene, places: placesOfSenders([scene]), own: knownOwnAddresses([scene]) };
    });
    const podLinks = scenes.flatMap(({ podTraffic }) => podTraffic.interfaces);
    const isOfPods = (link: string): boolean => podLinks.some((name) => isLinkNamed(name, link));
    this.#links = {
      ofPods: [...interfaces].filter(isOfPods),
      others: [...interfaces].filter((link) => !isOfPods(link)),
    };
    this.#nodes = nodes;
    this.#places = placesOfSenders(scenes);
    this.#kinds = { of: (address) => this.placeOf(address), cuts: this.#places.cuts() };
    this.#held = held;
    this.#isTaken = ({ text }) =>
      destinations.has(text) || nodes.has(text) || scenes.some(({ side }) => side.endpoints.has(text));
    const usualOf = (family: Family): readonly PlacedSender[] =>
      senderKinds.flatMap((from) => this.#read(from, family, this.#sides[0]?.scene));
    this.usual = { ipv4: usualOf('ipv4'), ipv6: usualOf('ipv6') };
  }

  placeOf(address: Address): SenderPlace {
    return this.#places.find(address) ?? 'outside';
  }

  #read(from: string, family: Family, scene: Scene | undefined): readonly PlacedSender[] {
    const sender = scene && readSender({ from, inInterface: undefined, namespace: undefined }, family, scene);
    if (sender?.kind !== 'read') return [];
    const { address } = sender.value;
    if (address && this.#runsElsewhere(address)) return [];
    const isMoved = address !== undefined && this.#differs(({ places }) => places.networkOf(address)?.place);
    const placed = { ...placeSender(from, sender.value, this.#places, this.#nodes), isMoved };
    const { enters, place } = placed;
    if (!enters) return address && this.#differs(({ own }) => own.has(address.text)) ? [] : [placed];
    const { ofPods, others } = this.#links;
    const by = (link: string): typeof enters => ({ ...enters, interface: link });
    const ways = place === 'pod' && ofPods.length > 0 ? ofPods.map(by) : [enters, ...others.map(by)];
    const isRouted = this.#sides.some((side) => side.scene.side.routes[family] !== undefined);
    return uniqueBy(ways, (way) => interfaceOf(way, isRouted)).map((way) => ({ ...placed, enters: way }));
  }

  /** Reports whether the sender is an endpoint that runs on this node according to one side, and elsewhere according to the other. */
  #runsElsewhere({ text }: Address): boolean {
    return new Set(this.#sides.flatMap(({ scene }) => scene.side.endpoints.at(text)[0]?.isLocal ?? [])).size > 1;
  }

  /** Reports whether `read` tells the sides' manifests apart. Dumps and bundles never count, because they show too little. */
  #differs(read: (side: ClientSide) => SenderPlace | boolean | undefined): boolean {
    return this.#sides.every(({ scene }) => scene.side.kind === 'manifests') && new Set(this.#sides.map(read)).size > 1;
  }

  #sceneOf(address: Address): Scene | undefined {
    const place = this.#places.find(address);
    const showing = this.#sides.find(({ places }) => places.find(address) === place);
    return (showing ?? this.#sides[0])?.scene;
  }

  /** Returns senders for the sources that rules match and for the remaining classes. Leaves out addresses already covered. */
  toldApart(
    family: Family,
    asked: ReadonlySet<AskedSource>,
    reached: ReadonlyMap<string, Address>,
    done: Set<string>,
  ): readonly PlacedSender[] {
    const own = [...asked].flatMap((value) => this.#spansOf(value)).filter((span) => span.family === family);
    const networks = own.filter((span) => !isSingle(span));
    const singles = own.filter(isSingle).map(({ first }) => addressAt(family, first));
    const alone = new Set(singles.flatMap((each) => (this.#isTaken(each) ? [] : each.text)));
    const key = [family, ...new Set(networks.map(({ first, last }) => `${first} ${last}`)), ...alone].join();
    let others = this.#byNetworks.get(key);
    if (!others) {
      const isTaken = (address: Address): boolean =>
        alone.has(address.text) || this.#isTaken(address) || this.#places.isHost(address);
      const known = this.usual[family].flatMap(({ address, place: kind }) =>
        address && !alone.has(address.text) ? { address, kind } : [],
      );
      others = representatives(family, networks, isTaken, known, this.#kinds);
      this.#byNetworks.set(key, others);
    }
    return [...singles, ...reached.values(), ...others].flatMap((address) => {
      const { text } = address;
      if (done.has(text)) return [];
      done.add(text);
      const senders = this.#known.get(text) ?? this.#read(text, family, this.#sceneOf(address)).slice(0, 1);
      this.#known.set(text, senders);
      return senders;
    });
  }

  #spansOf(asked: AskedSource): readonly AddressSpan[] {
    let spans = this.#spans.get(asked);
    if (!spans) {
      const values = asksSet(asked) ? asked.map(({ address, network }) => address ?? network) : [asked];
      spans = values
        .flatMap((value) => (value && ('kind' in value ? spanOfValue(value) : spanOf(value))) ?? [])
        .filter((span) => !isSingle(span) || !this.#held.has(addressAt(span.family, span.first).text));
      this.#spans.set(asked, spans);
    }
    return spans;
  }
}

export function placeSender(
  from: string,
  sender: Sender,
  places: Places,
  nodes: ReadonlyMap<string, Address>,
): PlacedSender {
  const { address, enters } = sender;
  const kind = senderKinds.find((each) => each === from);
  const isOwn = !enters || !address || nodes.has(address.text);
  const place = kind ? placesOfKinds[kind] : isOwn ? 'node' : (places.find(address) ?? 'outside');
  return { ...sender, place, among: address && places.networkOf(address)?.network };
}

function asksSet(asked: AskedSource): asked is readonly SetEntry[] {
  return Array.isArray(asked);
}
