import { parseAddress } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { isBuiltInChain, type Chain, type Rule, type Tables } from '../../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { formatEntry } from '../../kernel/ipset/set-entry.ts';
import { jumpChain, restrictState, type Ownership } from '../../kernel/restrict.ts';
import type { KernelState } from '../../kernel/state.ts';
import {
  accessFilter,
  accessFilterRules,
  accessOutFilterChain,
  openSets,
  setName,
  type SetId,
} from '../../kube-proxy/ipvs-sets.ts';
import { socketOf } from '../../kube-proxy/virtual-servers.ts';
import { chainKey, jumpKey, noBelongings, type Belongings } from '../state/belongings.ts';

/** The chains of IPVS mode, and their sets, that close the addresses on kube-ipvs0 to all but Services. */
export type AccessGuard = Pick<KernelState, 'iptables' | 'sets'>;

const { table } = accessFilter;
const guardChains: ReadonlySet<string> = new Set([accessFilter.chain, accessOutFilterChain]);

/**
 * What must guard these addresses as long as they are on the node after it has left IPVS mode: packets only get past to
 * one of these virtual servers. A port of a Service needs no more, since its rules take new connections
 * before, nor does a port for health checks, which a rule of iptables mode lets in.
 */
export function guardAddresses(
  present: KernelState,
  addresses: readonly string[],
  virtualServers: readonly VirtualServer[],
): AccessGuard {
  const iptables: { [F in Family]?: Tables } = {};
  const sets: IpSet[] = [];
  const standing = new Set(virtualServers.map(socketOf));
  const there = new Map(present.sets.map((set) => [set.name, set]));
  for (const family of families) {
    const own = addresses.filter((address) => parseAddress(address)?.family === family);
    if (own.length === 0) continue;
    const open: SetId[] = [];
    for (const id of openSets) {
      const set = there.get(setName(id, family));
      const entries = set?.entries.filter((entry) => standing.has(formatEntry(entry))) ?? [];
      if (!set || entries.length === 0) continue;
      open.push(id);
      sets.push({ ...set, entries });
    }
    sets.push(addressSet(there.get(setName('ipvsAddresses', family)), own, family));
    iptables[family] = { [table]: guardRules(present.iptables[family] ?? {}, family, open, standing) };
  }
  return { iptables, sets };
}

/** The kernel's defaults for a hash set. */
const usualElements = 65_536;

function addressSet(there: IpSet | undefined, addresses: readonly string[], family: Family): IpSet {
  const entries = addresses.map((text) => ({ address: parseAddress(text) }));
  const usual: Omit<IpSet, 'entries'> = {
    name: setName('ipvsAddresses', family),
    type: 'hash:ip',
    family: family === 'ipv4' ? 'inet' : 'inet6',
    hashSize: 1024,
    maxElements: usualElements * Math.ceil(entries.length / usualElements),
  };
  return { ...usual, ...there, entries };
}

function guardRules(
  present: Tables,
  family: Family,
  open: readonly SetId[],
  standing: ReadonlySet<string>,
): ReadonlyMap<string, Chain> {
  const jump: Rule = {
    args: [
      { kind: 'comment', text: accessFilter.comment },
      { kind: 'jump', target: { kind: 'chain', chain: accessFilter.chain } },
    ],
  };
  const chains: Chain[] = [
    { name: accessFilter.chain, rules: accessFilterRules(family, open) },
    { name: accessFilter.from, rules: [jump] },
  ];
  const out = present[table]?.get(accessOutFilterChain);
  // Rules about virtual servers that still exist.
  const closed = (out?.rules ?? []).filter(({ args }) =>
    args.some(
      (arg) => arg.kind === 'virtual-server' && standing.has(`${arg.address.text},${arg.protocol}:${arg.port}`),
    ),
  );
  if (out && closed.length > 0) {
    chains.push({ ...out, rules: closed });
    for (const [name, { rules }] of present[table] ?? []) {
      const jumps = rules.filter((rule) => jumpChain(rule) === out.name);
      if (jumps.length > 0 && isBuiltInChain(table, name)) chains.push({ name, rules: jumps });
    }
  }
  return new Map(chains.map((chain) => [chain.name, chain]));
}

const guardSets: ReadonlySet<string> = new Set(
  families.flatMap((family) => [...openSets, 'ipvsAddresses' as const].map((id) => setName(id, family))),
);

function isGuardJump(rule: Rule): boolean {
  return guardChains.has(jumpChain(rule) ?? '');
}

/** Either a guard alone, or all but a guard. */
function guardOwnership(isGuard: boolean): Ownership {
  const isOther = () => !isGuard;
  return {
    chain: (name, of) => (of === table && guardChains.has(name)) === isGuard,
    jump: (rule, _, of) => (of === table && isGuardJump(rule)) === isGuard,
    set: (name) => guardSets.has(name) === isGuard,
    table: isOther,
    virtualServer: isOther,
    link: isOther,
    address: isOther,
    sysctl: isOther,
  };
}

/** The chains, jumps and sets of the guard that a state has. */
export function guardOf(state: KernelState): AccessGuard {
  return restrictState(state, guardOwnership(true));
}

/** A state of iptables mode without what guarded addresses of the IPVS mode before. */
export function withoutGuard(state: KernelState): KernelState {
  return restrictState(state, guardOwnership(false));
}

/** The guard of a state, by which it was kept: what belongs to it of any state. */
export function guardIn(state: KernelState): Belongings {
  const { iptables, sets } = guardOf(state);
  const chains: string[] = [];
  const jumps: string[] = [];
  for (const family of families) {
    for (const { name, rules } of iptables[family]?.[table]?.values() ?? []) {
      if (isBuiltInChain(table, name)) jumps.push(...rules.map((rule) => jumpKey(family, table, name, rule)));
      else chains.push(chainKey(family, table, name));
    }
  }
  return { ...noBelongings, chains, jumps, sets: sets.map(({ name }) => name) };
}

/**
 * A state with a guard besides. Its jumps come after those that the state has: a rule of iptables mode that refuses a
 * packet in its own way, or lets it in, comes first. Or before them, where they are what gives way.
 */
export function addGuard(state: KernelState, guard: AccessGuard, where: 'before' | 'after'): KernelState {
  const iptables: { [F in Family]?: Tables } = { ...state.iptables };
  for (const family of families) {
    const chains = new Map(iptables[family]?.[table]);
    for (const chain of guard.iptables[family]?.[table]?.values() ?? []) {
      const isBuiltIn = isBuiltInChain(table, chain.name);
      const rules = isBuiltIn ? (chains.get(chain.name)?.rules.filter((rule) => !isGuardJump(rule)) ?? []) : [];
      const joined = where === 'after' ? [...rules, ...chain.rules] : [...chain.rules, ...rules];
      chains.set(chain.name, { ...chain, rules: joined });
    }
    if (chains.size > 0) iptables[family] = { ...iptables[family], [table]: chains };
  }
  const names = new Set(guard.sets.map(({ name }) => name));
  return { ...state, iptables, sets: [...state.sets.filter(({ name }) => !names.has(name)), ...guard.sets] };
}
