import { type Family, loopbackNetworks } from '../../kernel/address.ts';
import { compareEntries, type SetEntry } from '../../kernel/ipset/set-entry.ts';
import type { Chain, Rule, RuleArg, TableName, Tables } from '../../kernel/iptables/iptables.ts';
import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import type { ServiceAddress } from '../../cluster/plan-traffic.ts';
import {
  ifNotLocal,
  masqueradeRules,
  accept,
  comment,
  drop,
  chainsByName,
  fromNode,
  jumpTo,
  markForMasquerade,
  returnToCaller,
  toNode,
} from '../iptables/rule-parts.ts';
import {
  accessFilterRules,
  openSets,
  setDirections,
  setMatch,
  type SetId,
  setIds,
  setName,
  setType,
  usualSetSize,
} from '../../kube-proxy/ipvs-objects.ts';
import { ipvsJumps, jumpChains } from '../../kube-proxy/chains.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';

/** Everything that the rules of one family depend on. Rules match sets, not Services. */
export interface RuleInput {
  readonly family: Family;
  readonly filled: ReadonlySet<SetId>;
  readonly masquerade: MasqueradePlan;
  readonly closedToNode: readonly ServiceAddress[];
}

const chains = {
  nat: [
    baseChains.services,
    baseChains.postrouting,
    baseChains.nodePort,
    baseChains.loadBalancer,
    baseChains.markMasquerade,
  ],
  filter: [
    baseChains.forward,
    baseChains.nodePort,
    baseChains.proxyFirewall,
    baseChains.sourceRangesFirewall,
    baseChains.accessFilter,
    baseChains.accessOutFilter,
  ],
} as const;

/** Makes one family's tables in IPVS mode (writeIptablesRules and createAndLinkKubeChain). */
export function makeTables(input: RuleInput): Tables {
  return {
    nat: assemble('nat', chains.nat, natRules(input)),
    filter: assemble('filter', chains.filter, filterRules(input)),
  };
}

function assemble<C extends string>(
  table: TableName,
  names: readonly C[],
  rules: { readonly [Name in C]: readonly Rule[] },
): ReadonlyMap<string, Chain> {
  return chainsByName([...names.map((name) => ({ name, rules: rules[name] })), ...jumpChains(ipvsJumps, table)]);
}

function natRules(input: RuleInput): { readonly [Name in (typeof chains.nat)[number]]: readonly Rule[] } {
  const { family, filled } = input;
  const masquerade = masqueradeRules(input.masquerade);
  const ifFilled = (id: SetId, ...rules: readonly Rule[]) => (filled.has(id) ? rules : []);
  return {
    [baseChains.services]: [
      // Loopback traffic would match node ports, which IPVS does not serve on loopback addresses.
      rule({ kind: 'source', range: loopbackNetworks[family] }, returnToCaller),
      ...ifFilled('loadBalancer', rule(...matchSet('loadBalancer', family), jumpTo(baseChains.loadBalancer))),
      ...ifFilled('clusterIP', masqueradeClusterIP(input)),
      ...ifFilled('externalIP', rule(...matchSet('externalIP', family), markForMasquerade)),
      ...ifFilled('externalIP', ...acceptFromOutside('externalIP', family)),
      ...ifFilled('externalIPLocal', ...acceptFromOutside('externalIPLocal', family)),
      rule(toNode, jumpTo(baseChains.nodePort)),
      ...ifFilled('clusterIP', rule(setMatch('clusterIP', family), accept)),
      ...ifFilled('loadBalancer', rule(setMatch('loadBalancer', family), accept)),
    ],
    [baseChains.postrouting]: [
      // A pod that reaches itself through its Service must not see its own address as the client's.
      ...ifFilled(
        'loopBack',
        rule(...matchSet('loopBack', family, 'src'), {
          kind: 'jump',
          target: { kind: 'masquerade', randomFully: false },
        }),
      ),
      ...masquerade.postrouting,
    ],
    [baseChains.nodePort]: (
      [
        ['nodePortLocalTCP', 'nodePortTCP', 'tcp'],
        ['nodePortLocalUDP', 'nodePortUDP', 'udp'],
        ['nodePortLocalSCTP', 'nodePortSCTP', 'sctp'],
      ] as const
    ).flatMap(([local, all, protocol]) => [
      ...ifFilled(local, rule({ kind: 'protocol', protocol }, ...matchSet(local, family), returnToCaller)),
      ...ifFilled(all, rule({ kind: 'protocol', protocol }, ...matchSet(all, family), markForMasquerade)),
    ]),
    [baseChains.loadBalancer]: [
      ...ifFilled('loadBalancerLocal', rule(...matchSet('loadBalancerLocal', family), returnToCaller)),
      rule(markForMasquerade),
    ],
    [baseChains.markMasquerade]: masquerade.mark,
  };
}

function masqueradeClusterIP({ family, masquerade: { toClusterIPs } }: RuleInput): Rule {
  const match = matchSet('clusterIP', family);
  switch (toClusterIPs.kind) {
    case 'all':
      return rule(...match, markForMasquerade);
    case 'all-but-pods':
      return rule(...match, ifNotLocal(toClusterIPs.pods), markForMasquerade);
    case 'none-known':
      // If pods cannot be recognised, masquerade only traffic from a cluster IP to a cluster IP, which the node sends to itself.
      return rule(comment(setComments.clusterIP), setMatch('clusterIP', family, ['src', 'dst']), markForMasquerade);
  }
}

/**
 * Accepts traffic to external IPs without masquerading it, if the traffic comes from outside or goes to the node's own addresses. IPVS then
 * handles it.
 */
function acceptFromOutside(id: SetId, family: Family): readonly Rule[] {
  return [
    rule(...matchSet(id, family), { kind: 'physdev-is-in', negated: true }, { ...fromNode, negated: true }, accept),
    rule(...matchSet(id, family), toNode, accept),
  ];
}

function filterRules(input: RuleInput): { readonly [Name in (typeof chains.filter)[number]]: readonly Rule[] } {
  const { family, filled, masquerade, closedToNode } = input;
  const ifFilled = (id: SetId, ...rules: readonly Rule[]) => (filled.has(id) ? rules : []);
  return {
    [baseChains.forward]: masqueradeRules(masquerade).forward,
    [baseChains.nodePort]: [rule(...matchSet('healthCheckNodePort', family), accept)],
    [baseChains.proxyFirewall]: ifFilled(
      'loadBalancerFirewall',
      rule(...matchSet('loadBalancerFirewall', family), jumpTo(baseChains.sourceRangesFirewall)),
    ),
    [baseChains.sourceRangesFirewall]: [
      ...ifFilled('sourceCIDR', rule(...matchSet('sourceCIDR', family, 'src'), returnToCaller)),
      ...ifFilled('sourceIP', rule(...matchSet('sourceIP', family, 'src'), returnToCaller)),
      rule(drop),
    ],
    [baseChains.accessFilter]: accessFilterRules(family, [...openSets, 'healthCheckNodePort']),
    [baseChains.accessOutFilter]: closedToNode.map(({ address, protocol, port, origin }) => ({
      args: [
        { kind: 'source', range: address },
        { kind: 'virtual-server', address, protocol: protocol.toLowerCase(), port },
        drop,
      ],
      origin,
    })),
  };
}

function rule(...args: readonly RuleArg[]): Rule {
  return { args };
}

function matchSet(id: SetId, family: Family, and?: 'src'): readonly RuleArg[] {
  const destination = setDirections(id);
  return [comment(setComments[id]), setMatch(id, family, and ? [...destination, and] : destination)];
}

const setComments = {
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

export type SetMembers = { readonly [Id in SetId]: SetEntry[] };

export function noMembers(): SetMembers {
  return Object.fromEntries(setIds.map((id) => [id, []])) as unknown as SetMembers;
}

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

/** Doubles kube-proxy's set size until all entries fit. (kube-proxy itself keeps the size, so its sets can overflow.) */
function elementsFor(count: number): number {
  let elements = usualSetSize;
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
