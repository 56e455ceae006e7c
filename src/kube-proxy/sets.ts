import { families } from '../kernel/family.ts';
import type { Family } from '../kernel/family.ts';
import type { IpSet } from '../kernel/ipset.ts';

/** kube-proxy's sets of IPv4, in the order in which it lists them (ipsetInfo in ipvs/proxier.go). */
const setNames = {
  loopBack: 'KUBE-LOOP-BACK',
  clusterIP: 'KUBE-CLUSTER-IP',
  externalIP: 'KUBE-EXTERNAL-IP',
  externalIPLocal: 'KUBE-EXTERNAL-IP-LOCAL',
  loadBalancer: 'KUBE-LOAD-BALANCER',
  loadBalancerFirewall: 'KUBE-LOAD-BALANCER-FW',
  loadBalancerLocal: 'KUBE-LOAD-BALANCER-LOCAL',
  sourceIP: 'KUBE-LOAD-BALANCER-SOURCE-IP',
  sourceCIDR: 'KUBE-LOAD-BALANCER-SOURCE-CIDR',
  nodePortTCP: 'KUBE-NODE-PORT-TCP',
  nodePortLocalTCP: 'KUBE-NODE-PORT-LOCAL-TCP',
  nodePortUDP: 'KUBE-NODE-PORT-UDP',
  nodePortLocalUDP: 'KUBE-NODE-PORT-LOCAL-UDP',
  nodePortSCTP: 'KUBE-NODE-PORT-SCTP-HASH',
  nodePortLocalSCTP: 'KUBE-NODE-PORT-LOCAL-SCTP-HASH',
  healthCheckNodePort: 'KUBE-HEALTH-CHECK-NODE-PORT',
  ipvsAddresses: 'KUBE-IPVS-IPS',
} as const;

/** What one set of each family is for. */
export type SetId = keyof typeof setNames;

export const setIds = Object.keys(setNames) as readonly SetId[];

/** ipset's names have at most 31 characters. kube-proxy cuts off what is longer, and the names must be kube-proxy's. */
const longestName = 31;

/** The set's name in a family: kube-proxy puts "KUBE-6-" for "KUBE-" in front for IPv6 (NewIPSet in ipvs/ipset.go). */
export function setName(id: SetId, family: Family): string {
  const name = setNames[id];
  return family === 'ipv4' ? name : name.replace('KUBE-', 'KUBE-6-').slice(0, longestName);
}

const allNames: ReadonlySet<string> = new Set(families.flatMap((family) => setIds.map((id) => setName(id, family))));

/** Whether a set has the name of one of kube-proxy's. */
export function isKubeProxySet(name: string): boolean {
  return allNames.has(name);
}

/** The name of the same set of IPv4, whichever family it is of; undefined where it is none of kube-proxy's. */
export function ipv4SetName(name: string): string | undefined {
  return ipv4Names.get(name);
}

const ipv4Names: ReadonlyMap<string, string> = new Map(
  families.flatMap((family) => setIds.map((id) => [setName(id, family), setName(id, 'ipv4')] as const)),
);

/** The family of a set; a bitmap of ports has none, but kube-proxy's name for it tells. */
export function setFamily(set: Pick<IpSet, 'name' | 'family'>): Family {
  return set.family === 'inet6' || set.name.startsWith('KUBE-6-') ? 'ipv6' : 'ipv4';
}
