import { loopbackNetworks } from '../../kernel/address.ts';
import type { Family } from '../../kernel/family.ts';
import type { AddressPort } from '../../kernel/set-entry.ts';
import type { Chain, Rule, RuleArg, TableName, Tables, Target } from '../../kernel/iptables.ts';
import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import { ifNotLocal, masqueradeRules } from '../iptables/masquerade-rules.ts';
import { accessFilter, accessFilterRules, openSets } from '../../kube-proxy/access-filter.ts';
import { setName, setType, type SetId } from '../../kube-proxy/sets.ts';
import { setComments } from './sets.ts';

/** What shapes the iptables rules of one family: they match sets, so the Services themselves are not among it. */
export interface RuleInput {
  readonly family: Family;
  /** Sets that are empty get no rule in most places. */
  readonly filled: ReadonlySet<SetId>;
  readonly masquerade: MasqueradePlan;
  /** Load balancer addresses and ports that the node itself may not use, in order. */
  readonly closedToNode: readonly AddressPort[];
}

/** The chains in the order in which kube-proxy declares them (iptablesChains). */
const chains = {
  nat: ['KUBE-SERVICES', 'KUBE-POSTROUTING', 'KUBE-NODE-PORT', 'KUBE-LOAD-BALANCER', 'KUBE-MARK-MASQ'],
  filter: [
    'KUBE-FORWARD',
    'KUBE-NODE-PORT',
    'KUBE-PROXY-FIREWALL',
    'KUBE-SOURCE-RANGES-FIREWALL',
    'KUBE-IPVS-FILTER',
    'KUBE-IPVS-OUT-FILTER',
  ],
} as const;

type NatChain = (typeof chains.nat)[number];
type FilterChain = (typeof chains.filter)[number];

/**
 * The jumps at the head of the kernel's own chains, first rule first. kube-proxy puts each in front of those before
 * it (iptablesJumpChain), so its list read backwards is what ends up there.
 */
const jumps: readonly {
  readonly table: TableName;
  readonly from: string;
  readonly to: NatChain | FilterChain;
  readonly comment: string;
}[] = [
  { table: 'nat', from: 'PREROUTING', to: 'KUBE-SERVICES', comment: 'kubernetes service portals' },
  { table: 'nat', from: 'OUTPUT', to: 'KUBE-SERVICES', comment: 'kubernetes service portals' },
  { table: 'nat', from: 'POSTROUTING', to: 'KUBE-POSTROUTING', comment: 'kubernetes postrouting rules' },
  { table: accessFilter.table, from: accessFilter.from, to: accessFilter.chain, comment: accessFilter.comment },
  { table: 'filter', from: 'INPUT', to: 'KUBE-PROXY-FIREWALL', comment: 'kube-proxy firewall rules' },
  { table: 'filter', from: 'INPUT', to: 'KUBE-NODE-PORT', comment: 'kubernetes health check rules' },
  { table: 'filter', from: 'FORWARD', to: 'KUBE-PROXY-FIREWALL', comment: 'kube-proxy firewall rules' },
  { table: 'filter', from: 'FORWARD', to: 'KUBE-FORWARD', comment: 'kubernetes forwarding rules' },
  { table: 'filter', from: 'OUTPUT', to: 'KUBE-IPVS-OUT-FILTER', comment: 'kubernetes ipvs access filter' },
];

/** All iptables rules of one family in IPVS mode (writeIptablesRules and createAndLinkKubeChain). */
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
  const tableJumps = jumps.filter((each) => each.table === table);
  const builtIn = [...new Set(tableJumps.map(({ from }) => from))];
  return new Map<string, Chain>([
    ...names.map((name) => [name, { name, rules: rules[name] }] as const),
    ...builtIn.map((name) => [name, { name, rules: tableJumps.filter((j) => j.from === name).map(jumpRule) }] as const),
  ]);
}

function jumpRule({ comment: text, to: chain }: (typeof jumps)[number]): Rule {
  return rule({ kind: 'comment', text }, jump(chain));
}

function natRules(input: RuleInput): { readonly [Name in NatChain]: readonly Rule[] } {
  const { family, filled } = input;
  const masquerade = masqueradeRules(input.masquerade);
  const ifFilled = (id: SetId, ...rules: readonly Rule[]) => (filled.has(id) ? rules : []);
  return {
    'KUBE-SERVICES': [
      // Loopback traffic would match node ports; IPVS does not serve those on loopback addresses.
      rule({ kind: 'source', range: loopbackNetworks[family] }, to('return')),
      ...ifFilled('loadBalancer', rule(...matchSet('loadBalancer', family), jump('KUBE-LOAD-BALANCER'))),
      ...ifFilled('clusterIP', masqueradeClusterIP(input)),
      ...ifFilled('externalIP', rule(...matchSet('externalIP', family), jump('KUBE-MARK-MASQ'))),
      ...ifFilled('externalIP', ...acceptFromOutside('externalIP', family)),
      ...ifFilled('externalIPLocal', ...acceptFromOutside('externalIPLocal', family)),
      rule({ kind: 'address-type', which: 'destination', type: 'LOCAL' }, jump('KUBE-NODE-PORT')),
      ...ifFilled('clusterIP', rule(bareMatch('clusterIP', family), to('accept'))),
      ...ifFilled('loadBalancer', rule(bareMatch('loadBalancer', family), to('accept'))),
    ],
    'KUBE-POSTROUTING': [
      // A pod that reaches itself through its Service must not see its own address as the client's.
      ...ifFilled(
        'loopBack',
        rule(...matchSet('loopBack', family, 'src'), jumpTo({ kind: 'masquerade', randomFully: false })),
      ),
      ...masquerade.postrouting,
    ],
    'KUBE-NODE-PORT': (
      [
        ['nodePortLocalTCP', 'nodePortTCP', 'tcp'],
        ['nodePortLocalUDP', 'nodePortUDP', 'udp'],
        ['nodePortLocalSCTP', 'nodePortSCTP', 'sctp'],
      ] as const
    ).flatMap(([local, all, protocol]) => [
      ...ifFilled(local, rule({ kind: 'protocol', protocol }, ...matchSet(local, family), to('return'))),
      ...ifFilled(all, rule({ kind: 'protocol', protocol }, ...matchSet(all, family), jump('KUBE-MARK-MASQ'))),
    ]),
    'KUBE-LOAD-BALANCER': [
      ...ifFilled('loadBalancerLocal', rule(...matchSet('loadBalancerLocal', family), to('return'))),
      rule(jump('KUBE-MARK-MASQ')),
    ],
    'KUBE-MARK-MASQ': masquerade.mark,
  };
}

/** Traffic to cluster IPs that does not come from the node's pods leaves with the node's address. */
function masqueradeClusterIP({ family, masquerade: { toClusterIPs } }: RuleInput): Rule {
  const match = matchSet('clusterIP', family);
  switch (toClusterIPs.kind) {
    case 'all':
      return rule(...match, jump('KUBE-MARK-MASQ'));
    case 'all-but-pods':
      return rule(...match, ifNotLocal(toClusterIPs.pods), jump('KUBE-MARK-MASQ'));
    case 'none-known':
      // At least traffic from a cluster IP to one (the node to itself) is masqueraded.
      return rule(comment('clusterIP'), setArg('clusterIP', family, ['src', 'dst']), jump('KUBE-MARK-MASQ'));
  }
}

/** Traffic to external IPs from outside the node, and where the address is the node's own, is for IPVS to take. */
function acceptFromOutside(id: SetId, family: Family): readonly Rule[] {
  return [
    rule(
      ...matchSet(id, family),
      { kind: 'physdev-is-in', negated: true },
      { kind: 'address-type', which: 'source', type: 'LOCAL', negated: true },
      to('accept'),
    ),
    rule(...matchSet(id, family), { kind: 'address-type', which: 'destination', type: 'LOCAL' }, to('accept')),
  ];
}

function filterRules(input: RuleInput): { readonly [Name in FilterChain]: readonly Rule[] } {
  const { family, filled, masquerade, closedToNode } = input;
  const ifFilled = (id: SetId, ...rules: readonly Rule[]) => (filled.has(id) ? rules : []);
  return {
    'KUBE-FORWARD': masqueradeRules(masquerade).forward,
    'KUBE-NODE-PORT': [rule(...matchSet('healthCheckNodePort', family), to('accept'))],
    'KUBE-PROXY-FIREWALL': ifFilled(
      'loadBalancerFirewall',
      rule(...matchSet('loadBalancerFirewall', family), jump('KUBE-SOURCE-RANGES-FIREWALL')),
    ),
    'KUBE-SOURCE-RANGES-FIREWALL': [
      ...ifFilled('sourceCIDR', rule(...matchSet('sourceCIDR', family, 'src'), to('return'))),
      ...ifFilled('sourceIP', rule(...matchSet('sourceIP', family, 'src'), to('return'))),
      rule(to('drop')),
    ],
    'KUBE-IPVS-FILTER': accessFilterRules(family, [...openSets, 'healthCheckNodePort']),
    'KUBE-IPVS-OUT-FILTER': closedToNode.map(({ address, protocol, port, origin }) => ({
      args: [
        { kind: 'source', range: address },
        { kind: 'virtual-server', address, protocol: protocol.toLowerCase(), port },
        to('drop'),
      ],
      origin,
    })),
  };
}

function rule(...args: readonly RuleArg[]): Rule {
  return { args };
}

function jumpTo(target: Target): RuleArg {
  return { kind: 'jump', target };
}

function jump(chain: NatChain | FilterChain): RuleArg {
  return jumpTo({ kind: 'chain', chain });
}

function to(kind: 'accept' | 'drop' | 'return'): RuleArg {
  return jumpTo({ kind });
}

/** The set's comment and the match of a packet's destination, and of its source too where `and` says so. */
function matchSet(id: SetId, family: Family, and?: 'src'): readonly RuleArg[] {
  const destination = destinationOf(id);
  return [comment(id), setArg(id, family, and ? [...destination, and] : destination)];
}

function comment(id: SetId): RuleArg {
  return { kind: 'comment', text: setComments[id] };
}

function bareMatch(id: SetId, family: Family): RuleArg {
  return setArg(id, family, destinationOf(id));
}

function setArg(id: SetId, family: Family, directions: readonly ('src' | 'dst')[]): RuleArg {
  return { kind: 'match-set', set: setName(id, family), directions };
}

/** One direction for each part of the set's entries that is the destination's: the port alone, or address and port. */
function destinationOf(id: SetId): readonly 'dst'[] {
  switch (setType(id)) {
    case 'bitmap:port':
    case 'hash:ip':
      return ['dst'];
    case 'hash:ip,port':
    case 'hash:ip,port,ip':
    case 'hash:ip,port,net':
      return ['dst', 'dst'];
  }
}
