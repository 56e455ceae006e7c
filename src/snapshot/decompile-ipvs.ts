import type { Coverage } from '../dumps/coverage.ts';
import type { Owners } from '../kube-proxy/owners.ts';
import type { PortAddress } from '../cluster/model.ts';
import type { MasqueradedClients } from '../cluster/plan-masquerade.ts';
import {
  type Address,
  families,
  type Family,
  joinHostPort,
  type Network,
  type Protocol,
  protocols,
} from '../kernel/address.ts';
import { networkOfRange } from '../kernel/address-range.ts';
import { formatEntry } from '../kernel/ipset/set-entry.ts';
import type { Rule } from '../kernel/iptables/iptables.ts';
import { conditionsOf } from '../kernel/iptables/rule-terms.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import {
  nodePortSets,
  openSets,
  parseSetName,
  setFamily,
  findNodePortServers,
  type SetId,
} from '../kube-proxy/ipvs-objects.ts';
import { endpointAt, markedClients, nodePortPlace, PortDraft, type DecompiledPort } from './decompiled-port.ts';

/** Where a Service port listens. The address is unknown for a node port in a bitmap of ports. */
interface Frontend {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly address: Address | undefined;
  readonly port: number;
  readonly isNodePort: boolean;
}

/**
 * Reads Service ports from virtual servers and sets, which have no names. Unless something else names them, each address and port counts as
 * a Service port of its own, and a node port's virtual servers on all node addresses count as one. Leaves out the internal policy, which
 * only endpoints would show. Without the sets, the external policy is unknown. If only some virtual servers were printed, some real servers
 * may be missing too.
 */
export function decompileIpvs(
  state: KernelState,
  owners: Owners,
  shown: Pick<Coverage, 'sets' | 'virtualServers'>,
): readonly DecompiledPort[] {
  const isPart = !shown.virtualServers;
  const reader = new ServersReader(state, shown.sets);
  const isNodePort = findNodePortServers(state);
  // Some addresses appear only in sets, because their virtual servers are gone or the dump lacks them.
  const known = new Set<string>();
  for (const server of state.virtualServers) {
    const { family, protocol, port } = server;
    known.add(virtualServerKey(server)).add(`${family} ${protocol} ${port}`);
    const listener = { family, protocol, port, address: server.address, isNodePort: isNodePort(server) };
    reader.readServer(server, listener, owners.ofServer(server), isPart);
  }
  for (const set of state.sets) {
    const family = setFamily(set);
    const id = parseSetName(set.name)?.set;
    const ofPorts = id && protocols.find((protocol) => id === nodePortSets[protocol].all);
    if (id === undefined || (ofPorts === undefined && !addressSets.has(id))) continue;
    for (const entry of set.entries) {
      const { address, port, protocol = ofPorts } = entry;
      if (protocol === undefined || port === undefined || (ofPorts === undefined && !address)) continue;
      const key = ofPorts === undefined && address ? virtualServerKey({ protocol, address, port }) : undefined;
      if (known.has(key ?? `${family} ${protocol} ${port}`)) continue;
      const listener = { family, protocol, address, port, isNodePort: key === undefined };
      reader.readListener(listener, owners.ofEntry(set, entry));
    }
  }
  return [...reader.drafts.values()].map((draft) => {
    draft.hidesAddresses = isPart;
    draft.showsFirewall = shown.sets;
    return draft.finish();
  });
}

const addressSets: ReadonlySet<SetId> = new Set(openSets);

const setsByKind: { readonly [K in PortAddress['kind']]: SetId | undefined } = {
  'cluster-ip': 'clusterIP',
  'load-balancer-ip': 'loadBalancer',
  'external-ip': 'externalIP',
  unknown: undefined,
};

class ServersReader {
  /** The Service ports found so far. Each has a virtual server on each of its addresses, and one on each node address for its node port. */
  readonly drafts = new Map<string, PortDraft>();
  readonly #entries = new Set<string>();
  readonly #ranges = new Map<string, Network[]>();
  /** The endpoints on the node, such as "10.244.1.2:80". Undefined if nothing lists them. */
  readonly #onNode: Set<string> | undefined;
  readonly #showsSets: boolean;
  readonly #masquerade: ReadonlyMap<string, MasqueradedClients>;

  constructor(state: KernelState, showsSets: boolean) {
    this.#showsSets = showsSets;
    this.#masquerade = readMasquerade(state);
    for (const set of state.sets) {
      const id = parseSetName(set.name)?.set;
      if (id === undefined) continue;
      if (id === 'loopBack') this.#onNode ??= new Set();
      for (const entry of set.entries) {
        this.#entries.add(`${id} ${formatEntry(entry)}`);
        const { source, address, port } = entry;
        if (id === 'loopBack' && address && port !== undefined) this.#onNode?.add(joinHostPort(address.text, port));
        if (!source || id !== 'sourceCIDR') continue;
        const at = formatEntry({ ...entry, source: undefined });
        const known = this.#ranges.get(at);
        if (known) known.push(networkOfRange(source));
        else this.#ranges.set(at, [networkOfRange(source)]);
      }
    }
  }

  readServer(server: VirtualServer, listener: Frontend, label: string | undefined, isPart: boolean): void {
    const { draft, isLocal, place } = this.readListener(listener, label);
    draft.affinitySeconds ??= server.persistentSeconds;
    draft.scheduler ??= server.scheduler;
    if (isPart && server.realServers.length === 0) return;
    draft.showsEndpoints = true;
    const taking: string[] = [];
    for (const { address, port, weight } of server.realServers) {
      const endpoint = endpointAt({ address, port });
      const draining = weight === 0 ? true : undefined;
      const at = [...(draft.endpoints.get(endpoint.label)?.at ?? []), place];
      draft.endpoints.set(endpoint.label, { ...endpoint, takes: new Set(), draining, at });
      if (weight !== 0) taking.push(endpoint.label);
    }
    const onNode = this.#onNode;
    if (taking.length === 0) draft.refusals.add('reject');
    // Under policy Local, traffic goes to real servers on all nodes if none is on this node.
    else if (isLocal && onNode && taking.every((endpoint) => !onNode.has(endpoint))) draft.goesToAll = true;
  }

  readListener(listener: Frontend, label: string | undefined) {
    const { family, protocol, address, port, isNodePort } = listener;
    const place = isNodePort || !address ? nodePortPlace : address.text;
    const name = label ?? `${joinHostPort(place, port)}/${protocol}`;
    const draft = this.drafts.get(`${family} ${name}`) ?? new PortDraft(name, family, protocol);
    this.drafts.set(`${family} ${name}`, draft);
    const entry = formatEntry({ address, protocol, port });
    const kind = isNodePort || !address ? undefined : this.#kindOf(entry);
    const localSets: readonly SetId[] =
      kind === undefined ? [nodePortSets[protocol].local] : ['externalIPLocal', 'loadBalancerLocal'];
    const listed = kind === undefined && protocol !== 'SCTP' ? formatEntry({ port }) : entry;
    const isLocal = localSets.some((set) => this.#has(set, listed)) || (this.#showsSets ? false : undefined);
    if (kind === undefined || !address) draft.nodePort ??= port;
    else {
      draft.addAddress(kind, address, port);
      for (const range of this.#ranges.get(entry) ?? []) draft.admit(range);
      if (this.#has('loadBalancerFirewall', entry)) draft.hasFirewall = true;
    }
    const isExternal = kind === undefined || kind === 'external-ip' || kind === 'load-balancer-ip';
    if (isExternal) draft.externalPolicyLocal ??= isLocal;
    const set = kind === undefined ? nodePortSets[protocol].all : setsByKind[kind];
    const clients = this.#masquerade.get(`${family} ${set}`);
    if (clients && (isLocal === false || !isExternal))
      draft.masquerade[isExternal ? 'external' : 'clusterIP'] = clients;
    return { draft, isLocal, place };
  }

  #kindOf(entry: string): PortAddress['kind'] {
    if (this.#has('clusterIP', entry)) return 'cluster-ip';
    if (this.#has('loadBalancer', entry)) return 'load-balancer-ip';
    return this.#has('externalIP', entry) || this.#has('externalIPLocal', entry) ? 'external-ip' : 'unknown';
  }

  #has(set: SetId, entry: string): boolean {
    return this.#entries.has(`${set} ${entry}`);
  }
}

/** Finds which clients' packets are masqueraded, for each set. Rules match sets, so one rule applies to all entries of a set. */
function readMasquerade({ iptables }: KernelState): ReadonlyMap<string, MasqueradedClients> {
  const found = new Map<string, MasqueradedClients>();
  for (const family of families) {
    const nat = iptables[family]?.nat;
    const marks = (rule: Rule): boolean => jumpChain(rule) === baseChains.markMasquerade;
    // The load balancers' chain marks packets for masquerading, unless an earlier rule in that chain returns them.
    const marksBalanced = nat?.get(baseChains.loadBalancer)?.rules.some(marks) ?? false;
    for (const chain of [baseChains.services, baseChains.nodePort]) {
      for (const rule of nat?.get(chain)?.rules ?? []) {
        const match = rule.args.find((arg) => arg.kind === 'match-set');
        const isBalanced = chain === baseChains.services && jumpChain(rule) === baseChains.loadBalancer;
        // If the set must also contain the source, the rule is for packets from endpoints to themselves.
        if (!match || match.directions.includes('src') || !(marks(rule) || (isBalanced && marksBalanced))) continue;
        const set = parseSetName(match.set)?.set;
        const clients = markedClients(conditionsOf(rule.args));
        if (set && clients) found.set(`${family} ${set}`, clients);
      }
    }
  }
  return found;
}
