import type { NodePortPlan } from '../../cluster/node-port-addresses.ts';
import type { Protocol } from '../../kernel/family.ts';
import type { NftChain, NftCounter } from '../../kernel/nftables/table.ts';
import { localhostRejection } from '../../kube-proxy/nftables.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { reject, rule } from './rule-parts.ts';

/**
 * The protocols whose node ports are rejected on localhost (localhostNodePortRejectProtocols): where kube-proxy itself
 * listens for those of TCP, the others.
 */
export function rejectedOnLocalhost(nodePorts: NodePortPlan, behaviours: Behaviours): readonly Protocol[] {
  if (!behaviours.has('localhost-node-ports')) return [];
  return nodePorts.namesLoopback ? ['UDP', 'SCTP'] : ['TCP', 'UDP', 'SCTP'];
}

/** The chains that count and reject packets to them. */
export function localhostChains(rejected: readonly Protocol[]): readonly NftChain[] {
  return rejected.map((protocol) => {
    const { chain, counter } = localhostRejection(protocol);
    return { name: chain, rules: [rule([{ kind: 'counter', counter }, reject])] };
  });
}

/** Their counters, by name. */
export function localhostCounters(rejected: readonly Protocol[]): ReadonlyMap<string, NftCounter> {
  const names = rejected.map((protocol) => localhostRejection(protocol).counter);
  return new Map(names.map((name) => [name, { name }]));
}
