import {
  type Address,
  addressAt,
  addressBits,
  type Family,
  hostNetwork,
  type Network,
  parseAddress,
  parseNetwork,
  prefixKey,
} from '../../kernel/address.ts';
import { spanOf } from '../../kernel/address-range.ts';
import { isIn } from '../trace/pod-networks.ts';
import type { Scene } from '../trace/scene.ts';
import type { Kinds } from '../trace/address-cells.ts';

/** `other-node`: another node of the cluster, or a Pod on one. */
export type SenderPlace = 'node' | 'pod' | 'other-node' | 'outside';

interface PlacedNetwork {
  readonly turn: number;
  readonly place: SenderPlace;
  readonly network: Network;
}

/** Finds a sender's place: that of the first endpoint or network that matches the sender's address. */
export class Places {
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
    return this.#placeOfEndpoint(address) ?? this.networkOf(address)?.place;
  }

  /** Reports whether the input names exactly this address. If so, the address's place says nothing about neighbouring addresses. */
  isHost(address: Address): boolean {
    if (this.#placeOfEndpoint(address) !== undefined) return true;
    return this.networkOf(address)?.network.prefixLength === addressBits[address.family];
  }

  cuts(): Kinds['cuts'] {
    const cutsOf = (family: Family): readonly bigint[] =>
      [...new Set(this.#edges[family])].filter((at) => {
        const isInner = at > 0n && at < 1n << BigInt(addressBits[family]);
        const placeAt = (number: bigint) => this.networkOf(addressAt(family, number))?.place;
        return isInner && placeAt(at - 1n) !== placeAt(at);
      });
    return { ipv4: cutsOf('ipv4'), ipv6: cutsOf('ipv6') };
  }

  networkOf(address: Address): PlacedNetwork | undefined {
    let first: PlacedNetwork | undefined;
    for (const length of this.#lengths[address.family]) {
      const found = this.#networks.get(prefixKey(address, length));
      if (found && (!first || found.turn < first.turn)) first = found;
    }
    return first;
  }
}

/** Returns the places of senders according to both sides of a node: endpoints first, then Nodes with their Pods, then all Pods. */
export function placesOfSenders(scenes: readonly Scene[]): Places {
  const at = (texts: readonly string[]) =>
    texts.flatMap((text) => {
      const address = parseAddress(text.trim());
      const network = address ? hostNetwork(address) : parseNetwork(text.trim());
      return network ? [[network, 'other-node'] as const] : [];
    });
  const compiled = scenes.flatMap(({ side }) => (side.kind === 'dump' ? [] : side));
  const own = compiled.flatMap(({ node }) => node.podCIDRs);
  // If nothing names an endpoint's node, the node's pod networks or a dump's routes may show whether the endpoint is here.
  const placeOfEndpoint = (address: Address): SenderPlace | undefined => {
    for (const { side, evaluate } of scenes) {
      const [first] = side.endpoints.at(address.text);
      const isHere = compiled.length === 0 ? evaluate.placeOf(address) !== 'out' : isIn(own, address);
      if (first) return (first.isLocal ?? isHere) ? 'pod' : 'other-node';
    }
    return undefined;
  };
  const here = own.map((network) => [network, 'pod'] as const);
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
