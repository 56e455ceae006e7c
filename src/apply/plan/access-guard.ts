import { families, type Family, parseAddress } from '../../kernel/address.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import type { SetEntry } from '../../kernel/ipset/set-entry.ts';
import { isBuiltInChain, type Chain, type Rule, type Tables } from '../../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { jumpChain, restrictState, emptyState, type Ownership, type KernelState } from '../../kernel/state.ts';
import {
  accessFilter,
  accessFilterRules,
  accessOutFilterChain,
  openSets,
  setMatch,
  setName,
  setType,
  usualSetSize,
  type SetId,
} from '../../kube-proxy/ipvs-objects.ts';

export type AccessGuard = Pick<KernelState, 'iptables' | 'sets'>;

const { table } = accessFilter;
const guardChains: ReadonlySet<string> = new Set([accessFilter.chain, accessOutFilterChain]);

const guardSetIds = [...openSets, 'healthCheckNodePort', 'ipvsAddresses'] as const;
const guardSets: ReadonlySet<string> = new Set(
  families.flatMap((family) => guardSetIds.map((id) => setName(id, family))),
);

const nothing = () => false;

const guardOwnership: Ownership = {
  chain: (name, of) => of === table && guardChains.has(name),
  set: (name) => guardSets.has(name),
  virtualServer: nothing,
  link: nothing,
  address: nothing,
  sysctl: nothing,
};

export function guardOf(state: KernelState): KernelState {
  return restrictState(state, guardOwnership);
}

export function withoutGuard({ iptables }: KernelState): KernelState['iptables'] {
  const chain: Ownership['chain'] = (name, of) => of !== table || !guardChains.has(name);
  return restrictState({ ...emptyState, iptables }, { ...guardOwnership, chain, jump: (rule) => !isGuardJump(rule) })
    .iptables;
}

/**
 * Blocks new connections to addresses that remain after IPVS mode. Services stay reachable, because the new rules come first and virtual
 * servers are exempt.
 */
export function closeAddresses(
  present: KernelState,
  addresses: readonly string[],
  virtualServers: readonly VirtualServer[],
): AccessGuard {
  const iptables: { [F in Family]?: Tables } = {};
  const sets: IpSet[] = [];
  for (const family of families) {
    const own = addresses.map(parseAddress).filter((address) => address?.family === family);
    if (own.length === 0) continue;
    const closed = new Set(own.map((address) => address?.text));
    const served = virtualServers.filter((server) => closed.has(server.address.text));
    sets.push(
      makeGuardSet(
        present,
        'ipvsAddresses',
        family,
        own.map((address) => ({ address })),
      ),
    );
    if (served.length > 0) {
      const entries = served.map(({ address, protocol, port }) => ({ address, protocol, port }));
      sets.push(makeGuardSet(present, servedPorts, family, entries));
    }
    const rules = [...(served.length > 0 ? [passKnownFlows(family)] : []), ...accessFilterRules(family, [])];
    const chains: readonly Chain[] = [
      { name: accessFilter.chain, rules },
      { name: accessFilter.from, rules: [guardJump] },
    ];
    iptables[family] = { [table]: new Map(chains.map((chain) => [chain.name, chain])) };
  }
  return { iptables, sets };
}

/** The set that holds the ports of remaining virtual servers. The set for cluster IPs would make the node look like one in IPVS mode. */
const servedPorts = 'externalIP' satisfies SetId;

/**
 * Lets known flows through to their virtual servers. To the kernel, a flow without answers, such as logs over UDP, stays NEW, so its state
 * does not show that it is known. The kernel confirms a flow only after this rule, so a refused flow never becomes known. The rule covers
 * only the ports of virtual servers, because a flow may date from before the address was the node's. Test: kernel-lab/mode-change.ts.
 */
const passKnownFlows = (family: Family): Rule => ({
  args: [
    { kind: 'in-interface', name: 'lo', negated: true },
    { kind: 'other', words: ['-m', 'conntrack', '--ctstatus', 'CONFIRMED'] },
    setMatch(servedPorts, family),
    { kind: 'jump', target: { kind: 'return' } },
  ],
});

const guardJump: Rule = {
  args: [
    { kind: 'comment', text: accessFilter.comment },
    { kind: 'jump', target: { kind: 'chain', chain: accessFilter.chain } },
  ],
};

function makeGuardSet(present: KernelState, id: SetId, family: Family, entries: readonly SetEntry[]): IpSet {
  const made: Omit<IpSet, 'entries'> = {
    name: setName(id, family),
    type: setType(id),
    family: family === 'ipv4' ? 'inet' : 'inet6',
    hashSize: 1024,
    maxElements: usualSetSize * Math.ceil(entries.length / usualSetSize),
  };
  return { ...made, ...present.sets.find(({ name }) => name === made.name), entries };
}

function isGuardJump(rule: Rule): boolean {
  return guardChains.has(jumpChain(rule) ?? '');
}

/** Adds a guard after the rules of a state, so that iptables mode's own refusals come first, or before rules that are being replaced. */
export function addGuard(state: KernelState, guard: AccessGuard, where: 'before' | 'after'): KernelState {
  const iptables: { [F in Family]?: Tables } = { ...state.iptables };
  for (const family of families) {
    const chains = new Map(iptables[family]?.[table]);
    for (const chain of guard.iptables[family]?.[table]?.values() ?? []) {
      const isBuiltIn = isBuiltInChain(table, chain.name);
      const there = isBuiltIn ? chains.get(chain.name) : undefined;
      const rules = there?.rules.filter((rule) => !isGuardJump(rule)) ?? [];
      const joined = where === 'after' ? [...rules, ...chain.rules] : [...chain.rules, ...rules];
      chains.set(chain.name, { ...chain, whole: there?.whole, rules: joined });
    }
    if (chains.size > 0) iptables[family] = { ...iptables[family], [table]: chains };
  }
  const names = new Set(guard.sets.map(({ name }) => name));
  return { ...state, iptables, sets: [...state.sets.filter(({ name }) => !names.has(name)), ...guard.sets] };
}
