import { families } from '../kernel/family.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { boundAddresses } from './service-link.ts';
import type { ProxyMode } from './modes.ts';
import { isKubeProxyTable } from './nft-names.ts';
import { parseSetName } from './ipvs-sets.ts';
import { baseChains } from './chain-names.ts';

/**
 * The mode of the kube-proxy that left a state; undefined if nothing shows one. A node that changed its mode keeps
 * remains of the other mode: the rules that packets pass decide. Without such rules any part of the state may be
 * missing, so each part is searched for what only one mode leaves there.
 */
export function modeOfState(state: KernelState): ProxyMode | undefined {
  // kube-proxy of the other modes deletes its table when it starts.
  if (state.nftables.some(({ name }) => isKubeProxyTable(name))) return 'nftables';
  const working = modeOfRules(state);
  if (working) return working;
  if (state.proxyPorts.length > 0) return 'userspace';
  if (state.sets.some(({ name }) => parseSetName(name)?.set === 'clusterIP')) return 'ipvs';
  const chains = new Set(
    families.flatMap((family) => {
      const { nat, filter } = state.iptables[family] ?? {};
      return [...(nat?.keys() ?? []), ...(filter?.keys() ?? [])];
    }),
  );
  if (chains.has(baseChains.loadBalancer) || chains.has(baseChains.accessFilter)) return 'ipvs';
  if (chains.has(baseChains.externalServices) || [...chains].some((name) => /^KUBE-(SVC|SVL|EXT)-/.test(name))) {
    return 'iptables';
  }
  if (chains.has(baseChains.portalsContainer) || chains.has(baseChains.portalsHost)) return 'userspace';
  if (boundAddresses(state).length > 0) return 'ipvs';
  return chains.has(baseChains.services) && state.virtualServers.length === 0 ? 'iptables' : undefined;
}

/** In nat, each mode fills the chain that packets pass first with rules that no other mode writes. */
function modeOfRules({ iptables }: KernelState): ProxyMode | undefined {
  const rules = families.flatMap((family) => iptables[family]?.nat?.get(baseChains.services)?.rules ?? []);
  for (const rule of rules) {
    if (rule.args.some((arg) => arg.kind === 'match-set' && parseSetName(arg.set))) return 'ipvs';
    const target = jumpChain(rule) ?? '';
    if (target === baseChains.nodePorts || /^KUBE-(SVC|SVL|EXT|FW|XLB)-/.test(target)) return 'iptables';
  }
  const portals = families.flatMap((family) => iptables[family]?.nat?.get(baseChains.portalsContainer)?.rules ?? []);
  return portals.length > 0 ? 'userspace' : undefined;
}
