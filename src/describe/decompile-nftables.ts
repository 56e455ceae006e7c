import { isKubeProxyTable, nftChains, nftSets, parseNftName, type NftName } from '../kube-proxy/nft-names.ts';
import { targetsOf, type Owners } from '../diff/changes/owners.ts';
import { joinHostPort } from '../kernel/address.ts';
import { protocols } from '../kernel/family.ts';
import type { Element } from '../kernel/nftables/element.ts';
import type { Right } from '../kernel/nftables/expression.ts';
import { formatKey } from '../kernel/nftables/format-expression.ts';
import type { NftChain, NftRule, NftTable } from '../kernel/nftables/table.ts';
import { compareText } from '../kernel/compare-text.ts';
import { parsePort } from '../kernel/socket-address.ts';
import type { KernelState } from '../kernel/state.ts';
import type { PortAddress } from '../diff/port-facts.ts';
import { PortDraft, type MasqueradedClients, type ShownPort } from './shown-port.ts';

/** Reads Service ports back from kube-proxy's tables, whose chains are named after them. */
export function decompileNftables(state: KernelState, owners: Owners): readonly ShownPort[] {
  return state.nftables
    .filter(({ name }) => isKubeProxyTable(name))
    .flatMap((table) => new TableReader(table, owners).read());
}

/** The sets and maps that have addresses and node ports. Source ranges bind load balancers alone: these come first. */
const readSets = [
  nftSets.firewallIPs,
  nftSets.serviceIPs,
  nftSets.noEndpointServices,
  nftSets.serviceNodePorts,
  nftSets.noEndpointNodePorts,
];

/** Reads one table. */
class TableReader {
  readonly #table: NftTable;
  readonly #owners: Owners;
  readonly #drafts = new Map<string, PortDraft>();
  readonly #clusterIPs: ReadonlySet<string>;
  /** Whose packets to any cluster IP are masqueraded, by the one rule that newer releases have for all. */
  readonly #toAllClusterIPs: MasqueradedClients | undefined;

  constructor(table: NftTable, owners: Owners) {
    this.#table = table;
    this.#owners = owners;
    this.#clusterIPs = new Set(this.#elements(nftSets.clusterIPs).map(({ key }) => formatKey(key)));
    this.#toAllClusterIPs = masqueradedIn(table.chains.get(nftChains.services));
  }

  read(): readonly ShownPort[] {
    for (const name of readSets) {
      for (const element of this.#elements(name)) this.#readElement(name, element);
    }
    for (const chain of this.#table.chains.values()) this.#readChain(chain);
    return [...this.#drafts.values()].map((draft) => {
      const port = draft.finish();
      // The cluster IP identifies a Service: it comes first. The kernel's order of the other addresses means nothing.
      return { ...port, addresses: port.addresses.toSorted(compareAddresses) };
    });
  }

  #elements(set: string): readonly Element[] {
    return this.#table.sets.get(set)?.elements ?? [];
  }

  #draftOf(label: string | undefined, protocol = ''): PortDraft | undefined {
    if (label === undefined) return undefined;
    const known = this.#drafts.get(label);
    if (known) return known;
    const named = protocols.find((each) => each === protocol.toUpperCase()) ?? 'TCP';
    const draft = new PortDraft(label, this.#table.family, named);
    draft.showsEndpoints = true;
    this.#drafts.set(label, draft);
    return draft;
  }

  /** An address of a Service port, or its node port: what its element leads to shows which. */
  #readElement(set: string, element: Element): void {
    const values = element.key.map((value) => formatKey([value]));
    const [port = '', protocol, address] = values.toReversed();
    const draft = this.#draftOf(this.#owners.ofNftElement(this.#table.family, { name: set }, element), protocol);
    if (!draft) return;
    const { value } = element;
    const leadsTo = value?.kind === 'goto' ? parseNftName(value.chain) : undefined;
    const kind = address === undefined ? undefined : this.#kindOf(address, set, leadsTo);
    if (address === undefined || kind === undefined) draft.nodePort ??= parsePort(port);
    else draft.addAddress(kind, address, parsePort(port));
    if (set === nftSets.firewallIPs) draft.hasFirewall = true;
    const policy = kind === 'cluster-ip' ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
    if (kind === 'cluster-ip' && leadsTo) {
      draft[policy] = leadsTo.kind === 'local' ? 'Local' : 'Cluster';
      if (this.#toAllClusterIPs) draft.masquerade.clusterIP ??= this.#toAllClusterIPs;
    }
    // Packets are dropped where the policy is Local and another node may have endpoints.
    if (value?.kind === 'drop') {
      draft[policy] = 'Local';
      draft.refusals.add('drop');
    } else if (value?.kind === 'goto' && value.chain === nftChains.reject) draft.refusals.add('reject');
  }

  /** What else is reached from outside may be an external IP or a load balancer's: nothing shows which. */
  #kindOf(address: string, set: string, leadsTo: NftName | undefined): PortAddress['kind'] {
    if (set === nftSets.firewallIPs) return 'load-balancer-ip';
    if (leadsTo) return leadsTo.kind === 'external' ? 'unknown' : 'cluster-ip';
    return this.#clusterIPs.has(address) ? 'cluster-ip' : 'unknown';
  }

  #readChain(chain: NftChain): void {
    const name = parseNftName(chain.name);
    const draft = name && this.#draftOf(this.#owners.ofNftChain(chain), name.protocol);
    if (!draft) return;
    const clients = masqueradedIn(chain);
    if (name.kind === 'cluster' || name.kind === 'local') {
      if (clients) draft.masquerade.clusterIP ??= clients;
      const endpoints = [...endpointsOf(chain), ...this.#stickyEndpoints(chain, draft)];
      for (const endpoint of endpoints) draft.addEndpoint(endpoint, name.kind === 'local' ? 'Local' : 'Cluster');
    } else if (name.kind === 'external') {
      if (clients) draft.masquerade.external ??= clients;
      // With policy Local, the node's own packets, recognised by their source, take another path.
      const isLocal = matchesIn(chain).some(({ left }) => left.some((field) => field.name.startsWith('fib ')));
      draft.externalTrafficPolicy = isLocal ? 'Local' : 'Cluster';
    } else if (name.kind === 'firewall') {
      for (const range of this.#rangesOf(chain)) draft.sourceRanges.add(range);
    }
  }

  /** The sources that the chain lets through, except for the addresses themselves that it guards. */
  #rangesOf(chain: NftChain): readonly string[] {
    const guarded = new Set(
      this.#elements(nftSets.firewallIPs)
        .filter(({ value }) => value?.kind === 'goto' && value.chain === chain.name)
        .map(({ key }) => formatKey(key.slice(0, 1))),
    );
    return matchesIn(chain)
      .flatMap(({ right }) => valuesOf(right))
      .filter((range) => !guarded.has(range));
  }

  /** With session affinity each endpoint has a chain of its own, and a set of clients with a timeout. */
  #stickyEndpoints(chain: NftChain, draft: PortDraft): readonly string[] {
    return chain.rules.flatMap(({ expressions }) =>
      expressions.flatMap((expression) => {
        if (expression.kind === 'match' && expression.right.kind === 'set') {
          draft.affinitySeconds ??= this.#table.sets.get(expression.right.set)?.timeoutSeconds;
        }
        if (expression.kind !== 'goto-random') return [];
        return expression.chains.flatMap((name) => {
          const target = this.#table.chains.get(name);
          const [endpoint = parseNftName(name)?.endpoint] = target ? endpointsOf(target) : [];
          return endpoint === undefined ? [] : [endpoint];
        });
      }),
    );
  }
}

function compareAddresses(a: PortAddress, b: PortAddress): number {
  return Number(b.kind === 'cluster-ip') - Number(a.kind === 'cluster-ip') || compareText(a.address, b.address);
}

function endpointsOf(chain: NftChain): readonly string[] {
  return targetsOf(chain).map(({ address, port }) => joinHostPort(address.text, port));
}

function matchesIn({ rules }: NftChain) {
  return rules.flatMap(({ expressions }) => expressions.flatMap((each) => (each.kind === 'match' ? [each] : [])));
}

function masqueradedIn(chain: NftChain | undefined): MasqueradedClients | undefined {
  return chain?.rules.map(clientsOf).find((each) => each !== undefined);
}

/** Whose packets a rule marks to be masqueraded; undefined if it marks none. */
function clientsOf({ expressions }: NftRule): MasqueradedClients | undefined {
  const marks = expressions.some(
    (each) =>
      each.kind === 'set-mark' ||
      (each.kind === 'verdict' && each.verdict.kind === 'jump' && each.verdict.chain === nftChains.markForMasquerade),
  );
  if (!marks) return undefined;
  for (const each of expressions) {
    if (each.kind !== 'match' || each.right.kind === 'set') continue;
    const [field] = each.left;
    const name = field?.name ?? '';
    if (name.startsWith('fib ')) return { kind: 'node' };
    const isInterface = name === 'iifname';
    if (!isInterface && !name.endsWith(' saddr')) continue;
    if (each.negated !== true) return undefined;
    const text = valuesOf(each.right).join(', ');
    return { kind: 'all-but', clients: isInterface ? `interface ${text}` : text };
  }
  return { kind: 'all' };
}

/** The values on the right side of a match; none for a set that it names. */
function valuesOf(right: Right): readonly string[] {
  if (right.kind === 'set') return [];
  return (right.kind === 'any-of' ? right.values : [right.value]).map((value) => formatKey([value]));
}
