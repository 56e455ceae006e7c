import { count } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { KernelChange } from '../diff/changes/kernel-change.ts';
import type { Owners } from '../diff/changes/owners.ts';
import type { Side } from '../diff/compared-side.ts';
import type { ReadChanges, ReadServices } from '../diff/diff-sides.ts';
import { coverForServices } from '../diff/foreign-items.ts';
import type { PortFacts } from '../diff/port-facts.ts';
import type { ServicePortChange } from '../diff/service-changes.ts';
import {
  diffEndpointStates,
  diffFacts,
  uniqueReasons,
  type EndpointState,
  type ServiceReason,
} from '../diff/service-reasons.ts';
import { classifyServers, type ServerBelonging } from '../diff/virtual-servers.ts';
import { parseServiceChain } from '../kube-proxy/chain-names.ts';
import type { Coverage } from '../dumps/coverage.ts';
import { joinHostPort } from '../kernel/address.ts';
import { compareText } from '../kernel/compare-text.ts';
import type { Family } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import { boundAddresses } from '../kube-proxy/service-link.ts';
import { findLeftChains, type LeftChain } from '../kube-proxy/chains.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { programs, type ProxyMode } from '../kube-proxy/modes.ts';
import { isKubeProxySet } from '../kube-proxy/ipvs-sets.ts';
import { decompileIptables } from './decompile-iptables.ts';
import { decompileIpvs } from './decompile-ipvs.ts';
import { decompileNftables } from './decompile-nftables.ts';
import type { ShownPort } from './shown-port.ts';

/** What a state shows of the Services that it came from. */
export interface Decompiled {
  readonly mode: ProxyMode | undefined;
  /** Sorted by name, then family. */
  readonly ports: readonly ShownPort[];
  readonly leftovers: Leftovers;
}

/** What a mode left that the node has no more. */
interface Leftovers {
  /** Of iptables mode, on a node in IPVS mode. */
  readonly chains: readonly LeftChain[];
  /** Service ports that only such rules show. */
  readonly ports: readonly ShownPort[];
  /** Of IPVS mode, on a node in iptables mode. */
  readonly virtualServers: readonly VirtualServer[];
  readonly sets: readonly string[];
  readonly addresses: readonly string[];
}

/**
 * Reads Services back from a kernel's state: names from kube-proxy's comments in iptables mode, from the names of chains in
 * nftables mode, addresses in IPVS mode. What is left of another mode is apart. `belongingOf` says whose a virtual server is,
 * `coverage` what is known whole.
 */
export function decompile(
  state: KernelState,
  owners: Owners,
  belongingOf: (server: VirtualServer) => ServerBelonging,
  coverage: Pick<Coverage, 'virtualServers'>,
): Decompiled {
  const mode = modeOfState(state) ?? (state.virtualServers.length > 0 ? 'ipvs' : undefined);
  const hasLeftIpvs = mode !== undefined && !programs(mode, 'virtualServers');
  const isLeft = (server: VirtualServer): boolean => hasLeftIpvs && belongingOf(server) === 'kube-proxy';
  const virtualServers = state.virtualServers.filter((server) => belongingOf(server) !== 'other' && !isLeft(server));
  const ofServers = { ...state, virtualServers, sets: hasLeftIpvs ? [] : state.sets };
  const ofRules = decompileIptables(state);
  const chains = findLeftChains(state, mode);
  const isLeftOver = chains.length > 0;
  return {
    mode,
    ports: sortPorts([
      ...(isLeftOver ? [] : ofRules),
      ...decompileIpvs(ofServers, owners, !coverage.virtualServers),
      ...decompileNftables(state, owners),
    ]),
    leftovers: {
      chains,
      ports: isLeftOver ? sortPorts(ofRules) : [],
      virtualServers: state.virtualServers.filter(isLeft),
      sets: hasLeftIpvs ? state.sets.map(({ name }) => name).filter(isKubeProxySet) : [],
      addresses: hasLeftIpvs ? boundAddresses(state) : [],
    },
  };
}

function sortPorts(ports: readonly ShownPort[]): readonly ShownPort[] {
  const key = ({ name, family }: ShownPort) => `${name} ${family}`;
  return ports.toSorted((a, b) => compareText(key(a), key(b)));
}

/** Finds what a state that is compiled shows of a Service port. It is read when it is first asked for. */
export function findShown(
  state: KernelState,
  owners: Owners,
): (label: string, family: Family) => ShownPort | undefined {
  let ports: ReadonlyMap<string, ShownPort> | undefined;
  return (label, family) => {
    ports ??= new Map(
      decompile(state, owners, () => 'kube-proxy', { virtualServers: true }).ports.map(
        (port) => [`${port.family} ${port.name}`, port] as const,
      ),
    );
    return ports.get(`${family} ${label}`);
  };
}

/** What another mode left on a node, a line for each kind; nothing if it left nothing. */
export function describeLeftovers({ chains, virtualServers, sets, addresses }: Leftovers): readonly string[] {
  const counted = (names: readonly string[], one: string, more?: string, where = ''): readonly string[] =>
    names.length === 0 ? [] : [`${count(names.length, one, more)}${where} (${nameSome(names)})`];
  const dead = chains.filter(({ reachedFrom }) => reachedFrom.length === 0).map(({ chain }) => chain.name);
  const live = chains.filter(({ reachedFrom }) => reachedFrom.length > 0);
  const ofIpvs = [
    ...counted(
      virtualServers.map(({ address, port, protocol }) => `${joinHostPort(address.text, port)}/${protocol}`),
      'virtual server',
    ),
    ...counted(sets, 'set'),
    ...counted(addresses, 'address', 'addresses', ' on kube-ipvs0'),
  ];
  return [
    ...counted(dead, 'chain').map((text) => `Left by iptables mode, nothing jumps to them: ${text}`),
    ...live.map(({ table, chain: { name, rules }, reachedFrom }) => {
      const from = `Left by iptables mode, still reached from ${nameSome(reachedFrom)}`;
      // In table filter, only chains that refuse packets count as left.
      const refuses = table === 'filter' ? ', which refuses packets,' : '';
      return `${from}: chain ${name} (${table})${refuses} with ${count(rules.length, 'rule')}`;
    }),
    ...(ofIpvs.length > 0 ? [`Left by IPVS mode: ${ofIpvs.join(', ')}`] : []),
  ];
}

/**
 * Compares the Service ports of two sides by what their states show, for example if one side is a dump: a dump does not
 * record its Services. What a state does not show of a port is not a difference.
 */
export const diffDecompiled: ReadServices = (from, to, owners): ReadChanges => {
  const belongingOf = classifyServers(from, to);
  const read = (side: Side, own: Owners) =>
    groupBy(decompile(coverForServices(side), own, belongingOf, side.coverage).ports, ({ name }) => name);
  const [before, after] = [read(from, owners.from), read(to, owners.to)];
  const changes: ServicePortChange[] = [];
  const compared = { all: 0, withoutEndpoints: 0 };
  for (const [label, ports] of after) {
    const reasons = ports.flatMap((port) => {
      const old = before.get(label)?.find(({ family }) => family === port.family);
      if (!old) return [];
      compared.all++;
      if (!old.endpoints || !port.endpoints) compared.withoutEndpoints++;
      return [...diffFacts(factsOf(old), factsOf(port), true), ...diffEndpoints(old, port)];
    });
    if (reasons.length === 0) continue;
    changes.push({ label, change: 'changed', reasons: uniqueReasons(reasons), place: undefined });
  }
  return { changes, compared, shown: { from: factsOfAll(before), to: factsOfAll(after) }, follows };
};

function factsOfAll(ports: ReadonlyMap<string, readonly ShownPort[]>): ReadonlyMap<string, readonly PortFacts[]> {
  return new Map([...ports].map(([label, all]) => [label, all.map(factsOf)]));
}

function factsOf({ name: _, fallback: __, masquerade: ___, endpoints, ...port }: ShownPort): PortFacts {
  return { ...port, endpoints: endpoints?.length };
}

/** A kernel has only the endpoints that are used. */
const usedEndpoint: EndpointState = { condition: 'ready', node: undefined, hints: [], used: true };

function diffEndpoints(from: ShownPort, to: ShownPort): readonly ServiceReason[] {
  if (!from.endpoints || !to.endpoints) return [];
  const statesOf = (endpoints: NonNullable<ShownPort['endpoints']>) =>
    new Map(endpoints.map(({ endpoint }) => [endpoint, usedEndpoint]));
  return diffEndpointStates(statesOf(from.endpoints), statesOf(to.endpoints));
}

/**
 * Whether a kernel change merely follows from these reasons: it adds or removes the chain of an endpoint, or changes
 * the rules that choose among endpoints.
 */
function follows({ change, rules }: KernelChange, reasons: readonly ServiceReason[]): boolean {
  if (!rules || rules.shared || rules.reordered) return false;
  const endpoints = new Set(
    reasons.flatMap(({ kind, endpoint }) => (kind === 'endpoint-changed' ? [] : (endpoint ?? []))),
  );
  if (endpoints.size === 0) return false;
  const edited = [...rules.added, ...rules.removed];
  const kind = parseServiceChain(rules.chain)?.kind;
  if (kind === 'cluster' || kind === 'local') {
    const leadsTo = (rule: string) => parseServiceChain(/ -j (\S+)$/.exec(rule)?.[1] ?? '')?.kind;
    return change === 'changed' && edited.every((rule) => leadsTo(rule) === 'endpoint');
  }
  if (kind !== 'endpoint' || change === 'changed') return false;
  return edited.some((rule) => endpoints.has(/ --to-destination (\S+)/.exec(rule)?.[1] ?? ''));
}
