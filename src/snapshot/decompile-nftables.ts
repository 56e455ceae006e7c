import {
  isKubeProxyTable,
  nftChains,
  nftPrefixes,
  nftSets,
  parseNftName,
  type NftName,
} from '../kube-proxy/nft-table.ts';
import { findEndlessOfTable } from '../kube-proxy/unshown.ts';
import { dnatTargets, type Owners } from '../kube-proxy/owners.ts';
import { type Address, type Family, hostNetwork, protocols } from '../kernel/address.ts';
import {
  chainsOf,
  type Element,
  type Right,
  type NftChain,
  type NftRule,
  type NftTable,
} from '../kernel/nftables/table.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import { compareText } from '../kernel/compare.ts';
import { parsePort } from '../kernel/ports-and-marks.ts';
import type { KernelState } from '../kernel/state.ts';
import type { MasqueradedClients } from '../cluster/plan-masquerade.ts';
import type { PortAddress } from '../cluster/model.ts';
import {
  endpointAt,
  endpointNamed,
  markedClients,
  PortDraft,
  type DecompiledPort,
  type DraftEndpoint,
  type SourceRange,
} from './decompiled-port.ts';

/** Reads Service ports from kube-proxy's tables, using the names of chains. `whole`: the families whose table is complete. */
export function decompileNftables(
  state: KernelState,
  owners: Owners,
  whole: readonly Family[],
): readonly DecompiledPort[] {
  return state.nftables
    .filter(({ name }) => isKubeProxyTable(name))
    .flatMap((table) => new TableReader(table, owners, whole.includes(table.family)).read());
}

/** The sets and maps with addresses and node ports. The firewall map comes first, because it holds only addresses of load balancers. */
const readSets = [
  nftSets.firewallIPs,
  nftSets.serviceIPs,
  nftSets.noEndpointServices,
  nftSets.serviceNodePorts,
  nftSets.noEndpointNodePorts,
];

class TableReader {
  readonly #table: NftTable;
  readonly #owners: Owners;
  readonly #isWhole: boolean;
  readonly #endless: ReadonlySet<string>;
  readonly #drafts = new Map<string, PortDraft>();
  readonly #clusterIPs: ReadonlySet<string>;
  readonly #toAllClusterIPs: MasqueradedClients | undefined;

  constructor(table: NftTable, owners: Owners, isWhole: boolean) {
    this.#table = table;
    this.#isWhole = isWhole;
    this.#endless = isWhole ? findEndlessOfTable(table) : new Set();
    this.#owners = owners;
    this.#clusterIPs = new Set(this.#elements(nftSets.clusterIPs).map(({ key }) => formatKey(key)));
    this.#toAllClusterIPs = masqueradedIn(table.chains.get(nftChains.services));
  }

  read(): readonly DecompiledPort[] {
    for (const name of readSets) {
      for (const element of this.#elements(name)) this.#readElement(name, element);
    }
    for (const chain of this.#table.chains.values()) this.#readChain(chain);
    return [...this.#drafts.values()].map((draft) => draft.finish()).map(sortAddresses);
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
    draft.showsEndpoints = this.#isWhole;
    draft.showsFirewall = this.#isWhole;
    this.#drafts.set(label, draft);
    return draft;
  }

  #readElement(set: string, element: Element): void {
    const values = element.key.map((value) => formatKey([value]));
    const [port = '', protocol] = values.toReversed();
    const draft = this.#draftOf(this.#owners.ofNftElement(this.#table.family, { name: set }, element), protocol);
    if (!draft) return;
    const { value } = element;
    const address = element.key.flatMap((each) => (each.kind === 'address' ? [each.address] : []))[0];
    const leadsTo = value?.kind === 'goto' ? parseNftName(value.chain) : undefined;
    const kind = address && this.#kindOf(address.text, set, leadsTo);
    if (!address || kind === undefined) draft.nodePort ??= parsePort(port);
    else draft.addAddress(kind, address, parsePort(port));
    if (set === nftSets.firewallIPs) draft.hasFirewall = this.#mayDrop(value?.kind === 'goto' ? value.chain : '');
    const policy = kind === 'cluster-ip' ? 'internalPolicyLocal' : 'externalPolicyLocal';
    if (kind === 'cluster-ip' && leadsTo) {
      draft[policy] = leadsTo.kind === 'local';
      if (this.#toAllClusterIPs) draft.masquerade.clusterIP ??= this.#toAllClusterIPs;
    }
    // Packets are dropped instead of refused only under policy Local, because another node may have endpoints.
    if (value?.kind === 'drop') {
      draft[policy] = true;
      draft.refusals.add('drop');
    } else if (value?.kind === 'goto' && value.chain === nftChains.reject) draft.refusals.add('reject');
  }

  /** Returns the kind of an address. For an external address, only the firewall map shows the kind: it holds load balancer IPs. */
  #kindOf(address: string, set: string, leadsTo: NftName | undefined): PortAddress['kind'] {
    if (set === nftSets.firewallIPs) return 'load-balancer-ip';
    if (leadsTo) return leadsTo.kind === 'external' ? 'unknown' : 'cluster-ip';
    return this.#clusterIPs.has(address) ? 'cluster-ip' : 'unknown';
  }

  #readChain(chain: NftChain): void {
    const name = parseNftName(chain.name);
    const draft = name && this.#draftOf(this.#owners.ofNftChain(chain), name.protocol);
    if (!draft) return;
    if (this.#endless.has(chain.name))
      draft.endless.set(chain.name, name.endpoint && endpointNamed(name.endpoint).label);
    const clients = masqueradedIn(chain);
    if (name.kind === 'cluster' || name.kind === 'local') {
      if (clients) draft.masquerade.clusterIP ??= clients;
      const drawn = drawnChains(chain);
      const endpoints = [...endpointsOfChain(chain), ...drawn.flatMap((each) => this.#endpointOf(each))];
      this.#readAffinity(chain, drawn, draft);
      for (const endpoint of endpoints) draft.addEndpoint(endpoint, name.kind === 'local' ? 'Local' : 'Cluster');
      // Only the chain for policy Cluster leads to all endpoints.
      const namesAll = drawn.every((each) => this.#endpointOf(each).length > 0);
      if (name.kind === 'cluster') draft.showsEndpoints ||= endpoints.length > 0 && namesAll;
    } else if (name.kind === 'external') {
      if (clients) draft.masquerade.external ??= clients;
      // A `fib` match on the source exists only under policy Local. There, it sends the node's own packets to endpoints on all nodes.
      draft.externalPolicyLocal = matchesIn(chain).some(({ left }) =>
        left.some(({ name: field }) => field.startsWith('fib ')),
      );
      const local = chain.name.replace(nftPrefixes.external, nftPrefixes.local);
      const isShown = this.#isWhole && draft.externalPolicyLocal && this.#table.chains.has(local);
      const led = chain.rules.flatMap(({ expressions }) => expressions.flatMap(chainsOf));
      if (isShown && !led.includes(local)) draft.lackLocal(chain.name, local);
    } else if (name.kind === 'firewall') {
      for (const range of this.#rangesOf(chain)) draft.admit(range);
    }
  }

  #mayDrop(name: string): boolean {
    const rules = this.#table.chains.get(name)?.rules ?? [];
    return !this.#isWhole || rules.some(({ expressions }) => expressions.some(({ kind }) => kind === 'drop'));
  }

  #rangesOf(chain: NftChain): readonly SourceRange[] {
    const guarded = new Set(
      this.#elements(nftSets.firewallIPs)
        .filter(({ value }) => value?.kind === 'goto' && value.chain === chain.name)
        .map(({ key }) => formatKey(key.slice(0, 1))),
    );
    return matchesIn(chain)
      .flatMap(({ right }) => constantsOf(right))
      .filter(({ key }) => !guarded.has(formatKey(key)))
      .map(({ key }) => {
        const [range] = key;
        if (range?.kind === 'network') return range.network;
        return range?.kind === 'address' ? hostNetwork(range.address) : { text: formatKey(key) };
      });
  }

  /** Reads session affinity. If a port has it, each endpoint has its own chain and its own set of clients with a timeout. */
  #readAffinity({ rules }: NftChain, drawn: readonly string[], draft: PortDraft): void {
    const looks = rules.flatMap(({ expressions }) => {
      const lists = expressions.flatMap((each) =>
        each.kind === 'match' && 'set' in each.right ? [each.right.set] : [],
      );
      return lists.flatMap((list) => expressions.flatMap(chainsOf).map((chain) => ({ chain, list })));
    });
    const lookups = looks.flatMap((look) => {
      const clients = this.#table.sets.get(look.list);
      if (!clients) draft.hidesAffinity = true;
      return clients ? [{ ...look, seconds: clients.timeoutSeconds ?? 0 }] : [];
    });
    const writes = (chain: string, list: string): boolean => {
      const own = this.#table.chains.get(chain)?.rules.flatMap(({ expressions }) => expressions);
      return (
        own?.some((each) => each.kind === 'write-set' && each.operation !== 'delete' && each.set === list) !== false
      );
    };
    if (!draft.hidesAffinity && lookups.length > 0) draft.noteAffinity(drawn, lookups, writes);
  }

  #endpointOf(name: string): readonly DraftEndpoint[] {
    const chain = this.#table.chains.get(name);
    const [endpoint] = chain ? endpointsOfChain(chain) : [];
    if (endpoint) return [endpoint];
    if (this.#endless.has(name)) return [];
    const named = parseNftName(name)?.endpoint;
    return named === undefined ? [] : [endpointNamed(named)];
  }
}

/** Sorts the addresses, because their order in the kernel has no meaning. */
function sortAddresses(port: DecompiledPort): DecompiledPort {
  const sort = (addresses: readonly Address[] = []) => addresses.toSorted((a, b) => compareText(a.text, b.text));
  return { ...port, loadBalancerIPs: sort(port.loadBalancerIPs), otherIPs: sort(port.otherIPs) };
}

function drawnChains({ rules }: NftChain): readonly string[] {
  return rules.flatMap(({ expressions }) =>
    expressions.flatMap((each) => (each.kind === 'goto-random' ? each.chains : [])),
  );
}

function endpointsOfChain(chain: NftChain): readonly DraftEndpoint[] {
  return dnatTargets(chain).map(endpointAt);
}

function matchesIn({ rules }: NftChain) {
  return rules.flatMap(({ expressions }) => expressions.flatMap((each) => (each.kind === 'match' ? [each] : [])));
}

function masqueradedIn(chain: NftChain | undefined): MasqueradedClients | undefined {
  return chain?.rules.map(clientsOfNftRule).find((each) => each !== undefined);
}

function clientsOfNftRule({ expressions }: NftRule): MasqueradedClients | undefined {
  const marks = expressions.some(
    (each) => each.kind === 'change-mark' || (each.kind === 'jump' && each.chain === nftChains.markForMasquerade),
  );
  return marks ? markedClients(expressions) : undefined;
}

function constantsOf(right: Right): readonly Element[] {
  return 'set' in right ? [] : right.elements;
}
