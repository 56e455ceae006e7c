import { parseAddress } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { isBuiltInChain, type Chain, type Rule, type Tables } from '../../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { formatEntry } from '../../kernel/ipset/set-entry.ts';
import { jumpChain } from '../../kernel/restrict.ts';
import type { KernelState } from '../../kernel/state.ts';
import { accessFilter, accessFilterRules, accessOutFilterChain, openSets } from '../../kube-proxy/access-filter.ts';
import { setName, type SetId } from '../../kube-proxy/sets.ts';
import { socketOf } from '../../kube-proxy/virtual-servers.ts';
import { chainKey, jumpKey, noBelongings, type Belongings } from '../state/belongings.ts';

/** The chains of IPVS mode, and their sets, that close the addresses on kube-ipvs0 to all but Services. */
export type AccessGuard = Pick<KernelState, 'iptables' | 'sets'>;

const { table } = accessFilter;
const guardChains: ReadonlySet<string> = new Set([accessFilter.chain, accessOutFilterChain]);

/**
 * What must guard these addresses as long as they are on the node after it has left IPVS mode: only where one of these
 * virtual servers stands do packets get past. A port of a Service needs no more, since its rules take new connections
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
    const own = addresses.filter((address) => familyOf(address) === family);
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

function familyOf(text: string): Family | undefined {
  return parseAddress(text)?.family;
}

/** What the kernel makes a hash set with unless told otherwise. */
const usualElements = 65_536;

function addressSet(there: IpSet | undefined, addresses: readonly string[], family: Family): IpSet {
  const entries = addresses.map((text) => ({ address: parseAddress(text) }));
  const made: IpSet = {
    name: setName('ipvsAddresses', family),
    type: 'hash:ip',
    family: family === 'ipv4' ? 'inet' : 'inet6',
    hashSize: 1024,
    maxElements: usualElements * Math.ceil(entries.length / usualElements),
    entries,
  };
  return there ? { ...there, entries } : made;
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
  const closed = out?.rules.filter((rule) => closesOneOf(rule, standing)) ?? [];
  if (out && closed.length > 0) {
    chains.push({ ...out, rules: closed });
    for (const [name, { rules }] of present[table] ?? []) {
      const jumps = rules.filter((rule) => jumpChain(rule) === out.name);
      if (jumps.length > 0 && isBuiltInChain(table, name)) chains.push({ name, rules: jumps });
    }
  }
  return new Map(chains.map((chain) => [chain.name, chain]));
}

/** Whether a rule of KUBE-IPVS-OUT-FILTER is about a virtual server that stands. */
function closesOneOf({ args }: Rule, standing: ReadonlySet<string>): boolean {
  return args.some(
    (arg) => arg.kind === 'virtual-server' && standing.has(`${arg.address.text},${arg.protocol}:${arg.port}`),
  );
}

/** The guard of a state, by which it was kept: what belongs to it of any state. */
export function guardIn(state: AccessGuard): Belongings {
  const chains: string[] = [];
  const jumps: string[] = [];
  for (const family of families) {
    for (const chain of state.iptables[family]?.[table]?.values() ?? []) {
      if (guardChains.has(chain.name)) chains.push(chainKey(family, table, chain.name));
      if (!isBuiltInChain(table, chain.name)) continue;
      for (const rule of chain.rules) if (isGuardJump(rule)) jumps.push(jumpKey(family, table, chain.name, rule));
    }
  }
  const names = new Set(
    families.flatMap((family) => [...openSets, 'ipvsAddresses' as const].map((id) => setName(id, family))),
  );
  const sets = state.sets.map(({ name }) => name).filter((name) => names.has(name));
  return { ...noBelongings, chains, jumps, sets };
}

function isGuardJump(rule: Rule): boolean {
  return guardChains.has(jumpChain(rule) ?? '');
}

/**
 * A state with a guard besides. Its jumps stand after those that the state has: a rule of iptables mode that refuses a
 * packet in its own way, or lets it in, comes first. Or before them, where they are what gives way.
 */
export function addGuard<S extends AccessGuard>(state: S, guard: AccessGuard, where: 'before' | 'after'): S {
  const iptables: { [F in Family]?: Tables } = { ...state.iptables };
  for (const family of families) {
    const added = guard.iptables[family]?.[table];
    if (!added) continue;
    const chains = new Map(iptables[family]?.[table]);
    for (const chain of added.values()) {
      const rules = isBuiltInChain(table, chain.name)
        ? (chains.get(chain.name)?.rules ?? []).filter((rule) => !isGuardJump(rule))
        : [];
      chains.set(chain.name, {
        ...chain,
        rules: where === 'after' ? [...rules, ...chain.rules] : [...chain.rules, ...rules],
      });
    }
    iptables[family] = { ...iptables[family], [table]: chains };
  }
  const names = new Set(guard.sets.map(({ name }) => name));
  return { ...state, iptables, sets: [...state.sets.filter(({ name }) => !names.has(name)), ...guard.sets] };
}

/** The chains and jumps of the guard that a state of IPVS mode has. */
export function guardOf({ iptables }: Pick<KernelState, 'iptables'>): AccessGuard {
  const guards: { [F in Family]?: Tables } = {};
  for (const family of families) {
    const chains = new Map<string, Chain>();
    for (const chain of iptables[family]?.[table]?.values() ?? []) {
      const jumps = isBuiltInChain(table, chain.name) ? chain.rules.filter(isGuardJump) : [];
      if (guardChains.has(chain.name)) chains.set(chain.name, chain);
      else if (jumps.length > 0) chains.set(chain.name, { ...chain, rules: jumps });
    }
    if (chains.size > 0) guards[family] = { [table]: chains };
  }
  return { iptables: guards, sets: [] };
}

/** A state of iptables mode without what guarded addresses of the IPVS mode before. */
export function withoutGuard<S extends AccessGuard>(state: S): S {
  const iptables: { [F in Family]?: Tables } = { ...state.iptables };
  for (const family of families) {
    const tables = iptables[family];
    const chains = tables?.[table];
    if (!chains) continue;
    const kept = new Map<string, Chain>();
    for (const chain of chains.values()) {
      if (guardChains.has(chain.name)) continue;
      const isBuiltIn = isBuiltInChain(table, chain.name);
      kept.set(chain.name, isBuiltIn ? { ...chain, rules: chain.rules.filter((rule) => !isGuardJump(rule)) } : chain);
    }
    iptables[family] = { ...tables, [table]: kept };
  }
  const names = new Set(guardIn(state).sets);
  return { ...state, iptables, sets: state.sets.filter(({ name }) => !names.has(name)) };
}
