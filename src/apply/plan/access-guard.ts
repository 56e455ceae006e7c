import { parseAddress } from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
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

/** The chains of IPVS mode, and their sets, that close the addresses on kube-ipvs0 to all but Services. */
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

/** The chains, jumps and sets of the guard that a state has. */
export function guardOf(state: KernelState): KernelState {
  return restrictState(state, guardOwnership);
}

/** The rules of a state without the guard of an earlier IPVS mode. */
export function withoutGuard({ iptables }: KernelState): KernelState['iptables'] {
  const chain: Ownership['chain'] = (name, of) => of !== table || !guardChains.has(name);
  return restrictState({ ...emptyState, iptables }, { ...guardOwnership, chain, jump: (rule) => !isGuardJump(rule) })
    .iptables;
}

/**
 * Closes these addresses to new connections for as long as they stay on the node after it has left IPVS mode, but for what their
 * virtual servers know. The rules of the new mode see connections to Services first, so those still pass.
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
      makeSet(
        present,
        'ipvsAddresses',
        family,
        own.map((address) => ({ address })),
      ),
    );
    if (served.length > 0) {
      const entries = served.map(({ address, protocol, port }) => ({ address, protocol, port }));
      sets.push(makeSet(present, servedPorts, family, entries));
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

/** The set of IPVS mode that holds the ports of virtual servers that stay. Not that of cluster IPs, by which a node shows its mode. */
const servedPorts = 'externalIP' satisfies SetId;

/**
 * A flow that is never answered, as of a client that sends its logs over UDP, stays NEW to the kernel: what it sends goes on to
 * its virtual server. The first packet of a flow is confirmed only after this rule, so one that is refused never is. On lo
 * it is confirmed already, but the flows of the node itself get to IPVS before. To no port but a virtual server's: a flow can also
 * be known from a time when the address was not the node's, or of a client that has used its port before.
 * Test: a flow that the kernel knows from before passes at no port but a virtual server's.
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

/** The set with these entries, as large as it is there or as the kernel makes it, and larger where they ask for it. */
function makeSet(present: KernelState, id: SetId, family: Family, entries: readonly SetEntry[]): IpSet {
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
