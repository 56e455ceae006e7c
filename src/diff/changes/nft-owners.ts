import type { Family } from '../../kernel/family.ts';
import type { Element } from '../../kernel/nftables/element.ts';
import type { Target } from '../../kernel/nftables/expression.ts';
import { keyMeaning } from '../../kernel/nftables/nft-meaning.ts';
import type { NftChain } from '../../kernel/nftables/table.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isKubeProxyTable, maxNftComment, nftSets, parseNftName } from '../../kube-proxy/nft-names.ts';

/** The Service port of the chain that an element leads to. */
export function labelOfValue({ value }: Element): string | undefined {
  return value?.kind === 'goto' || value?.kind === 'jump' ? parseNftName(value.chain)?.label : undefined;
}

/**
 * What the tables of kube-proxy show about elements that have no origin and lead to no chain. A cluster IP or an endpoint
 * belongs to the first of the Service ports that have it.
 */
export function indexNftables(
  states: readonly KernelState[],
): (family: Family, set: string, element: Element) => string | undefined {
  /** Labels by family, set and key. */
  const origins = new Map<string, string>();
  /** Labels by family and address. */
  const addresses = new Map<string, string>();
  /** Labels by family, protocol and endpoint. */
  const endpoints = new Map<string, string>();
  const labels = new Set<string>();
  const tables = states.flatMap((state) => state.nftables.filter(({ name }) => isKubeProxyTable(name)));
  for (const { family, chains, sets } of tables) {
    for (const { name, elements } of sets.values()) {
      for (const { key, origin } of elements) {
        const at = `${family} ${name} ${keyMeaning(key)}`;
        if (origin && !origins.has(at)) origins.set(at, origin.servicePort);
      }
    }
    for (const chain of chains.values()) {
      const name = parseNftName(chain.name);
      if (!name) continue;
      labels.add(name.label);
      for (const { address, port } of targetsOf(chain)) {
        keepFirst(endpoints, `${family} ${name.protocol.toLowerCase()} ${address.text} ${port}`, name.label);
      }
    }
  }
  for (const { family, sets } of tables) {
    for (const map of [nftSets.serviceIPs, nftSets.noEndpointServices]) {
      for (const element of sets.get(map)?.elements ?? []) {
        const label = labelOfValue(element) ?? labelOfComment(element, labels);
        const [address] = element.key;
        if (label !== undefined && address) keepFirst(addresses, `${family} ${keyMeaning([address])}`, label);
      }
    }
  }
  return (family, set, element) => {
    const known = origins.get(`${family} ${set} ${keyMeaning(element.key)}`);
    if (known !== undefined) return known;
    switch (set) {
      case nftSets.noEndpointServices:
      case nftSets.noEndpointNodePorts:
        return labelOfComment(element, labels);
      case nftSets.clusterIPs:
        return addresses.get(`${family} ${keyMeaning(element.key)}`);
      case nftSets.hairpinConnections: {
        const [address, , protocol, port] = element.key.map((value) => keyMeaning([value]));
        return endpoints.get(`${family} ${protocol} ${address} ${port}`);
      }
      default:
        return undefined;
    }
  };
}

/** kube-proxy writes the name of a Service port beside what it turns away. A long one is cut, or ends in dots. */
function labelOfComment({ comment }: Element, labels: ReadonlySet<string>): string | undefined {
  if (comment === undefined || !/^[a-z0-9][-a-z0-9]*\/[a-z0-9]/.test(comment)) return undefined;
  const start = comment.endsWith('...') ? comment.slice(0, -3) : comment;
  if (start === comment && comment.length < maxNftComment) return comment;
  const [only, ...others] = [...labels].filter((label) => label.startsWith(start));
  return others.length === 0 ? (only ?? comment) : comment;
}

/** Of several Service ports with one cluster IP or endpoint the first by name, as kube-proxy's elements are sorted. */
function keepFirst(labels: Map<string, string>, key: string, label: string): void {
  const known = labels.get(key);
  if (known === undefined || label < known) labels.set(key, label);
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
