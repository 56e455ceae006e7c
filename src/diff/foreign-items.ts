import { coverRulesToRead, coverState, intersectCoverage } from '../dumps/coverage.ts';
import { families } from '../kernel/family.ts';
import type { Rule, TableName } from '../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { jumpChain, ownsJump, restrictState, type Ownership } from '../kernel/restrict.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { classifyChain, isKubeProxyJump } from '../kube-proxy/chains.ts';
import { isKubeProxyTable } from '../kube-proxy/nft-names.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';
import { isKubeProxySet } from '../kube-proxy/ipvs-sets.ts';
import type { Side } from './compared-side.ts';
import { classifyServers, type ServerBelonging } from './virtual-servers.ts';

/** Two states cut down to what can be compared. */
export interface StatePair {
  readonly from: KernelState;
  readonly to: KernelState;
}

/** What of two sides is kube-proxy's, and what is another program's. */
export interface Separation {
  /** Only what both sides show. */
  readonly own: StatePair;
  readonly foreign: () => StatePair;
  /** Virtual servers that may be either. */
  readonly unshown: StatePair;
  /** All that is kube-proxy's on each side, whether the other shows it or not. */
  readonly whole: StatePair;
}

/** Tells what is kube-proxy's from what is not. */
export function separate(from: Side, to: Side): Separation {
  const coverage = intersectCoverage(from.coverage, to.coverage);
  const pair = { from: coverState(from.state, coverage), to: coverState(to.state, coverage) };
  const belongingOf = classifyServers(from, to);
  const owns = ownershipOf(from, to, belongingOf);
  const both = (take: (state: KernelState) => KernelState): StatePair => ({ from: take(pair.from), to: take(pair.to) });
  const own = both((state) => restrictState(state, owns));
  const isAllTold = [from, to].every(({ kind }) => kind !== 'dump');
  return {
    own,
    foreign: () => both((state) => foreignState(state, owns, belongingOf)),
    unshown: both(({ virtualServers }) => ({
      ...emptyState,
      virtualServers: virtualServers.filter((server) => belongingOf(server) === 'unshown'),
    })),
    whole: isAllTold ? own : { from: restrictState(from.state, owns), to: restrictState(to.state, owns) },
  };
}

/**
 * What of a side Services are read from: all but rules that are cut off somewhere. In nftables a Service port is in chains
 * and in maps, so that a part of a table shows too little.
 */
export function coverForServices({ state, coverage }: Side): KernelState {
  return {
    ...state,
    iptables: coverRulesToRead(state.iptables, coverage),
    nftables: state.nftables.filter(({ family }) => coverage.nftables.includes(family)),
  };
}

/**
 * What is kube-proxy's on either side. A kubelet fills KUBE-FIREWALL on nodes whether kube-proxy asks for it or not:
 * next to a dump it counts only where the other side has rules in it.
 */
function ownershipOf(from: Side, to: Side, belongingOf: BelongingOf): Ownership {
  const kubeletFirewall = wantsKubeletFirewall([from, to]);
  const isOwnChain = (name: string, table: TableName): boolean => {
    const kind = classifyChain(table, name);
    // A canary says nothing of Services, and no compiler makes it.
    return kind === 'service' || kind === 'fixed' || (kind === 'shared' && kubeletFirewall);
  };
  return {
    chain: isOwnChain,
    jump: (rule, chain, table) =>
      (isKubeProxyJump(rule, table, chain) || isSilentJump(rule, table)) && isOwnChain(jumpChain(rule) ?? '', table),
    table: isKubeProxyTable,
    set: isKubeProxySet,
    virtualServer: (server) => belongingOf(server) === 'kube-proxy',
    link: (name) => name === serviceLink,
    // A link that is up gives itself such an address.
    address: (address) => address.scope !== 'link',
    sysctl: () => true,
  };
}

/** A jump that says nothing of itself, as in rules whose comments were taken out before they were pasted. */
function isSilentJump({ args }: Rule, table: TableName): boolean {
  return args.every(
    (arg) => arg.kind === 'jump' && arg.target.kind === 'chain' && classifyChain(table, arg.target.chain) === 'fixed',
  );
}

function wantsKubeletFirewall(sides: readonly Side[]): boolean {
  const compiled = sides.filter((side) => side.kind !== 'dump');
  if (compiled.length === sides.length) return true;
  return compiled.some(({ state }) =>
    families.some((family) => (state.iptables[family]?.filter?.get(baseChains.kubeletFirewall)?.rules.length ?? 0) > 0),
  );
}

type BelongingOf = (server: VirtualServer) => ServerBelonging;

/** What restrictState leaves out, and is not in doubt. */
function foreignState(state: KernelState, owns: Ownership, belongingOf: BelongingOf): KernelState {
  const others: Ownership = {
    chain: (name, table, family) => !owns.chain(name, table, family) && classifyChain(table, name) !== 'canary',
    jump: (rule, chain, table, family) => !ownsJump(owns, rule, chain, table, family),
    table: (name) => !isKubeProxyTable(name),
    set: (name) => !owns.set(name),
    virtualServer: (server) => belongingOf(server) === 'other',
    link: (name) => !owns.link(name),
    address: () => true,
    sysctl: () => false,
  };
  return { ...restrictState(state, others), ipvsTimeouts: undefined, modules: [] };
}
