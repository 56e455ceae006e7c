import { loopbackNetworks } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import {
  isBuiltInChain,
  tableNames,
  type Chain,
  type Rule,
  type RuleArg,
  type TableName,
  type Tables,
} from '../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import { jumpChain } from '../kernel/restrict.ts';
import type { KernelState } from '../kernel/state.ts';
import { accessFilter, isKubeProxySet } from './ipvs-sets.ts';
import { baseChains } from './chain-names.ts';
import { modeFacts, type ProxyMode } from './modes.ts';

/**
 * What an iptables chain is to kube-proxy, by its name and table:
 *
 * - service: of one Service port or endpoint, KUBE-SVC-, KUBE-SEP- and so on with a hash; iptables mode, table nat only
 * - fixed: one that every node has, in IPVS or iptables mode
 * - canary: empty, there to be missed when another program flushes the tables; says nothing of Services
 * - shared: KUBE-FIREWALL, which kubelet makes too
 */
export type ChainKind = 'service' | 'fixed' | 'canary' | 'shared';

/**
 * The names of servicePortPolicyClusterChain and the functions beside it (iptables/proxier.go): a prefix and the first
 * 16 characters of a SHA-256 in base32. KUBE-XLB- is what releases up to 1.23 had for KUBE-EXT-.
 */
export const serviceChainPattern = 'KUBE-(?:SVC|SVL|SEP|EXT|FW|XLB)-[A-Z2-7]{16}';

const serviceChain = new RegExp(`^${serviceChainPattern}$`);

/** The chains that every node has, with a rule or more for each Service. */
export const crowdedChains = [baseChains.services, baseChains.externalServices, baseChains.nodePorts] as const;

const canaryChain = 'KUBE-PROXY-CANARY';

/** In table filter: see localnetRule. */
export const sharedChain = baseChains.kubeletFirewall;

/** The fixed chains of both modes (iptables/proxier.go, and iptablesChains in ipvs/proxier.go). */
const fixedChains: { readonly [T in TableName]?: ReadonlySet<string> } = {
  nat: new Set([
    baseChains.services,
    baseChains.postrouting,
    baseChains.markMasquerade,
    baseChains.nodePorts,
    baseChains.nodePort,
    baseChains.loadBalancer,
    // Of IPVS mode up to 1.26.
    baseChains.oldFirewall,
  ]),
  filter: new Set([
    baseChains.services,
    baseChains.externalServices,
    baseChains.forward,
    baseChains.nodePorts,
    baseChains.nodePort,
    baseChains.proxyFirewall,
    baseChains.sourceRangesFirewall,
    baseChains.accessFilter,
    baseChains.accessOutFilter,
  ]),
};

const canaryTables: ReadonlySet<TableName> = new Set(['mangle', 'nat', 'filter']);

/** Whether a name is one that kube-proxy gives to the chain of a Service port or endpoint. */
export function isServiceChainName(name: string): boolean {
  return serviceChain.test(name);
}

/**
 * Undefined for a chain that no kube-proxy makes. Other programs' names begin with KUBE- too: KUBE-ROUTER-FORWARD,
 * KUBE-NWPLCY-… and KUBE-POD-FW-… of kube-router, KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT and KUBE-MARK-DROP of kubelet.
 */
export function classifyChain(table: TableName, name: string): ChainKind | undefined {
  if (fixedChains[table]?.has(name)) return 'fixed';
  if (table === 'nat' && isServiceChainName(name)) return 'service';
  if (name === canaryChain && canaryTables.has(table)) return 'canary';
  return table === 'filter' && name === sharedChain ? 'shared' : undefined;
}

/**
 * Whether a kube-proxy made the chain. The name alone decides for one with a hash in it, and for an empty one; of any other,
 * another program may have one of the same name.
 */
export function isKubeProxyChain(table: TableName, { name, rules }: Chain): boolean {
  const kind = classifyChain(table, name);
  if (kind === undefined) return false;
  return kind === 'service' || rules.length === 0 || rules.some(isOfKubeProxyChain) || isSourceRangesDrop(name, rules);
}

/** If no Service of the family has source ranges, IPVS mode leaves this much of the chain. */
function isSourceRangesDrop(name: string, [rule, ...more]: readonly Rule[]): boolean {
  if (name !== baseChains.sourceRangesFirewall || more.length > 0) return false;
  return rule?.args.every((arg) => arg.kind === 'jump' && arg.target.kind === 'drop') === true;
}

/** Whether the rule has what no chain of kube-proxy's is without, in some of its rules: see writeRules in both proxiers. */
function isOfKubeProxyChain(rule: Rule): boolean {
  return rule.args.some((arg) => {
    switch (arg.kind) {
      case 'comment':
        // "kubernetes service nodeports", "default/web:http has no endpoints".
        return /kubernetes|^[-a-z0-9.]+\/[-a-z0-9.]+/i.test(arg.text);
      case 'match-set':
        return isKubeProxySet(arg.set);
      case 'mark':
      case 'virtual-server':
        return true;
      case 'jump':
        return arg.target.kind === 'mark' || isOfKubeProxy(jumpChain(rule) ?? '') || isLocalnetRule(rule);
      default:
        return false;
    }
  });
}

function isOfKubeProxy(chain: string): boolean {
  return tableNames.some((table) => classifyChain(table, chain) !== undefined);
}

/**
 * A jump from one of the kernel's chains to one of kube-proxy's, with its comment. 'NEW': only of packets that open a
 * connection, as the rules there are many, and later packets need none of them.
 */
type Jump = readonly [
  table: TableName,
  from: string,
  to: string,
  comment?: string | undefined,
  state?: 'NEW' | undefined,
];

const natJumps: readonly Jump[] = [
  ['nat', 'PREROUTING', baseChains.services, 'kubernetes service portals'],
  ['nat', 'OUTPUT', baseChains.services, 'kubernetes service portals'],
  ['nat', 'POSTROUTING', baseChains.postrouting, 'kubernetes postrouting rules'],
];

const firewall = [baseChains.proxyFirewall, 'kubernetes load balancer firewall', 'NEW'] as const;
const portals = [baseChains.services, 'kubernetes service portals', 'NEW'] as const;
const externalPortals = [baseChains.externalServices, 'kubernetes externally-visible service portals', 'NEW'] as const;
const forward = [baseChains.forward, 'kubernetes forwarding rules'] as const;
const ipvsFirewall = [baseChains.proxyFirewall, 'kube-proxy firewall rules'] as const;

/**
 * The jumps of iptables mode. kube-proxy puts each jump before all other rules (iptablesJumpChains, iptablesKubeletJumpChains),
 * so its last jump ends up first. Here and below they are in the order in which packets meet them.
 */
export const iptablesJumps: readonly Jump[] = [
  ...natJumps,
  ['filter', 'INPUT', baseChains.kubeletFirewall],
  ['filter', 'INPUT', ...firewall],
  ['filter', 'INPUT', baseChains.nodePorts, 'kubernetes health check service ports'],
  ['filter', 'INPUT', ...externalPortals],
  ['filter', 'FORWARD', ...firewall],
  ['filter', 'FORWARD', ...forward],
  ['filter', 'FORWARD', ...portals],
  ['filter', 'FORWARD', ...externalPortals],
  ['filter', 'OUTPUT', baseChains.kubeletFirewall],
  ['filter', 'OUTPUT', ...firewall],
  ['filter', 'OUTPUT', ...portals],
];

/** The jumps of IPVS mode (iptablesJumpChain of ipvs/proxier.go). */
export const ipvsJumps: readonly Jump[] = [
  ...natJumps,
  [accessFilter.table, accessFilter.from, accessFilter.chain, accessFilter.comment],
  ['filter', 'INPUT', ...ipvsFirewall],
  ['filter', 'INPUT', baseChains.nodePort, 'kubernetes health check rules'],
  ['filter', 'FORWARD', ...ipvsFirewall],
  ['filter', 'FORWARD', ...forward],
  ['filter', 'OUTPUT', baseChains.accessOutFilter, accessFilter.comment],
];

/** The kernel's own chains of a table, with the jumps that come before any other program's rules. */
export function jumpChains(jumps: readonly Jump[], table: TableName): readonly Chain[] {
  const own = jumps.filter(([of]) => of === table);
  const names = new Set(own.map(([, from]) => from));
  return Array.from(names, (name) => ({ name, rules: own.filter(([, from]) => from === name).map(jumpRule) }));
}

function jumpRule([, , chain, text, state]: Jump): Rule {
  const args: RuleArg[] = [];
  if (state !== undefined) args.push({ kind: 'conntrack-state', states: [state] });
  if (text !== undefined) args.push({ kind: 'comment', text });
  return { args: [...args, { kind: 'jump', target: { kind: 'chain', chain } }] };
}

/** All of them, and one of releases before those that kpc follows. Releases differ in whether they are for new connections only. */
const knownJumps: ReadonlySet<string> = new Set(
  [...iptablesJumps, ...ipvsJumps, ['filter', 'INPUT', ...portals] as const].flatMap(([table, from, to, comment]) =>
    ([undefined, 'NEW'] as const).map(
      (state) => `${table} ${from} ${ruleMeaning(jumpRule([table, from, to, comment, state]))}`,
    ),
  ),
);

/**
 * Whether a rule in one of the kernel's own chains is a jump as kube-proxy writes it. Another program's jump to the same
 * chain matches something else, or says something else.
 */
export function isKubeProxyJump(rule: Rule, table: TableName, chain: string): boolean {
  return isBuiltInChain(table, chain) && knownJumps.has(`${table} ${chain} ${ruleMeaning(rule)}`);
}

/**
 * The rule of KUBE-FIREWALL. route_localnet, which node ports on 127.0.0.1 need, would let neighbours reach what listens
 * there; this keeps them out. kubelet writes the same (syncIPTablesRules in kubelet_network_linux.go).
 */
export const localnetRule: Rule = {
  args: [
    { kind: 'comment', text: 'block incoming localnet connections' },
    { kind: 'destination', range: loopbackNetworks.ipv4 },
    { kind: 'source', range: loopbackNetworks.ipv4, negated: true },
    { kind: 'conntrack-state', states: ['RELATED', 'ESTABLISHED', 'DNAT'], negated: true },
    { kind: 'jump', target: { kind: 'drop' } },
  ],
};

const localnetMeaning = ruleMeaning(localnetRule);

/** Whether a rule of KUBE-FIREWALL is the one that kube-proxy writes there. */
export function isLocalnetRule(rule: Rule): boolean {
  return ruleMeaning(rule) === localnetMeaning;
}

/**
 * What shows a kubelet on a node, in the tables of one family.
 *
 * - current: any kubelet since 1.17. It keeps KUBE-KUBELET-CANARY in three tables, and since 1.24 KUBE-IPTABLES-HINT in
 *   mangle. With it goes KUBE-FIREWALL: in IPv4, and up to 1.26 in IPv6 too, never empty.
 * - old: one up to 1.26 (IPTablesOwnershipCleanup). It fills KUBE-MARK-DROP, and makes KUBE-MARK-MASQ and
 *   KUBE-POSTROUTING beside it. kube-proxies of that time made an empty KUBE-MARK-DROP too, so an empty one proves nothing.
 */
export type KubeletTrace = 'none' | 'current' | 'old';

/** Finds what a kubelet left, by the chains that only a kubelet makes. */
export function traceKubelet(tables: Tables): KubeletTrace {
  if ((tables.nat?.get(baseChains.markDrop)?.rules.length ?? 0) > 0) return 'old';
  const { mangle, nat, filter } = tables;
  const hasCanary = [mangle, nat, filter].some((chains) => chains?.has('KUBE-KUBELET-CANARY'));
  return hasCanary || mangle?.has('KUBE-IPTABLES-HINT') ? 'current' : 'none';
}

const chainsOfOldKubelets: ReadonlySet<string> = new Set([baseChains.markMasquerade, baseChains.postrouting]);

/** Whether a kubelet that left this trace makes a chain of this name too. */
export function mayKubeletMake(trace: KubeletTrace, table: TableName, name: string): boolean {
  const isOfOld = trace === 'old' && table === 'nat' && chainsOfOldKubelets.has(name);
  return isOfOld || (trace !== 'none' && table === 'filter' && name === sharedChain);
}

/** A chain that iptables mode left on a node that has another mode now. */
export interface LeftChain {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
  /** The kernel's own chains that lead to it; empty if nothing jumps to it. */
  readonly reachedFrom: readonly string[];
}

/** Chains of filter that iptables mode fills and no other. */
const refusingChains: ReadonlySet<string> = new Set([baseChains.services, baseChains.externalServices]);

/**
 * What iptables mode left on a node in another mode: the chains of Service ports and endpoints, and those of filter that refuse
 * packets. Without the rules of the kernel's own chains it is unknown what leads to a chain: then none counts as left.
 */
export function findLeftChains({ iptables }: KernelState, mode: ProxyMode | undefined): readonly LeftChain[] {
  if (mode === undefined || modeFacts[mode].hasServiceChains) return [];
  return families.flatMap((family) => {
    const { nat, filter } = iptables[family] ?? {};
    return [
      ...listLeft(family, 'nat', nat, (chain) => isServiceChainName(chain.name)),
      ...listLeft(family, 'filter', filter, ({ name, rules }) => refusingChains.has(name) && rules.length > 0),
    ];
  });
}

function listLeft(
  family: Family,
  table: TableName,
  chains: ReadonlyMap<string, Chain> | undefined,
  isLeft: (chain: Chain) => boolean,
): readonly LeftChain[] {
  if (!chains) return [];
  const own = [...chains.values()].filter(({ name, rules }) => isBuiltInChain(table, name) && rules.length > 0);
  if (own.length === 0) return [];
  const reached = own.map((from) => ({ from: from.name, chains: reachedChains(from, table, chains) }));
  return [...chains.values()].filter(isLeft).map((chain) => ({
    family,
    table,
    chain,
    reachedFrom: reached.filter((each) => each.chains.has(chain.name)).map(({ from }) => from),
  }));
}

/** One of the kernel's own chains, and those that a packet in it may reach, through any number of jumps. */
function reachedChains(from: Chain, table: TableName, chains: ReadonlyMap<string, Chain>): ReadonlySet<string> {
  const reached = new Set([from.name]);
  // A set goes on with what is added while it is gone through.
  for (const name of reached) {
    for (const rule of chains.get(name)?.rules ?? []) {
      const target = jumpChain(rule);
      if (target !== undefined && chains.has(target) && !isBuiltInChain(table, target)) reached.add(target);
    }
  }
  return reached;
}
