import {
  tableNames,
  type Chain,
  type Rule,
  type RuleArg,
  type TableName,
  type Tables,
} from '../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import { jumpChain } from '../kernel/state.ts';
import { baseChains } from './chain-names.ts';
import { accessFilter } from './ipvs-objects.ts';
import type { ProxyMode } from './modes.ts';
import { loopbackNetworks } from '../kernel/address.ts';

/**
 * The role that kube-proxy gives an iptables chain, by name and table:
 * - service: belongs to one Service port or endpoint (KUBE-SVC-, KUBE-SEP- …); only in table nat, in iptables mode
 * - fixed: exists on every node, in IPVS, iptables or userspace mode
 * - canary: empty, only detects that tables were flushed
 * - shared: KUBE-FIREWALL, which kubelet makes too
 */
export type ChainKind = 'service' | 'fixed' | 'canary' | 'shared';

/** A prefix and a hash, as in servicePortPolicyClusterChain. Up to 1.23, KUBE-XLB- stood for KUBE-EXT-. */
const serviceChain = /^KUBE-(?:SVC|SVL|SEP|EXT|FW|XLB)-[A-Z2-7]{16}$/;

export const canaryChain = 'KUBE-PROXY-CANARY';

export const sharedChain = baseChains.kubeletFirewall;

/** The fixed chains of these modes (iptables/proxier.go, iptablesChains in ipvs/proxier.go, iptablesInit in userspace/proxier.go). */
const fixedChains: { readonly [T in TableName]?: ReadonlySet<string> } = {
  nat: new Set([
    baseChains.services,
    baseChains.postrouting,
    baseChains.markMasquerade,
    baseChains.nodePorts,
    baseChains.nodePort,
    baseChains.loadBalancer,
    baseChains.portalsContainer,
    baseChains.portalsHost,
    baseChains.nodePortContainer,
    baseChains.nodePortHost,
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
    baseChains.nodePortNonLocal,
  ]),
};

const canaryTables: ReadonlySet<TableName> = new Set(['mangle', 'nat', 'filter']);

export function isServiceChainName(name: string): boolean {
  return serviceChain.test(name);
}

/**
 * Returns the role of a chain. Undefined for a chain that kube-proxy never makes, such as kube-router's KUBE-ROUTER-FORWARD, KUBE-NWPLCY-…
 * and KUBE-POD-FW-…, and kubelet's KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT and KUBE-MARK-DROP.
 */
export function classifyChain(table: TableName, name: string): ChainKind | undefined {
  if (fixedChains[table]?.has(name)) return 'fixed';
  if (table === 'nat' && isServiceChainName(name)) return 'service';
  if (name === canaryChain && canaryTables.has(table)) return 'canary';
  return table === 'filter' && name === sharedChain ? 'shared' : undefined;
}

export function isNamedByKubeProxy(chain: string): boolean {
  return tableNames.some((table) => classifyChain(table, chain) !== undefined);
}

/**
 * A jump from a built-in chain to kube-proxy's. 'NEW' limits it to packets that open a connection, because the target has many rules.
 * 'LOCAL' limits it to packets to the node's addresses, and places the jump after other programs' rules (iptables.Append in iptablesInit).
 */
type Jump = readonly [
  table: TableName,
  from: string,
  to: string,
  comment?: string | undefined,
  only?: 'NEW' | 'LOCAL' | undefined,
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
 * The jumps of iptables mode, in the order in which packets meet them. kube-proxy inserts each jump at the head, starting with the last
 * one.
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

const clusterIPs = 'handle ClusterIPs; NOTE: this must be before the NodePort rules';
const nodePorts = 'handle service NodePorts; NOTE: this must be the last rule in the chain';

/** The jumps of userspace mode (iptablesInit of userspace/proxier.go). */
export const userspaceJumps: readonly Jump[] = [
  ['nat', 'PREROUTING', baseChains.portalsContainer, clusterIPs],
  ['nat', 'PREROUTING', baseChains.nodePortContainer, nodePorts, 'LOCAL'],
  ['nat', 'OUTPUT', baseChains.portalsHost, clusterIPs],
  ['nat', 'OUTPUT', baseChains.nodePortHost, nodePorts, 'LOCAL'],
  ['filter', 'INPUT', baseChains.nodePortNonLocal, 'Ensure that non-local NodePort traffic can flow'],
];

/** The jumps of each mode. This includes jumps to node ports, which are the last rules of kube-proxy's own chains. */
const jumpsOfMode: { readonly [M in ProxyMode]: readonly Jump[] } = {
  iptables: [...iptablesJumps, ['nat', baseChains.services, baseChains.nodePorts, undefined, 'LOCAL']],
  ipvs: [...ipvsJumps, ['nat', baseChains.services, baseChains.nodePort, undefined, 'LOCAL']],
  userspace: userspaceJumps,
  nftables: [],
};

export function listJumps(mode: ProxyMode) {
  return jumpsOfMode[mode].map((jump) => {
    const [table, from, to] = jump;
    return { table, from, to, rule: jumpRule(jump) };
  });
}

export function jumpChains(jumps: readonly Jump[], table: TableName): readonly Chain[] {
  const own = jumps.filter(([of]) => of === table);
  const names = new Set(own.map(([, from]) => from));
  return Array.from(names, (name) => ({ name, rules: own.filter(([, from]) => from === name).map(jumpRule) }));
}

function jumpRule([, , chain, text, only]: Jump): Rule {
  const args: RuleArg[] = [];
  if (only === 'NEW') args.push({ kind: 'conntrack-state', states: [only] });
  if (only === 'LOCAL') args.push({ kind: 'destination-type', type: only });
  if (text !== undefined) args.push({ kind: 'comment', text });
  return {
    args: [...args, { kind: 'jump', target: { kind: 'chain', chain } }],
    ...(only === 'LOCAL' && { isLast: true }),
  };
}

const jumps: readonly Jump[] = [
  ...iptablesJumps,
  ...ipvsJumps,
  ...userspaceJumps,
  // Jumps of releases older than those that kpc follows.
  ['filter', 'INPUT', ...portals],
];

/** Reports whether a kube-proxy puts this rule into a built-in chain. Ignores 'NEW', which differs by release. */
export function isKnownJump(table: TableName, from: string, rule: Rule): boolean {
  const alike = jumps.filter((each) => each[0] === table && each[1] === from && each[2] === jumpChain(rule));
  return alike.some(([, , to, comment, only]) =>
    ([undefined, only ?? 'NEW'] as const).some(
      (each) => ruleMeaning(jumpRule([table, from, to, comment, each])) === ruleMeaning(rule),
    ),
  );
}

/**
 * The rule in KUBE-FIREWALL, which kubelet writes too (syncIPTablesRules in kubelet_network_linux.go). Node ports on 127.0.0.1 need
 * route_localnet, which would otherwise let neighbours reach programs that listen there.
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

export function isLocalnetRule(rule: Rule): boolean {
  return ruleMeaning(rule) === localnetMeaning;
}

/**
 * The traces of a kubelet in the tables of one family:
 *
 * - current: any kubelet since 1.17. It keeps KUBE-KUBELET-CANARY in three tables, and since 1.24 KUBE-IPTABLES-HINT in mangle. It also
 * keeps KUBE-FIREWALL with rules in IPv4, and up to 1.26 in IPv6 too.
 * - old: a kubelet up to 1.26 (IPTablesOwnershipCleanup). It fills KUBE-MARK-DROP, and makes KUBE-MARK-MASQ and KUBE-POSTROUTING too.
 * kube-proxies of that time also made KUBE-MARK-DROP, but left it empty.
 */
export type KubeletTrace = 'none' | 'current' | 'old';

export function traceKubelet(tables: Tables): KubeletTrace {
  if ((tables.nat?.get(baseChains.markDrop)?.rules.length ?? 0) > 0) return 'old';
  const { mangle, nat, filter } = tables;
  const hasCanary = [mangle, nat, filter].some((chains) => chains?.has('KUBE-KUBELET-CANARY'));
  return hasCanary || mangle?.has('KUBE-IPTABLES-HINT') ? 'current' : 'none';
}

const chainsOfOldKubelets: ReadonlySet<string> = new Set([baseChains.markMasquerade, baseChains.postrouting]);

export function mayKubeletMake(trace: KubeletTrace, table: TableName, name: string): boolean {
  const isOfOld = trace === 'old' && table === 'nat' && chainsOfOldKubelets.has(name);
  return isOfOld || (trace !== 'none' && table === 'filter' && name === sharedChain);
}
