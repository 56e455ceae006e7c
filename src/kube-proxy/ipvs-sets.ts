import { families, type Family } from '../kernel/family.ts';
import type { IpSet, SetType } from '../kernel/ipset/ipset.ts';
import type { Rule, RuleArg, TableName } from '../kernel/iptables/iptables.ts';
import { baseChains } from './chain-names.ts';

/** kube-proxy's sets of IPv4, in the order in which it lists them (ipsetInfo in ipvs/proxier.go). */
const sets = {
  loopBack: { name: 'KUBE-LOOP-BACK', type: 'hash:ip,port,ip' },
  clusterIP: { name: 'KUBE-CLUSTER-IP', type: 'hash:ip,port' },
  externalIP: { name: 'KUBE-EXTERNAL-IP', type: 'hash:ip,port' },
  externalIPLocal: { name: 'KUBE-EXTERNAL-IP-LOCAL', type: 'hash:ip,port' },
  loadBalancer: { name: 'KUBE-LOAD-BALANCER', type: 'hash:ip,port' },
  loadBalancerFirewall: { name: 'KUBE-LOAD-BALANCER-FW', type: 'hash:ip,port' },
  loadBalancerLocal: { name: 'KUBE-LOAD-BALANCER-LOCAL', type: 'hash:ip,port' },
  sourceIP: { name: 'KUBE-LOAD-BALANCER-SOURCE-IP', type: 'hash:ip,port,ip' },
  sourceCIDR: { name: 'KUBE-LOAD-BALANCER-SOURCE-CIDR', type: 'hash:ip,port,net' },
  nodePortTCP: { name: 'KUBE-NODE-PORT-TCP', type: 'bitmap:port' },
  nodePortLocalTCP: { name: 'KUBE-NODE-PORT-LOCAL-TCP', type: 'bitmap:port' },
  nodePortUDP: { name: 'KUBE-NODE-PORT-UDP', type: 'bitmap:port' },
  nodePortLocalUDP: { name: 'KUBE-NODE-PORT-LOCAL-UDP', type: 'bitmap:port' },
  // The kernel's bitmap:port knows no SCTP, hence the hashes.
  nodePortSCTP: { name: 'KUBE-NODE-PORT-SCTP-HASH', type: 'hash:ip,port' },
  nodePortLocalSCTP: { name: 'KUBE-NODE-PORT-LOCAL-SCTP-HASH', type: 'hash:ip,port' },
  healthCheckNodePort: { name: 'KUBE-HEALTH-CHECK-NODE-PORT', type: 'bitmap:port' },
  ipvsAddresses: { name: 'KUBE-IPVS-IPS', type: 'hash:ip' },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly type: SetType }>>;

/** What one set of each family is for. */
export type SetId = keyof typeof sets;

/** All sets, in kube-proxy's order. */
export const setIds = Object.keys(sets) as readonly SetId[];

/** ipset's names have at most 31 characters. kube-proxy cuts off what is longer, and the names must be kube-proxy's. */
const longestName = 31;

/** The set's name in a family: kube-proxy puts "KUBE-6-" for "KUBE-" in front for IPv6 (NewIPSet in ipvs/ipset.go). */
export function setName(id: SetId, family: Family): string {
  const { name } = sets[id];
  return family === 'ipv4' ? name : name.replace('KUBE-', 'KUBE-6-').slice(0, longestName);
}

const ofName: ReadonlyMap<string, { readonly id: SetId; readonly family: Family }> = new Map(
  families.flatMap((family) => setIds.map((id) => [setName(id, family), { id, family }] as const)),
);

/** Whether a set has the name of one of kube-proxy's. */
export function isKubeProxySet(name: string): boolean {
  return ofName.has(name);
}

/** What its entries are. */
export function setType(id: SetId): SetType {
  return sets[id].type;
}

/** One direction for each part of the set's entries that is the destination's: the port or the address alone, or both. */
export function destinationOf(id: SetId): readonly 'dst'[] {
  const type = setType(id);
  return type === 'bitmap:port' || type === 'hash:ip' ? ['dst'] : ['dst', 'dst'];
}

/** The match of a packet with a set: of its destination, if nothing else is said. */
export function setMatch(
  id: SetId,
  family: Family,
  directions: readonly ('src' | 'dst')[] = destinationOf(id),
): RuleArg {
  return { kind: 'match-set', set: setName(id, family), directions };
}

/** Whether a set has the name and type of one of kube-proxy's; another program may have one of that name alone. */
export function mayKubeProxyMake({ name, type, family }: IpSet): boolean {
  const known = ofName.get(name);
  const isOfFamily = family === undefined || family === (known?.family === 'ipv6' ? 'inet6' : 'inet');
  return known !== undefined && type === setType(known.id) && isOfFamily;
}

/** The name without "KUBE-" and the family. Of a name that is too long in IPv6, its end is missing there. */
export function bareSetName(name: string): string {
  const known = ofName.get(name);
  return (known ? setName(known.id, 'ipv4') : name).replace(/^KUBE-/, '');
}

/** The family of a set; a bitmap of ports has none, but kube-proxy's name for it shows it. */
export function setFamily(set: Pick<IpSet, 'name' | 'family'>): Family {
  return set.family === 'inet6' || set.name.startsWith('KUBE-6-') ? 'ipv6' : 'ipv4';
}

/**
 * Closes the addresses on kube-ipvs0 to everything but Services. To the kernel they are the node's own: without this, a
 * program on the node that listens on all addresses would answer there.
 */
export const accessFilter = {
  table: 'filter',
  /** The built-in chain that jumps there, with `comment`. */
  from: 'INPUT',
  chain: baseChains.accessFilter,
  comment: 'kubernetes ipvs access filter',
} as const satisfies { readonly table: TableName } & Readonly<Record<string, string>>;

/** The chain, called from OUTPUT, that closes load balancers to the node itself where their source ranges leave it out. */
export const accessOutFilterChain = baseChains.accessOutFilter;

/** Sets of Services' addresses and ports. */
export const openSets = [
  'loadBalancer',
  'clusterIP',
  'externalIP',
  'externalIPLocal',
] as const satisfies readonly SetId[];

/** Refuses new connections to the addresses in the set ipvsAddresses, except those in the open sets. */
export function accessFilterRules(family: Family, open: readonly SetId[]): readonly Rule[] {
  return [
    ...open.map((id): Rule => ({ args: [setMatch(id, family), { kind: 'jump', target: { kind: 'return' } }] })),
    {
      args: [
        { kind: 'conntrack-state', states: ['NEW'] },
        setMatch('ipvsAddresses', family),
        { kind: 'jump', target: { kind: 'reject' } },
      ],
    },
  ];
}
