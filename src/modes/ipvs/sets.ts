import type { Family } from '../../kernel/family.ts';
import type { IpSet } from '../../kernel/ipset.ts';
import { compareEntries, type SetEntry } from '../../kernel/set-entry.ts';
import { setIds, setName, setType, type SetId } from '../../kube-proxy/sets.ts';

/** What rules say of each set (ipsetInfo in pkg/proxy/ipvs/proxier.go). */
export const setComments = {
  loopBack: 'Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose',
  clusterIP: 'Kubernetes service cluster ip + port for masquerade purpose',
  externalIP: 'Kubernetes service external ip + port for masquerade and filter purpose',
  externalIPLocal: 'Kubernetes service external ip + port with externalTrafficPolicy=local',
  loadBalancer: 'Kubernetes service lb portal',
  loadBalancerFirewall: 'Kubernetes service load balancer ip + port for load balancer with sourceRange',
  loadBalancerLocal: 'Kubernetes service load balancer ip + port with externalTrafficPolicy=local',
  sourceIP: 'Kubernetes service load balancer ip + port + source IP for packet filter purpose',
  sourceCIDR: 'Kubernetes service load balancer ip + port + source cidr for packet filter purpose',
  nodePortTCP: 'Kubernetes nodeport TCP port for masquerade purpose',
  nodePortLocalTCP: 'Kubernetes nodeport TCP port with externalTrafficPolicy=local',
  nodePortUDP: 'Kubernetes nodeport UDP port for masquerade purpose',
  nodePortLocalUDP: 'Kubernetes nodeport UDP port with externalTrafficPolicy=local',
  nodePortSCTP: "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  nodePortLocalSCTP: "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  healthCheckNodePort: 'Kubernetes health check node port',
  ipvsAddresses: 'Addresses on the ipvs interface',
} as const satisfies { readonly [Id in SetId]: string };

/** The members of each set of one family. */
export type SetMembers = { readonly [Id in SetId]: SetEntry[] };

export function noMembers(): SetMembers {
  return Object.fromEntries(setIds.map((id) => [id, []])) as unknown as SetMembers;
}

/** The kernel's default size of a hash set: kube-proxy's sets overflow past this many entries. */
const usualElements = 65_536;

export function makeSets(members: SetMembers, family: Family): readonly IpSet[] {
  return setIds.map((id) => makeSet(id, members[id], family));
}

function makeSet(id: SetId, members: readonly SetEntry[], family: Family): IpSet {
  const type = setType(id);
  const entries = sortedEntries(members);
  const name = setName(id, family);
  if (type === 'bitmap:port') return { name, type, range: '0-65535', entries };
  return {
    name,
    type,
    family: family === 'ipv4' ? 'inet' : 'inet6',
    hashSize: 1024,
    maxElements: elementsFor(entries.length),
    entries,
  };
}

/** Twice the usual, and again, until all fit: a set's limit then changes rarely as a cluster grows. */
function elementsFor(count: number): number {
  let elements = usualElements;
  while (elements < count) elements *= 2;
  return elements;
}

function sortedEntries(members: readonly SetEntry[]): readonly SetEntry[] {
  const entries: SetEntry[] = [];
  let last: SetEntry | undefined;
  for (const member of members.toSorted(compareEntries)) {
    if (!last || compareEntries(last, member) !== 0) entries.push(member);
    last = member;
  }
  return entries;
}
