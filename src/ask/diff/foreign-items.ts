import { coverRulesToRead, coverState, intersectCoverage } from '../../dumps/coverage.ts';
import { families } from '../../kernel/address.ts';
import { isBuiltInChain, tableNames, type Chain, type TableName, type Tables } from '../../kernel/iptables/iptables.ts';
import { placeRules } from '../../kernel/iptables/place-rules.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { chainsOf, type NftTable } from '../../kernel/nftables/table.ts';
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
import { stateWithOthers, type CompiledSnapshot, type DumpedSnapshot, type Snapshot } from '../../snapshot/snapshot.ts';
import { weighServersOfSides } from '../../snapshot/server-owners.ts';

export interface StatePair {
  readonly from: KernelState;
  readonly to: KernelState;
}

export interface Separation {
  readonly own: StatePair;
  readonly foreign: () => StatePair;
  /** Virtual servers that may belong to kube-proxy or to another program. */
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
 * Decides which objects are kube-proxy's on either side. The kubelet also fills KUBE-FIREWALL, even if kube-proxy does not use it. If one
 * side is a dump, KUBE-FIREWALL therefore counts only if the other side has rules in this chain.
 */
function ownershipOfSides(from: Snapshot, to: Snapshot, weighServer: WeighServer): Ownership {
  const kubeletFirewall = wantsKubeletFirewall([from, to]);
  const { jump: weighJump } = weighEvidence(emptyState);
  const isOwnChain = (name: string, table: TableName): boolean => {
    const kind = classifyChain(table, name);
    // Canary chains do not count. They have nothing to do with Services, and kpc never compiles them.
    return kind === 'service' || kind === 'fixed' || (kind === 'shared' && kubeletFirewall);
  };
  return {
    chain: isOwnChain,
    jump: (rule, chain, table) => weighJump(table, chain, rule) !== 'none' && isOwnChain(jumpChain(rule) ?? '', table),
    table: isKubeProxyTable,
    set: (name) => parseSetName(name) !== undefined,
    virtualServer: (server) => weighServer(server) === 'certain',
    link: (name) => name === serviceLink,
    // Any link that is up has a link-local address, which kube-proxy did not add.
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

/**
 * Returns the state of a node after kube-proxy has programmed the compiled rules. All else on the node stays as the dump shows it, and
 * kube-proxy's jumps are where kube-proxy inserts them. The links are only kube-proxy's.
 */
export function stateOnNode(side: CompiledSnapshot, node: DumpedSnapshot): KernelState {
  const { state: wanted } = side;
  const weighServer = weighServersOfSides(node, side);
  const owns = ownershipOfSides(node, side, weighServer);
  const [own, others] = [restrictState(node.state, owns), foreignState(node.state, owns, weighServer)];
  const iptables = families.map((family) => [
    family,
    tablesOnNode(node.state.iptables[family], own.iptables[family], others.iptables[family], wanted.iptables[family]),
  ]);
  const tables = stateWithOthers(node).nftables.filter(({ name }) => !isKubeProxyTable(name));
  return {
    ...wanted,
    iptables: Object.fromEntries(iptables) as KernelState['iptables'],
    nftables: [...tables.map((table) => withoutOwn(table, owns)), ...wanted.nftables],
    sets: [...others.sets, ...wanted.sets],
    virtualServers: [...others.virtualServers, ...wanted.virtualServers],
    sysctls: new Map([...node.state.sysctls, ...wanted.sysctls]),
  };
}

function tablesOnNode(node: Tables = {}, own: Tables = {}, others: Tables = {}, wanted: Tables = {}): Tables {
  const settled = tableNames.map((table) => {
    const [shown, asked] = [node[table] ?? noChains, wanted[table] ?? noChains];
    const chains = new Map([...(others[table] ?? noChains), ...asked]);
    for (const name of [...shown.keys(), ...asked.keys()].filter((each) => isBuiltInChain(table, each))) {
      const { whole } = placeRules(own[table]?.get(name), asked.get(name));
      chains.set(name, { name, policy: shown.get(name)?.policy, rules: whole });
    }
    return [table, chains] as const;
  });
  return Object.fromEntries(settled.filter(([, { size }]) => size > 0));
}

const noChains: ReadonlyMap<string, Chain> = new Map();

/** Removes kube-proxy's chains, and the jumps to them, from an iptables table that nft lists. */
function withoutOwn(table: NftTable, owns: Ownership): NftTable {
  const name = tableNames.find((each) => each === table.name);
  if (name === undefined) return table;
  const isOwn = (chain: string): boolean => owns.chain(chain, name, table.family);
  const chains = [...table.chains].filter(([chain]) => !isOwn(chain));
  const withoutJumps = chains.map(([key, chain]) => {
    const rules = chain.rules.filter(({ expressions }) => !expressions.flatMap(chainsOf).some(isOwn));
    return [key, { ...chain, rules }] as const;
  });
  return { ...table, chains: new Map(withoutJumps) };
}
