import type { Family } from '../../kernel/family.ts';
import type { Element } from '../../kernel/nftables/element.ts';
import type { Target } from '../../kernel/nftables/expression.ts';
import { keyMeaning } from '../../kernel/nftables/meaning.ts';
import type { NftChain, NftMap, NftSet } from '../../kernel/nftables/table.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isKubeProxyTable, maxNftComment, nftSets, parseNftName } from '../../kube-proxy/nftables.ts';

/** Which Service port each item of nftables is there for: see Owners. */
export interface NftOwners {
  ofNftChain(chain: Pick<NftChain, 'name' | 'origin'>): string | undefined;
  ofNftSet(set: Pick<NftSet, 'name' | 'origin'>): string | undefined;
  ofNftElement(family: Family, set: Pick<NftSet, 'name'>, element: Element): string | undefined;
}

/**
 * Finds the owners of the items of some states. An item's own origin wins, then its name, the chain that an element
 * leads to, or its comment; a cluster IP or an endpoint belongs to the first of the Service ports that have it.
 */
export function findNftOwners(states: readonly KernelState[]): NftOwners {
  let index: NftIndex | undefined;
  return {
    ofNftChain: ({ name, origin }) => origin?.servicePort ?? parseNftName(name)?.label,
    ofNftSet: ({ name, origin }) => origin?.servicePort ?? parseNftName(name)?.label,
    ofNftElement: (family, set, element) =>
      element.origin?.servicePort ??
      labelOfValue(element) ??
      (index ??= indexStates(states)).find(family, set.name, element),
  };
}

/** The same owners where some labels are called by other names. */
export function renameNftOwners(owners: NftOwners, rename: (label: string | undefined) => string | undefined) {
  return {
    ofNftChain: (chain) => rename(owners.ofNftChain(chain)),
    ofNftSet: (set) => rename(owners.ofNftSet(set)),
    ofNftElement: (family, set, element) => rename(owners.ofNftElement(family, set, element)),
  } satisfies NftOwners;
}

/** The Service port of the chain that an element leads to. */
function labelOfValue({ value }: Element): string | undefined {
  return value?.kind === 'goto' || value?.kind === 'jump' ? parseNftName(value.chain)?.label : undefined;
}

/** What the items of some states tell together. */
class NftIndex {
  /** Labels by family, set and key. */
  readonly #origins = new Map<string, string>();
  /** Labels by family and address. */
  readonly #addresses = new Map<string, string>();
  /** Labels by family, protocol and endpoint. */
  readonly #endpoints = new Map<string, string>();
  readonly #labels = new Set<string>();

  addOrigins(family: Family, set: NftSet | NftMap): void {
    for (const { key, origin } of set.elements) {
      if (!origin) continue;
      const at = `${family} ${set.name} ${keyMeaning(key)}`;
      if (!this.#origins.has(at)) this.#origins.set(at, origin.servicePort);
    }
  }

  addChain(family: Family, chain: NftChain): void {
    const name = parseNftName(chain.name);
    if (!name) return;
    this.#labels.add(name.label);
    for (const { address, port } of targetsOf(chain)) {
      keepFirst(this.#endpoints, `${family} ${name.protocol.toLowerCase()} ${address.text} ${port}`, name.label);
    }
  }

  /** The addresses of a map that leads to Service ports. */
  addAddresses(family: Family, map: NftSet | NftMap): void {
    for (const element of map.elements) {
      const label = labelOfValue(element) ?? this.#labelOfComment(element);
      const [address] = element.key;
      if (label !== undefined && address) keepFirst(this.#addresses, `${family} ${keyMeaning([address])}`, label);
    }
  }

  find(family: Family, set: string, element: Element): string | undefined {
    const { key } = element;
    return this.#origins.get(`${family} ${set} ${keyMeaning(key)}`) ?? this.#findByContent(family, set, element);
  }

  #findByContent(family: Family, set: string, element: Element): string | undefined {
    const { key } = element;
    switch (set) {
      case nftSets.noEndpointServices:
      case nftSets.noEndpointNodePorts:
        return this.#labelOfComment(element);
      case nftSets.clusterIPs:
        return this.#addresses.get(`${family} ${keyMeaning(key)}`);
      case nftSets.hairpinConnections: {
        const [address, , protocol, port] = key.map((value) => keyMeaning([value]));
        return this.#endpoints.get(`${family} ${protocol} ${address} ${port}`);
      }
      default:
        return undefined;
    }
  }

  /** kube-proxy writes the name of a Service port beside what it turns away. A long one is cut, or ends in dots. */
  #labelOfComment({ comment }: Element): string | undefined {
    if (comment === undefined || !/^[a-z0-9][-a-z0-9]*\/[a-z0-9]/.test(comment)) return undefined;
    const start = comment.endsWith('...') ? comment.slice(0, -3) : comment;
    if (start === comment && comment.length < maxNftComment) return comment;
    const [only, ...others] = [...this.#labels].filter((label) => label.startsWith(start));
    return others.length === 0 ? (only ?? comment) : comment;
  }
}

/** Of several Service ports with one cluster IP or endpoint the first by name, as kube-proxy's elements are sorted. */
function keepFirst(labels: Map<string, string>, key: string, label: string): void {
  const known = labels.get(key);
  if (known === undefined || label < known) labels.set(key, label);
}

function indexStates(states: readonly KernelState[]): NftIndex {
  const index = new NftIndex();
  const tables = states.flatMap((state) => state.nftables.filter(({ name }) => isKubeProxyTable(name)));
  for (const { family, chains, sets } of tables) {
    for (const set of sets.values()) index.addOrigins(family, set);
    for (const chain of chains.values()) index.addChain(family, chain);
  }
  for (const { family, sets } of tables) {
    for (const name of [nftSets.serviceIPs, nftSets.noEndpointServices]) {
      const map = sets.get(name);
      if (map) index.addAddresses(family, map);
    }
  }
  return index;
}

/** The endpoints that the rules of a chain send packets to. */
export function targetsOf({ rules }: Pick<NftChain, 'rules'>): readonly Target[] {
  return rules.flatMap(({ expressions }) =>
    expressions.flatMap((expression) => {
      switch (expression.kind) {
        case 'dnat':
          return [expression.target];
        case 'dnat-random':
          return expression.targets;
        default:
          return [];
      }
    }),
  );
}
