import { compareText } from '../kernel/compare-text.ts';
import type { Owners } from '../diff/changes/owners.ts';
import type { Coverage } from '../dumps/coverage.ts';
import type { ServerBelonging } from '../diff/virtual-servers.ts';
import type { Family } from '../kernel/family.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import { boundAddresses } from '../kube-proxy/service-link.ts';
import { findLeftChains, type LeftChain } from '../kube-proxy/left-chains.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { programs, type ProxyMode } from '../kube-proxy/modes.ts';
import { isKubeProxySet } from '../kube-proxy/sets.ts';
import { decompileIptables } from './decompile-iptables.ts';
import { decompileIpvs } from './decompile-ipvs.ts';
import { decompileNftables } from './decompile-nftables.ts';
import type { DecompiledPort } from './decompiled-port.ts';

/** What a state tells of the Services that it came from. */
export interface Decompiled {
  readonly mode: ProxyMode | undefined;
  /** Sorted by name, then family. */
  readonly ports: readonly DecompiledPort[];
  readonly leftovers: Leftovers;
}

/** What a mode left that the node has no more. */
export interface Leftovers {
  /** Of iptables mode, on a node in IPVS mode. */
  readonly chains: readonly LeftChain[];
  /** Service ports that only such rules tell of. */
  readonly ports: readonly DecompiledPort[];
  /** Of IPVS mode, on a node in iptables mode. */
  readonly virtualServers: readonly VirtualServer[];
  readonly sets: readonly string[];
  readonly addresses: readonly string[];
}

/** Whose a virtual server is, as far as a state tells. */
type BelongingOf = (server: VirtualServer) => ServerBelonging;

/**
 * Reads Services back from a kernel's state: names from kube-proxy's comments in iptables mode, from the names of chains in
 * nftables mode, addresses in IPVS mode. What is left of another mode is told apart. `coverage` says what is known whole.
 */
export function decompile(
  state: KernelState,
  owners: Owners,
  belongingOf: BelongingOf,
  coverage: Pick<Coverage, 'virtualServers'>,
): Decompiled {
  const mode = modeOfState(state) ?? (state.virtualServers.length > 0 ? 'ipvs' : undefined);
  const hasLeftIpvs = mode !== undefined && !programs(mode, 'virtualServers');
  const isLeft = (server: VirtualServer): boolean => hasLeftIpvs && belongingOf(server) === 'kube-proxy';
  const virtualServers = state.virtualServers.filter((server) => belongingOf(server) !== 'other' && !isLeft(server));
  const ofRules = decompileIptables(state);
  const ofIpvs = decompileIpvs(
    { ...state, virtualServers, sets: hasLeftIpvs ? [] : state.sets },
    owners,
    !coverage.virtualServers,
  );
  const ofNftables = decompileNftables(state, owners);
  const chains = findLeftChains(state, mode);
  return {
    mode,
    ports: sortPorts([...(chains.length > 0 ? [] : ofRules), ...ofIpvs, ...ofNftables]),
    leftovers: {
      chains,
      ports: chains.length > 0 ? sortPorts(ofRules) : [],
      virtualServers: state.virtualServers.filter(isLeft),
      sets: hasLeftIpvs ? state.sets.map(({ name }) => name).filter(isKubeProxySet) : [],
      addresses: hasLeftIpvs ? boundAddresses(state) : [],
    },
  };
}

function sortPorts(ports: readonly DecompiledPort[]): readonly DecompiledPort[] {
  const key = ({ name, family }: DecompiledPort) => `${name} ${family}`;
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
      decompile(state, owners, () => 'kube-proxy', { virtualServers: true }).ports.map(
        (port) => [`${port.family} ${port.name}`, port] as const,
      ),
    );
    return ports.get(`${family} ${label}`);
  };
}
