import { portAddresses } from '../cluster/model.ts';
import type { Coverage } from '../dumps/coverage.ts';
import type { ProxyPort } from '../kernel/balancer/balancer.ts';
import { compareText } from '../kernel/compare.ts';
import { families } from '../kernel/address.ts';
import { readTerms } from '../kernel/iptables/rule-terms.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { type Evidence, modeOfState } from '../kube-proxy/evidence.ts';
import { boundAddresses, parseSetName } from '../kube-proxy/ipvs-objects.ts';
import { findLeftChains, type LeftChain } from '../kube-proxy/left-behind.ts';
import { findUnreached, type Unreached } from '../kube-proxy/missing-jumps.ts';
import { programs, type ProxyMode } from '../kube-proxy/modes.ts';
import type { Owners } from '../kube-proxy/owners.ts';
import { decompileIptables, findArg, readServiceRule } from './decompile-iptables.ts';
import { decompileIpvs } from './decompile-ipvs.ts';
import { decompileNftables } from './decompile-nftables.ts';
import { type DecompiledPort, endpointAt, PortDraft } from './decompiled-port.ts';

export interface ShownServices {
  readonly mode: ProxyMode | undefined;
  readonly ports: readonly DecompiledPort[];
  /** The facts in chains and maps that no packet reaches, such as node ports, with the Service ports that these facts would belong to. */
  readonly unreached: readonly UnreachedPorts[];
  readonly leftovers: Leftovers;
}

type UnreachedPorts = Unreached & { readonly ports: readonly DecompiledPort[] };

export interface Leftovers {
  /** Chains of iptables mode that are left on a node in IPVS mode. */
  readonly chains: readonly LeftChain[];
  readonly ports: readonly DecompiledPort[];
  readonly virtualServers: readonly VirtualServer[];
  readonly sets: readonly string[];
  readonly addresses: readonly string[];
}

/**
 * Reads Services from a state. In iptables and userspace mode, kube-proxy's comments name the Services; in nftables mode, the names of
 * chains do. IPVS mode shows only addresses. Leftovers of another mode are listed separately. `weighServer`: how certain it is that a
 * virtual server is kube-proxy's. `coverage`: which parts are shown in full.
 */
export function decompile(
  state: KernelState,
  owners: Owners,
  weighServer: (server: VirtualServer) => Evidence,
  coverage: Coverage,
): ShownServices {
  const mode = modeOfState(state) ?? (state.virtualServers.length > 0 ? 'ipvs' : undefined);
  const hasLeftIpvs = mode !== undefined && !programs(mode, 'virtualServers');
  const isLeft = (server: VirtualServer): boolean => hasLeftIpvs && weighServer(server) === 'certain';
  const virtualServers = state.virtualServers.filter((server) => weighServer(server) !== 'none' && !isLeft(server));
  const ofServers = { ...state, virtualServers, sets: hasLeftIpvs ? [] : state.sets };
  const ofRules = decompileIptables(state, coverage.iptables);
  const chains = findLeftChains(state, mode);
  const isLeftOver = chains.length > 0;
  const ofModes: { readonly [M in ProxyMode]: readonly DecompiledPort[] } = {
    iptables: isLeftOver ? [] : ofRules,
    ipvs: decompileIpvs(ofServers, owners, coverage),
    nftables: decompileNftables(state, owners, coverage.nftables),
    userspace: decompileUserspace(state),
  };
  const all = sortPorts(Object.values(ofModes).flat());
  const unreached = findUnreached(state, mode, coverage).flatMap((each) => {
    const ports = all.filter((port) => port.family === each.family && hasFact[each.facts](port));
    return ports.length === 0 ? [] : [{ ...each, ports }];
  });
  return {
    mode,
    ports: all.map((port) => withoutUnreached(port, unreached)),
    unreached,
    leftovers: {
      chains,
      ports: isLeftOver ? sortPorts(ofRules) : [],
      virtualServers: state.virtualServers.filter(isLeft),
      sets: hasLeftIpvs ? state.sets.map(({ name }) => name).filter((name) => parseSetName(name)) : [],
      addresses: hasLeftIpvs ? boundAddresses(state) : [],
    },
  };
}

const hasFact: { readonly [F in Unreached['facts']]: (port: DecompiledPort) => boolean } = {
  addresses: (port) => portAddresses(port).length > 0,
  nodePorts: ({ nodePort }) => nodePort !== undefined,
  sourceRanges: ({ sourceRanges = [], hidesSourceRanges }) => sourceRanges.length > 0 || hidesSourceRanges === true,
};

function withoutUnreached(port: DecompiledPort, unreached: readonly UnreachedPorts[]): DecompiledPort {
  const isLost = (facts: Unreached['facts']): boolean =>
    unreached.some((each) => each.facts === facts && each.ports.includes(port));
  return {
    ...port,
    ...(isLost('nodePorts') && { nodePort: 0 }),
    ...(isLost('sourceRanges') && { sourceRanges: [], hidesSourceRanges: undefined }),
  };
}

function sortPorts(ports: readonly DecompiledPort[]): readonly DecompiledPort[] {
  const key = ({ label, family }: DecompiledPort) => `${label} ${family}`;
  return ports.toSorted((a, b) => compareText(key(a), key(b)));
}

/** Reads Service ports from the rules of userspace mode. Comments name the ports, and the balancer shows their endpoints. */
function decompileUserspace({ iptables, proxyPorts }: KernelState): readonly DecompiledPort[] {
  const served = new Map(proxyPorts.map((port) => [`${port.protocol} ${port.port}`, port]));
  const drafts = new Map<string, PortDraft>();
  for (const family of families) {
    const nat = iptables[family]?.nat;
    for (const chain of [baseChains.portalsContainer, baseChains.portalsHost, baseChains.nodePortContainer]) {
      for (const rule of nat?.get(chain)?.rules ?? []) {
        const { label, address, port, protocol = 'TCP', isOfAddressType } = readServiceRule(rule);
        if (label === undefined) continue;
        const key = `${family} ${protocol} ${label}`;
        const draft = drafts.get(key) ?? new PortDraft(label, family, protocol);
        drafts.set(key, draft);
        if (!address) draft.nodePort ??= port;
        // kube-proxy writes the rule for a Service port's cluster IP first. A rule with further conditions is for an external IP.
        else if (isOfAddressType || findArg(rule, 'physdev-is-in')) draft.addAddress('external-ip', address, port);
        else if (!draft.addresses.has(address.text))
          draft.addAddress(draft.hasClusterIP() ? 'load-balancer-ip' : 'cluster-ip', address, port);
        const action = readTerms(rule, family)?.action;
        const to = action?.kind === 'dnat' ? action.target.port : action?.kind === 'redirect' ? action.port : undefined;
        draft.proxyPort ??= to;
        addProxyEndpoints(draft, served.get(`${protocol} ${to}`));
      }
    }
  }
  return [...drafts.values()].map((draft) => draft.finish());
}

function addProxyEndpoints(draft: PortDraft, proxyPort: ProxyPort | undefined): void {
  if (!proxyPort || draft.showsEndpoints) return;
  draft.showsEndpoints = true;
  for (const endpoint of proxyPort.endpoints) draft.addEndpoint(endpointAt(endpoint), 'Cluster');
}
