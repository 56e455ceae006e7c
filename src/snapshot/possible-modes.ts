import { jumpsToOwn } from '../dumps/rule-listings.ts';
import { families } from '../kernel/address.ts';
import { tableNames } from '../kernel/iptables/iptables.ts';
import type { KernelState } from '../kernel/state.ts';
import { serviceLink } from '../kube-proxy/ipvs-objects.ts';
import { programs, proxyModes, type ProxyMode } from '../kube-proxy/modes.ts';
import { isModeOf, newestRelease } from '../kube-proxy/releases.ts';
import { showsAllAddresses } from '../kube-proxy/unshown.ts';
import { showsIptablesAsNft, type Snapshot } from './snapshot.ts';

/**
 * Returns the modes in which a node's kube-proxy may run. If no object shows the mode, the node has no Services only if the listings of all
 * these modes show none. IPVS mode always makes kube-ipvs0 (syncProxyRules in pkg/proxy/ipvs/proxier.go). nftables mode removes the jumps
 * of the other modes when it starts (CleanupLeftovers).
 */
export function possibleModes(side: Snapshot): readonly ProxyMode[] {
  const { mode, state, coverage } = side;
  if (mode) return [mode];
  if (showsIptablesAsNft(side)) return ['iptables'];
  const { links } = state;
  const isListed = coverage.links && families.some((family) => showsAllAddresses(coverage, links, family));
  const lacksLink = isListed && !links.some(({ name }) => name === serviceLink);
  const hasJumps = hasOwnJumps(state);
  return proxyModes.filter(
    (each) =>
      isModeOf(each, newestRelease) &&
      !(lacksLink && programs(each, 'links')) &&
      !(hasJumps && !programs(each, 'iptables')),
  );
}

export function hasOwnJumps({ iptables }: KernelState): boolean {
  return families.some((family) =>
    tableNames.some((name) => {
      const chains = iptables[family]?.[name];
      return chains !== undefined && jumpsToOwn(name, chains);
    }),
  );
}

/** Reports whether any of the node's possible modes programs a kind of object. */
export function mayProgram(side: Snapshot, kind: Parameters<typeof programs>[1]): boolean {
  return possibleModes(side).some((mode) => programs(mode, kind));
}
