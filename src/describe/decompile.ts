import { count } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { KernelChange } from '../changes/kernel-change.ts';
import type { Owners } from '../changes/owners.ts';
import type { Side } from '../dumps/side.ts';
import type { ReadChanges, ReadServices } from '../diff/diff-sides.ts';
import { coverForServices } from '../diff/foreign-items.ts';
import type { ServicePortChange } from '../diff/service-changes.ts';
import {
  diffEndpointStates,
  diffFields,
  uniqueReasons,
  type EndpointState,
  type ServiceReason,
} from '../diff/service-reasons.ts';
import { weighServersOfSides } from '../diff/server-owners.ts';
import { parseServiceChain } from '../kube-proxy/chain-names.ts';
import { coverAll, type Coverage } from '../dumps/coverage.ts';
import { joinHostPort } from '../kernel/address.ts';
import { compareText } from '../kernel/compare-text.ts';
import { families, type Family } from '../kernel/family.ts';
import type { Rule } from '../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { jumpChain } from '../kernel/restrict.ts';
import type { KernelState } from '../kernel/state.ts';
import { boundAddresses } from '../kube-proxy/service-link.ts';
import type { Evidence } from '../kube-proxy/evidence.ts';
import { describeReach, findLeftChains, leftBy, leftChainTitles, type LeftChain } from '../kube-proxy/left-behind.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { programs, type ProxyMode } from '../kube-proxy/modes.ts';
import { parseSetName } from '../kube-proxy/ipvs-sets.ts';
import { decompileIptables, destinationOf } from './decompile-iptables.ts';
import { decompileIpvs } from './decompile-ipvs.ts';
import { decompileNftables } from './decompile-nftables.ts';
import { decompileUserspace } from './decompile-userspace.ts';
import type { DecompiledPort } from './decompiled-port.ts';

/** What a state shows of the Services that it came from. */
export interface Decompiled {
  readonly mode: ProxyMode | undefined;
  /** Sorted by name, then family. */
  readonly ports: readonly DecompiledPort[];
  readonly leftovers: Leftovers;
}

/** Objects of a mode that the node no longer runs. */
interface Leftovers {
  /** Of iptables mode, on a node in IPVS mode. */
  readonly chains: readonly LeftChain[];
  /** Service ports that only such rules show. */
  readonly ports: readonly DecompiledPort[];
  /** Of IPVS mode, on a node in iptables mode. */
  readonly virtualServers: readonly VirtualServer[];
  readonly sets: readonly string[];
  readonly addresses: readonly string[];
}

/**
 * Reads Services back from a kernel's state. Names come from kube-proxy's comments in iptables and userspace mode and from the names of
 * chains in nftables mode; IPVS mode shows addresses only. What another mode left is apart. `weighServer` says whether a virtual server is kube-proxy's,
 * `coverage` what is known whole.
 */
export function decompile(
  state: KernelState,
  owners: Owners,
  weighServer: (server: VirtualServer) => Evidence,
  coverage: Coverage,
): Decompiled {
  const mode = modeOfState(state) ?? (state.virtualServers.length > 0 ? 'ipvs' : undefined);
  const hasLeftIpvs = mode !== undefined && !programs(mode, 'virtualServers');
  const isLeft = (server: VirtualServer): boolean => hasLeftIpvs && weighServer(server) === 'certain';
  const virtualServers = state.virtualServers.filter((server) => weighServer(server) !== 'none' && !isLeft(server));
  const ofServers = { ...state, virtualServers, sets: hasLeftIpvs ? [] : state.sets };
  const ofRules = decompileIptables(
    state,
    families.filter((family) => coverage.iptables[family].includes('nat')),
  );
  const chains = findLeftChains(state, mode);
  const isLeftOver = chains.length > 0;
  // A state may hold parts of several modes.
  const ofModes: { readonly [M in ProxyMode]: readonly DecompiledPort[] } = {
    iptables: isLeftOver ? [] : ofRules,
    ipvs: decompileIpvs(ofServers, owners, !coverage.virtualServers),
    nftables: decompileNftables(state, owners, coverage.nftables),
    userspace: decompileUserspace(state),
  };
  return {
    mode,
    ports: sortPorts(Object.values(ofModes).flat()),
    leftovers: {
      chains,
      ports: isLeftOver ? sortPorts(ofRules) : [],
      virtualServers: state.virtualServers.filter(isLeft),
      sets: hasLeftIpvs ? state.sets.map(({ name }) => name).filter((name) => parseSetName(name)) : [],
      addresses: hasLeftIpvs ? boundAddresses(state) : [],
    },
  };
}

/** The Services of a dump, where nothing is known of another side. */
export function decompileSide(side: Side, owners: Owners): Decompiled {
  return decompile(side.state, owners, weighServersOfSides(side, side), side.coverage);
}

function sortPorts(ports: readonly DecompiledPort[]): readonly DecompiledPort[] {
  const key = ({ label, family }: DecompiledPort) => `${label} ${family}`;
  return ports.toSorted((a, b) => compareText(key(a), key(b)));
}

/** Finds what a state that is compiled shows of a Service port. It is read when it is first asked for. */
export function findShown(
  state: KernelState,
  owners: Owners,
): (label: string, family: Family) => DecompiledPort | undefined {
  let ports: ReadonlyMap<string, DecompiledPort> | undefined;
  return (label, family) => {
    ports ??= new Map(
      decompile(state, owners, () => 'certain', coverAll()).ports.map(
        (port) => [`${port.family} ${port.label}`, port] as const,
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
    ...counted(dead, 'chain').map((text) => `${leftChainTitles.dead}: ${text}`),
    ...live.map((left) => {
      const { table, chain } = left;
      // In table filter, only chains that refuse packets count as left.
      const refuses = table === 'filter' ? ', which refuses packets,' : '';
      const what = `chain ${chain.name} (${table})${refuses} with ${count(chain.rules.length, 'rule')}`;
      return `${leftBy('iptables')}, ${describeReach(left)}: ${what}`;
    }),
    ...(ofIpvs.length > 0 ? [`${leftBy('ipvs')}: ${ofIpvs.join(', ')}`] : []),
  ];
}

/**
 * Compares the Service ports of two sides by what their states show, for example if one side is a dump: a dump does not
 * record its Services. What a state does not show of a port is not a difference.
 */
export const diffDecompiled: ReadServices = (from, to, owners): ReadChanges => {
  const weighServer = weighServersOfSides(from, to);
  const read = (side: Side, own: Owners) =>
    groupBy(decompile(coverForServices(side), own, weighServer, side.coverage).ports, ({ label }) => label);
  const [before, after] = [read(from, owners.from), read(to, owners.to)];
  const changes: ServicePortChange[] = [];
  const compared = { all: 0, withoutEndpoints: 0 };
  for (const [label, ports] of after) {
    const reasons = ports.flatMap((port) => {
      const old = before.get(label)?.find(({ family }) => family === port.family);
      if (!old) return [];
      compared.all++;
      if (!old.endpoints || !port.endpoints) compared.withoutEndpoints++;
      return [...diffFields(old, port), ...diffEndpoints(old, port)];
    });
    if (reasons.length === 0) continue;
    changes.push({ label, change: 'changed', reasons: uniqueReasons(reasons), place: undefined });
  }
  return { changes, compared, shown: { from: before, to: after }, follows };
};

/** A kernel shows only endpoints that are in use. */
const usedEndpoint: EndpointState = { condition: 'ready', node: undefined, hints: [], used: true };
const drainingEndpoint: EndpointState = { ...usedEndpoint, condition: 'draining', used: false };

function diffEndpoints(from: DecompiledPort, to: DecompiledPort): readonly ServiceReason[] {
  if (!from.endpoints || !to.endpoints) return [];
  const statesOf = (endpoints: NonNullable<DecompiledPort['endpoints']>) =>
    new Map(endpoints.map(({ label, draining }) => [label, draining ? drainingEndpoint : usedEndpoint]));
  return diffEndpointStates(statesOf(from.endpoints), statesOf(to.endpoints));
}

/**
 * Whether a kernel change merely follows from these reasons: it adds or removes the chain of an endpoint, or changes
 * the rules that choose among endpoints.
 */
function follows({ change, rules }: KernelChange, reasons: readonly ServiceReason[]): boolean {
  if (!rules || rules.shared || rules.reordered) return false;
  const endpoints = new Set(
    reasons.flatMap((each) =>
      each.kind === 'endpoint-added' || each.kind === 'endpoint-removed' ? [each.endpoint] : [],
    ),
  );
  if (endpoints.size === 0) return false;
  const { edited } = rules;
  const kind = parseServiceChain(rules.chain)?.kind;
  if (kind === 'cluster' || kind === 'local') {
    const leadsTo = (rule: Rule) => parseServiceChain(jumpChain(rule) ?? '')?.kind;
    return change === 'changed' && edited.every((rule) => leadsTo(rule) === 'endpoint');
  }
  if (kind !== 'endpoint' || change === 'changed') return false;
  return endpoints.has(destinationOf(edited)?.label ?? '');
}
