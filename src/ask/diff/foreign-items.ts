import { coverRulesToRead, coverState, intersectCoverage } from '../../dumps/coverage.ts';
import { families } from '../../kernel/address.ts';
import type { TableName } from '../../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import {
  jumpChain,
  ownsJump,
  restrictState,
  emptyState,
  type Ownership,
  type KernelState,
} from '../../kernel/state.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { classifyChain } from '../../kube-proxy/chains.ts';
import { weighEvidence, type Evidence } from '../../kube-proxy/evidence.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import { serviceLink, parseSetName } from '../../kube-proxy/ipvs-objects.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { weighServersOfSides } from '../../snapshot/server-owners.ts';

export interface StatePair {
  readonly from: KernelState;
  readonly to: KernelState;
}

export interface Separation {
  readonly own: StatePair;
  readonly foreign: () => StatePair;
  /** Virtual servers that either kube-proxy or another program may own. */
  readonly unshown: StatePair;
  /** All of kube-proxy's objects on each side, including objects that the other side does not show. */
  readonly whole: StatePair;
}

export function separate(from: Snapshot, to: Snapshot): Separation {
  const coverage = intersectCoverage(from.coverage, to.coverage);
  const pair = { from: coverState(from.state, coverage), to: coverState(to.state, coverage) };
  const weighServer = weighServersOfSides(from, to);
  const owns = ownershipOfSides(from, to, weighServer);
  const both = (take: (state: KernelState) => KernelState): StatePair => ({ from: take(pair.from), to: take(pair.to) });
  const own = both((state) => restrictState(state, owns));
  const isAllTold = [from, to].every(({ kind }) => kind !== 'dump');
  return {
    own,
    foreign: () => both((state) => foreignState(state, owns, weighServer)),
    unshown: both(({ virtualServers }) => ({
      ...emptyState,
      virtualServers: virtualServers.filter((server) => weighServer(server) === 'possible'),
    })),
    whole: isAllTold ? own : { from: restrictState(from.state, owns), to: restrictState(to.state, owns) },
  };
}

/**
 * Returns the part of a side from which Services can be read: everything except truncated rules. In nftables mode, a Service port needs
 * both chains and maps, so part of a table is not enough.
 */
export function coverForServices({ state, coverage }: Snapshot): KernelState {
  return {
    ...state,
    iptables: coverRulesToRead(state.iptables, coverage),
    nftables: state.nftables.filter(({ family }) => coverage.nftables.includes(family)),
  };
}

/**
 * Decides which objects are kube-proxy's on either side. A kubelet fills KUBE-FIREWALL even if kube-proxy does not use it. In a dump,
 * KUBE-FIREWALL therefore counts only if the other side has rules in this chain.
 */
function ownershipOfSides(from: Snapshot, to: Snapshot, weighServer: WeighServer): Ownership {
  const kubeletFirewall = wantsKubeletFirewall([from, to]);
  const { jump: weighJump } = weighEvidence(emptyState);
  const isOwnChain = (name: string, table: TableName): boolean => {
    const kind = classifyChain(table, name);
    // Canary chains do not count, because they have nothing to do with Services and no compiler makes them.
    return kind === 'service' || kind === 'fixed' || (kind === 'shared' && kubeletFirewall);
  };
  return {
    chain: isOwnChain,
    jump: (rule, chain, table) => weighJump(table, chain, rule) !== 'none' && isOwnChain(jumpChain(rule) ?? '', table),
    table: isKubeProxyTable,
    set: (name) => parseSetName(name) !== undefined,
    virtualServer: (server) => weighServer(server) === 'certain',
    link: (name) => name === serviceLink,
    // A link that is up has a link-local address of its own.
    address: (address) => address.scope !== 'link',
    sysctl: () => true,
  };
}

function wantsKubeletFirewall(sides: readonly Snapshot[]): boolean {
  const compiled = sides.filter((side) => side.kind !== 'dump');
  if (compiled.length === sides.length) return true;
  return compiled.some(({ state }) =>
    families.some((family) => (state.iptables[family]?.filter?.get(baseChains.kubeletFirewall)?.rules.length ?? 0) > 0),
  );
}

type WeighServer = (server: VirtualServer) => Evidence;

function foreignState(state: KernelState, owns: Ownership, weighServer: WeighServer): KernelState {
  const others: Ownership = {
    chain: (name, table, family) => !owns.chain(name, table, family) && classifyChain(table, name) !== 'canary',
    jump: (rule, chain, table, family) => !ownsJump(owns, rule, chain, table, family),
    table: (name) => !isKubeProxyTable(name),
    set: (name) => !owns.set(name),
    virtualServer: (server) => weighServer(server) === 'none',
    link: (name) => !owns.link(name),
    address: () => true,
    sysctl: () => false,
  };
  return { ...restrictState(state, others), ipvsTimeouts: undefined, modules: [] };
}
