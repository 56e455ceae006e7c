import { namesLocalhost, type NodePortPlan } from '../../cluster/node-context.ts';
import { allBits } from '../../kernel/ports-and-marks.ts';
import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import { type Family, loopbackAddresses, loopbackNetworks, type Network, type Protocol } from '../../kernel/address.ts';
import type { Expression, Field, Right, NftChain, NftRule, NftCounter } from '../../kernel/nftables/table.ts';
import { hookedChains, nftChains, nftSets, localhostRejection } from '../../kube-proxy/nft-table.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import {
  destinationPort,
  excludes,
  drop,
  equalTo,
  familyFields,
  inSet,
  l4proto,
  markForMasquerade,
  amongAll,
  masqueradedClients,
  matchField,
  nodePortKey,
  reject,
  returnToCaller,
  nftRule,
  setMasqueradeMark,
  toNode,
  wordValue,
  type FamilyFields,
} from './rule-parts.ts';

export interface BaseChainInput {
  readonly family: Family;
  readonly masquerade: MasqueradePlan;
  readonly nodePorts: NodePortPlan;
  readonly serviceNetworks: readonly Network[];
  readonly rejectedOnLocalhost: readonly Protocol[];
  readonly behaviours: Behaviours;
}

export function baseChains(input: BaseChainInput): readonly NftChain[] {
  const fields = familyFields[input.family];
  return [
    ...hookedChains,
    { name: nftChains.services, rules: servicesRules(input, fields) },
    {
      name: nftChains.serviceEndpointsCheck,
      rules: [nftRule([{ kind: 'verdict-map', left: fields.service, right: inSet(nftSets.noEndpointServices) }])],
    },
    {
      name: nftChains.nodePortEndpointsCheck,
      rules: [
        nftRule([...toNodePortAddresses(input, fields, []), nodePortMap(nftSets.noEndpointNodePorts)]),
        ...(input.rejectedOnLocalhost.length === 0
          ? []
          : [
              nftRule([
                matchField(fields.destination, loopback[input.family]),
                nodePortMap(nftSets.localhostNodePortRejects),
              ]),
            ]),
      ],
    },
    {
      name: nftChains.reject,
      comment: 'helper for @no-endpoint-services / @no-endpoint-nodeports',
      rules: [nftRule([reject])],
    },
    { name: nftChains.clusterIPsCheck, rules: clusterIPsCheckRules(input, fields) },
    {
      name: nftChains.firewallCheck,
      rules: [nftRule([{ kind: 'verdict-map', left: fields.service, right: inSet(nftSets.firewallIPs) }])],
    },
    { name: nftChains.masquerading, rules: masqueradingRules(input, fields) },
    ...(input.behaviours.has('inline-masquerade')
      ? []
      : [{ name: nftChains.markForMasquerade, rules: [nftRule([setMasqueradeMark(input.masquerade)])] }]),
    ...localhostChains(input.rejectedOnLocalhost),
  ];
}

/** Looks up Services by address first, because a node port's number may also be a Service's port. */
function servicesRules(input: BaseChainInput, fields: FamilyFields): readonly NftRule[] {
  return [
    ...(input.behaviours.has('shared-masquerade') ? masqueradeClusterIPs(input, fields) : []),
    nftRule([{ kind: 'verdict-map', left: fields.service, right: inSet(nftSets.serviceIPs) }]),
    nftRule([...toNodePortAddresses(input, fields, [toNode]), nodePortMap(nftSets.serviceNodePorts)]),
  ];
}

function masqueradeClusterIPs({ masquerade, behaviours }: BaseChainInput, fields: FamilyFields): readonly NftRule[] {
  const clients = masqueradedClients(masquerade, fields);
  if (!clients) return [];
  const toCluster = matchField(fields.destination, inSet(nftSets.clusterIPs));
  const comment =
    masquerade.toClusterIPs.kind === 'all'
      ? 'masquerade all clusterIP traffic'
      : 'masquerade clusterIP traffic from outside cluster';
  return [nftRule([toCluster, ...clients, markForMasquerade(masquerade, behaviours)], comment)];
}

function nodePortMap(map: string): Expression {
  return { kind: 'verdict-map', left: nodePortKey, right: inSet(map) };
}

/** Matches packets to node port addresses. If node ports listen on all addresses, adds `unlisted` and excludes loopback. */
function toNodePortAddresses(
  { family, nodePorts }: BaseChainInput,
  { destination }: FamilyFields,
  unlisted: readonly Expression[],
): readonly Expression[] {
  return nodePorts.addresses
    ? [matchField(destination, inSet(nftSets.nodePortIPs))]
    : [...unlisted, excludes(destination, loopback[family])];
}

const loopback: { readonly [F in Family]: Right } = {
  ipv4: equalTo({ kind: 'network', network: loopbackNetworks.ipv4 }),
  ipv6: equalTo({ kind: 'address', address: loopbackAddresses.ipv6 }),
};

/** Refuses packets to cluster IPs that no rule redirected, because the Service lacks this port or no Service has the cluster IP. */
function clusterIPsCheckRules({ serviceNetworks }: BaseChainInput, { destination }: FamilyFields): readonly NftRule[] {
  const refused = nftRule(
    [matchField(destination, inSet(nftSets.clusterIPs)), reject],
    'Reject traffic to invalid ports of ClusterIPs',
  );
  if (serviceNetworks.length === 0) return [refused];
  const values = serviceNetworks.map((network) => ({ kind: 'network', network }) as const);
  const unallocated = matchField(destination, amongAll(values));
  return [refused, nftRule([unallocated, drop], 'Drop traffic to unallocated ClusterIPs')];
}

/** Gives marked packets the node's address as source, and clears the mark, because a packet may pass this chain again. */
function masqueradingRules(
  { masquerade: { mark }, behaviours }: BaseChainInput,
  fields: FamilyFields,
): readonly NftRule[] {
  const clear: Expression = { kind: 'change-mark', of: 'packet', change: { stays: allBits, flip: mark } };
  const marked: Field = { name: 'mark', mask: mark };
  const none = equalTo({ kind: 'number', value: 0 });
  const hairpin = behaviours.has('hairpin-set') ? [hairpinRule(fields)] : [];
  return behaviours.has('inline-masquerade')
    ? [nftRule([excludes(marked, none), clear, masquerade]), ...hairpin]
    : [...hairpin, nftRule([matchField(marked, none), returnToCaller]), nftRule([clear]), nftRule([masquerade])];
}

const masquerade: Expression = { kind: 'masquerade', fullyRandom: true };

/** Without this rule, an endpoint that reaches itself would get a packet from its own address. */
function hairpinRule({ source, destination }: FamilyFields): NftRule {
  const key = [source, destination, l4proto, destinationPort];
  const toItself: Expression = { kind: 'match', left: key, right: inSet(nftSets.hairpinConnections) };
  return nftRule([matchField({ name: 'ct status' }, equalTo(wordValue('dnat'))), toItself, masquerade]);
}

/** Returns the protocols to reject on localhost (localhostNodePortRejectProtocols). If kube-proxy listens there, TCP is not among them. */
export function rejectedOnLocalhost(nodePorts: NodePortPlan, behaviours: Behaviours): readonly Protocol[] {
  if (!behaviours.has('localhost-node-ports')) return [];
  return namesLocalhost(nodePorts, behaviours) ? ['UDP', 'SCTP'] : ['TCP', 'UDP', 'SCTP'];
}

function localhostChains(rejected: readonly Protocol[]): readonly NftChain[] {
  return rejected.map((protocol) => {
    const { chain, counter } = localhostRejection(protocol);
    return { name: chain, rules: [nftRule([{ kind: 'counter', counter }, reject])] };
  });
}

export function localhostCounters(rejected: readonly Protocol[]): ReadonlyMap<string, NftCounter> {
  const names = rejected.map((protocol) => localhostRejection(protocol).counter);
  return new Map(names.map((name) => [name, { name }]));
}
