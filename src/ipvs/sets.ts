import type { Family } from '../kernel/family.ts';
import type { IpSet, SetType } from '../kernel/ipset.ts';
import { compareEntries } from '../kernel/set-entry.ts';
import type { SetEntry } from '../kernel/set-entry.ts';
import { setIds, setName } from '../kube-proxy/sets.ts';
import type { SetId } from '../kube-proxy/sets.ts';

/** The sets of one family, in the order in which kube-proxy lists them (ipsetInfo in pkg/proxy/ipvs/proxier.go). */
export const setDefinitions = {
  loopBack: {
    type: 'hash:ip,port,ip',
    comment: 'Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose',
  },
  clusterIP: {
    type: 'hash:ip,port',
    comment: 'Kubernetes service cluster ip + port for masquerade purpose',
  },
  externalIP: {
    type: 'hash:ip,port',
    comment: 'Kubernetes service external ip + port for masquerade and filter purpose',
  },
  externalIPLocal: {
    type: 'hash:ip,port',
    comment: 'Kubernetes service external ip + port with externalTrafficPolicy=local',
  },
  loadBalancer: { type: 'hash:ip,port', comment: 'Kubernetes service lb portal' },
  loadBalancerFirewall: {
    type: 'hash:ip,port',
    comment: 'Kubernetes service load balancer ip + port for load balancer with sourceRange',
  },
  loadBalancerLocal: {
    type: 'hash:ip,port',
    comment: 'Kubernetes service load balancer ip + port with externalTrafficPolicy=local',
  },
  sourceIP: {
    type: 'hash:ip,port,ip',
    comment: 'Kubernetes service load balancer ip + port + source IP for packet filter purpose',
  },
  sourceCIDR: {
    type: 'hash:ip,port,net',
    comment: 'Kubernetes service load balancer ip + port + source cidr for packet filter purpose',
  },
  nodePortTCP: {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport TCP port for masquerade purpose',
  },
  nodePortLocalTCP: {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport TCP port with externalTrafficPolicy=local',
  },
  nodePortUDP: {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport UDP port for masquerade purpose',
  },
  nodePortLocalUDP: {
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport UDP port with externalTrafficPolicy=local',
  },
  // The kernel's bitmap:port knows no SCTP, hence the hashes.
  nodePortSCTP: {
    type: 'hash:ip,port',
    comment: "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  },
  nodePortLocalSCTP: {
    type: 'hash:ip,port',
    comment: "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  },
  healthCheckNodePort: {
    type: 'bitmap:port',
    comment: 'Kubernetes health check node port',
  },
  ipvsAddresses: { type: 'hash:ip', comment: 'Addresses on the ipvs interface' },
} as const satisfies { readonly [Id in SetId]: { readonly type: SetType; readonly comment: string } };

/** The members of each set of one family. */
export type SetMembers = { readonly [Id in SetId]: SetEntry[] };

export function noMembers(): SetMembers {
  return Object.fromEntries(setIds.map((id) => [id, []])) as unknown as SetMembers;
}

/** What the kernel makes a hash set with unless told otherwise: kube-proxy's sets overflow past this many entries. */
const usualElements = 65_536;

export function makeSets(members: SetMembers, family: Family): readonly IpSet[] {
  return setIds.map((id) => makeSet(id, members[id], family));
}

function makeSet(id: SetId, members: readonly SetEntry[], family: Family): IpSet {
  const { type } = setDefinitions[id];
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
