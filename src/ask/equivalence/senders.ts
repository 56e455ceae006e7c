import { uniqueBy } from '../../cluster/grouping.ts';
import {
  addressAt,
  addressBits,
  hostNetwork,
  isLinkLocal,
  isLoopback,
  addressNumber,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import { isSingle, spanOf, type AddressSpan } from '../../kernel/address-range.ts';
import type { Family } from '../../kernel/family.ts';
import type { SetEntry } from '../../kernel/ipset/set-entry.ts';
import { spanOfValue } from '../../kernel/nftables/nft-delta.ts';
import { interfaceOf } from '../../packet/packet.ts';
import type { AskedSource } from '../../packet/step.ts';
import { readSender } from '../trace/read-sender.ts';
import { senderKinds, type Sender } from '../trace/question.ts';
import type { Scene } from '../trace/scene.ts';
import { representatives, type Kinds } from '../trace/address-cells.ts';
import type { Questions } from './questions.ts';

/** `other-node` is another node of the cluster, or a Pod on one. */
export type SenderPlace = 'node' | 'pod' | 'other-node' | 'outside';

export interface PlacedSender extends Sender {
  readonly place: SenderPlace;
  /** The network of all senders in its place, if one says so. */
  readonly among?: Network | undefined;
}

const placesOfKinds: { readonly [K in (typeof senderKinds)[number]]: SenderPlace } = {
  pod: 'pod',
  'remote-pod': 'other-node',
  node: 'node',
  external: 'outside',
};

/**
 * Whether the sender's packets to the address can reach a node with these own addresses. Every node programs all Services, so a
 * Pod's packet to a Service is handled on the Pod's own node: other nodes only send packets to this node's own addresses.
 */
export function existsOn(nodes: ReadonlyMap<string, Address>, sender: PlacedSender, to: Address): boolean {
  const { enters, address: own, place } = sender;
  // A loopback address belongs to each host itself, and a host's packets to itself do not pass here.
  if (enters && (isLoopback(to) || own?.text === to.text)) return false;
  if (own && isLoopback(own) && !isLoopback(to)) return false;
  // No router forwards to a link-local address.
  if (isLinkLocal(to) && (place === 'other-node' || place === 'outside') && !(own && isLinkLocal(own))) return false;
  if (place === 'other-node' && !nodes.has(to.text)) return false;
  // An address that a mode gives the node for a Service is never a client's.
  return enters !== undefined || !own || nodes.has(own.text);
}

/** The node's addresses, without those that kube-proxy adds. */
export function knownOwnAddresses(scenes: readonly Scene[]): ReadonlyMap<string, Address> {
  const own = scenes.flatMap(({ links }) => links.flatMap(({ addresses }) => addresses));
  return new Map(own.map(({ address }) => [address.text, address]));
}

/** One sender of each kind, and one for each class of sources that rules distinguish. */
export class Clients {
  readonly usual: { readonly [F in Family]: readonly PlacedSender[] };
  readonly #scene: Scene;
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
    this.#scene = scenes.find(({ side }) => side.kind !== 'dump') ?? scenes[1];
    this.#nodes = nodes;
    this.#places = placesOfSenders(scenes);
    this.#kinds = { of: (address) => this.placeOf(address), cuts: this.#places.cuts() };
    this.#held = held;
    this.#isTaken = ({ text }) => destinations.has(text) || scenes.some(({ side }) => side.endpoints.has(text));
    const usualOf = (family: Family): readonly PlacedSender[] => {
      const isRouted = scenes.some(({ side }) => side.routes[family] !== undefined);
      return senderKinds.flatMap((from) => {
        const found = [undefined, ...interfaces].flatMap((name) => this.#read(from, family, name));
        return uniqueBy(found, ({ enters }) => interfaceOf(enters, isRouted));
      });
    };
    this.usual = { ipv4: usualOf('ipv4'), ipv6: usualOf('ipv6') };
  }

  /** The place of a sender with an address that is not the node's own. */
  placeOf(address: Address): SenderPlace {
    return this.#places.find(address) ?? 'outside';
  }

  #read(from: string, family: Family, inInterface?: string): readonly PlacedSender[] {
    const sender = readSender({ from, inInterface, namespace: undefined }, family, this.#scene);
    return sender.kind === 'read' ? [placeSender(from, sender.value, this.#places, this.#nodes)] : [];
  }

  /** Senders for the sources that rules match and for the remaining classes, except addresses already covered. */
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
      const isTaken = (address: Address): boolean => alone.has(address.text) || this.#isTaken(address);
      const known = this.usual[family].flatMap(({ address, place: kind }) =>
        address && !alone.has(address.text) ? { address, kind } : [],
      );
      others = representatives(family, networks, isTaken, known, this.#kinds);
      this.#byNetworks.set(key, others);
    }
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
      const values = asksSet(asked) ? asked.map(({ address, network }) => address ?? network) : [asked];
      spans = values
        .flatMap((value) => (value && ('kind' in value ? spanOfValue(value) : spanOf(value))) ?? [])
        .filter((span) => !isSingle(span) || !this.#held.has(addressAt(span.family, span.first).text));
      this.#spans.set(asked, spans);
    }
    return spans;
  }
}

/** Finds the place of a sender called `from`. `nodes` are the node's own addresses. */
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
  return { ...sender, place, among: address && places.networkOf(address) };
}

interface PlacedNetwork {
  readonly turn: number;
  readonly place: SenderPlace;
  readonly network: Network;
}

/** Endpoints and networks with the place of their senders; the first match for an address wins. */
export class Places {
  /** By prefix length and network bits. */
  readonly #networks = new Map<string, PlacedNetwork>();
  readonly #lengths: { readonly [F in Family]: Set<number> } = { ipv4: new Set(), ipv6: new Set() };
  readonly #edges: { readonly [F in Family]: bigint[] } = { ipv4: [], ipv6: [] };

  readonly #placeOfEndpoint: (address: Address) => SenderPlace | undefined;

  constructor(
    places: Iterable<readonly [Network, SenderPlace]>,
    placeOfEndpoint: (address: Address) => SenderPlace | undefined,
  ) {
    this.#placeOfEndpoint = placeOfEndpoint;
    for (const [network, place] of places) {
      const { family, address, prefixLength } = network;
      const { first, last } = spanOf(network);
      if (first !== last) this.#edges[family].push(first, last + 1n);
      const key = prefixKey(address, prefixLength);
      this.#lengths[family].add(prefixLength);
      if (!this.#networks.has(key)) this.#networks.set(key, { turn: this.#networks.size, place, network });
    }
  }

  find(address: Address): SenderPlace | undefined {
    return this.#placeOfEndpoint(address) ?? this.#firstWith(address)?.place;
  }

  /** Where the place of networks changes; a network of one address is left out. */
  cuts(): Kinds['cuts'] {
    const cutsOf = (family: Family): readonly bigint[] =>
      [...new Set(this.#edges[family])].filter((at) => {
        const isInner = at > 0n && at < 1n << BigInt(addressBits[family]);
        const placeAt = (number: bigint) => this.#firstWith(addressAt(family, number))?.place;
        return isInner && placeAt(at - 1n) !== placeAt(at);
      });
    return { ipv4: cutsOf('ipv4'), ipv6: cutsOf('ipv6') };
  }

  networkOf(address: Address): Network | undefined {
    return this.#firstWith(address)?.network;
  }

  #firstWith(address: Address): PlacedNetwork | undefined {
    let first: PlacedNetwork | undefined;
    for (const length of this.#lengths[address.family]) {
      const found = this.#networks.get(prefixKey(address, length));
      if (found && (!first || found.turn < first.turn)) first = found;
    }
    return first;
  }
}

function prefixKey(address: Address, length: number): string {
  const { family } = address;
  return `${family} ${length} ${addressNumber(address) >> BigInt(addressBits[family] - length)}`;
}

/** The places of senders according to both sides of a node: endpoints first, then Nodes with their Pods, then all Pods. */
export function placesOfSenders(scenes: readonly Scene[]): Places {
  const at = (texts: readonly string[]) =>
    texts.flatMap((text) => {
      const address = parseAddress(text.trim());
      const network = address ? hostNetwork(address) : parseNetwork(text.trim());
      return network ? [[network, 'other-node'] as const] : [];
    });
  const compiled = scenes.flatMap(({ side }) => (side.kind === 'dump' ? [] : side));
  // Only a dump leaves an endpoint's node unknown; its routes may show it. In manifests compiled without a node, none is on the node.
  const placeOfEndpoint = (address: Address): SenderPlace | undefined => {
    for (const { side, evaluate } of scenes) {
      const [first] = side.endpoints.at(address.text);
      const isHere = compiled.length === 0 && evaluate.placeOf(address) !== 'out';
      if (first) return (first.isLocal ?? isHere) ? 'pod' : 'other-node';
    }
    return undefined;
  };
  const here = compiled.flatMap(({ node }) => node.podCIDRs.map((network) => [network, 'pod'] as const));
  const others = scenes.flatMap(({ side: { objects } }) =>
    objects.nodes.flatMap(({ object: { addresses, podCIDRs } }) =>
      at([...addresses.map(({ address }) => address), ...podCIDRs]),
    ),
  );
  const ofRules = scenes.flatMap(({ side, podTraffic }) =>
    side.kind === 'dump' ? podTraffic.networks.map((network) => [network, 'pod'] as const) : [],
  );
  const networks = [...here, ...others, ...at(compiled.flatMap(({ settings }) => settings.clusterCIDRs)), ...ofRules];
  return new Places(networks, placeOfEndpoint);
}

function asksSet(asked: AskedSource): asked is readonly SetEntry[] {
  return Array.isArray(asked);
}
