import { families, protocols, type Family, type Protocol } from '../kernel/family.ts';
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

export type SetId = keyof typeof sets;

export const setIds = Object.keys(sets) as readonly SetId[];

/** How many entries a hash set of kube-proxy takes: the kernel's default. */
export const usualSetSize = 65_536;

/** ipset's names have at most 31 characters. kube-proxy cuts longer ones, and so must kpc. */
const longestName = 31;

/** The name of a set in a family: for IPv6 it begins with "KUBE-6-" (NewIPSet in ipvs/ipset.go). */
export function setName(set: SetId, family: Family): string {
  const { name } = sets[set];
  return family === 'ipv4' ? name : name.replace('KUBE-', 'KUBE-6-').slice(0, longestName);
}

interface NamedSet {
  readonly set: SetId;
  readonly family: Family;
}

const byName: ReadonlyMap<string, NamedSet> = new Map(
  families.flatMap((family) => setIds.map((set) => [setName(set, family), { set, family }] as const)),
);

/** The reverse of setName; undefined for a name that kube-proxy gives to no set. */
export function parseSetName(name: string): NamedSet | undefined {
  return byName.get(name);
}

export function setType(set: SetId): SetType {
  return sets[set].type;
}

/** One `dst` for each part of an entry that is about the destination: port or address alone, or both. */
export function destinationOf(id: SetId): readonly 'dst'[] {
  const type = setType(id);
  return type === 'bitmap:port' || type === 'hash:ip' ? ['dst'] : ['dst', 'dst'];
}

/** Matches a packet with a set: by its destination, unless `directions` says otherwise. */
export function setMatch(
  id: SetId,
  family: Family,
  directions: readonly ('src' | 'dst')[] = destinationOf(id),
): RuleArg {
  return { kind: 'match-set', set: setName(id, family), directions };
}

/** The family of a set. A bitmap of ports has none, but the name that kube-proxy gives it shows one. */
export function setFamily({ name, family }: Pick<IpSet, 'name' | 'family'>): Family {
  return family === 'inet6' || parseSetName(name)?.family === 'ipv6' ? 'ipv6' : 'ipv4';
}

/** By protocol, the sets that list node ports: `local` those of external policy Local alone, `all` every one. */
export const nodePortSets = {
  TCP: { all: 'nodePortTCP', local: 'nodePortLocalTCP' },
  UDP: { all: 'nodePortUDP', local: 'nodePortLocalUDP' },
  SCTP: { all: 'nodePortSCTP', local: 'nodePortLocalSCTP' },
} as const satisfies Readonly<Record<Protocol, { readonly all: SetId; readonly local: SetId }>>;

/** The protocol of the node ports that a set lists; undefined for a set of anything else. */
export function nodePortProtocol(set: SetId): Protocol | undefined {
  return protocols.find((protocol) => set === nodePortSets[protocol].all || set === nodePortSets[protocol].local);
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
