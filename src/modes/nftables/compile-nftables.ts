import type { Cluster, NodeContext, ServicePort } from '../../cluster/model.ts';
import {
  ContextMemo,
  PlanMemo,
  admitsNode,
  planTraffic,
  type TrafficPlan,
  type TrafficPath,
} from '../../cluster/plan-traffic.ts';
import { planNodePorts } from '../../cluster/node-context.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { planMasquerade } from '../../cluster/plan-masquerade.ts';
import { type Family, isLoopback } from '../../kernel/address.ts';
import { compareElements } from '../../kernel/nftables/nft-delta.ts';
import type { Element, NftChain, NftMap, NftSet, NftTable } from '../../kernel/nftables/table.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import { nftSets, nftTableComment, nftTableName, maxNftComment } from '../../kube-proxy/nft-table.ts';
import { behavioursOf, type Behaviours } from '../../kube-proxy/releases.ts';
import { gatesOfSettings } from '../../settings/feature-gates.ts';
import { baseChains, localhostCounters, rejectedOnLocalhost } from './base-chains.ts';
import { addressTypes, addressValue } from './rule-parts.ts';
import { serviceObjects, type PlacedElement, type ServiceContext, type ServiceObjects } from './service-objects.ts';
import { diagnose, type Finding, keyOfFault } from '../../base/findings/finding.ts';

/** Makes a table for each family. Chains and sets of Service ports are in the cluster's order, and elements are sorted by key. */
export function compileNftables(
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  families: readonly Family[],
  memo?: NftablesMemo,
  behaviours = behavioursOf(settings.release, gatesOfSettings(settings)),
): KernelState {
  const compile = (family: Family): NftTable => compileTable({ cluster, node, settings, family, memo, behaviours });
  return { ...emptyState, nftables: families.map(compile) };
}

export class NftablesMemo {
  readonly traffic = new PlanMemo();
  readonly objects = new ContextMemo<TrafficPlan, ServiceObjects>();
}

interface TableInput {
  readonly cluster: Cluster;
  readonly node: NodeContext;
  readonly settings: ProxySettings;
  readonly family: Family;
  readonly memo: NftablesMemo | undefined;
  readonly behaviours: Behaviours;
}

function compileTable({ cluster, node, settings, family, memo, behaviours }: TableInput): NftTable {
  const masquerade = planMasquerade(settings, node, family);
  const nodePorts = planNodePorts(settings, node, family);
  const rejected = rejectedOnLocalhost(nodePorts, behaviours);
  const usual: ServiceContext = { masquerade, nodeIsAdmitted: false, rejectedOnLocalhost: rejected, behaviours };
  const admitting: ServiceContext = { ...usual, nodeIsAdmitted: true };
  const objects: ServiceObjects[] = [];
  cluster.servicePorts.forEach((port) => {
    if (port.family !== family) return;
    const plan = memo ? memo.traffic.recall(port, node) : planTraffic(port, node);
    const context = plan.firewall && admitsNode(plan.firewall, node.nodeIPs[family]) ? admitting : usual;
    const make = (): ServiceObjects => serviceObjects(plan, context);
    objects.push(memo ? memo.objects.recall(plan, context, make) : make());
  });
  const elements = collectElements(objects);
  const listened = nodePorts.addresses?.filter((address) => !isLoopback(address));
  if (listened) {
    const keys = listened.map((address) => ({ key: [addressValue(address)] }));
    elements.set(nftSets.nodePortIPs, keys);
  }
  const serviceNetworks = cluster.serviceCidrs.flatMap(({ network }) => (network.family === family ? [network] : []));
  const base = { family, masquerade, nodePorts, serviceNetworks, rejectedOnLocalhost: rejected, behaviours };
  return {
    family,
    name: nftTableName,
    comment: nftTableComment,
    counters: localhostCounters(rejected),
    chains: collectByName<NftChain>(baseChains(base), objects, (some) => some.chains),
    sets: collectByName<NftSet | NftMap>(
      sharedSets(family, elements, behaviours, rejected.length > 0),
      objects,
      (some) => some.sets,
    ),
  };
}

function collectByName<T extends { readonly name: string }>(
  shared: readonly T[],
  objects: readonly ServiceObjects[],
  own: (objects: ServiceObjects) => readonly T[],
): ReadonlyMap<string, T> {
  const all = new Map<string, T>();
  const add = (item: T): void => {
    all.set(item.name, item);
  };
  shared.forEach(add);
  objects.forEach((some) => own(some).forEach(add));
  return all;
}

/** If several ports have the same key, the first port wins. Within one port, the last element wins. */
function collectElements(objects: readonly ServiceObjects[]): Map<string, readonly Element[]> {
  const bySet = new Map<string, Element[]>();
  const add = ({ set, element }: PlacedElement): void => {
    const others = bySet.get(set);
    if (others) others.push(element);
    else bySet.set(set, [element]);
  };
  objects.forEach(({ elements }) => elements.forEach(add));
  return new Map([...bySet].map(([set, elements]) => [set, resolveClaims(elements.sort(compareElements))]));
}

function resolveClaims(elements: readonly Element[]): readonly Element[] {
  const kept: Element[] = [];
  let holder: Element | undefined;
  for (const element of elements) {
    if (!holder || compareElements(holder, element) !== 0) kept.push(element);
    else if (holder.origin?.servicePort === element.origin?.servicePort) kept[kept.length - 1] = element;
    else continue;
    holder = element;
  }
  return kept;
}

function sharedSets(
  family: Family,
  elements: ReadonlyMap<string, readonly Element[]>,
  behaviours: Behaviours,
  rejectsLocalhost: boolean,
): readonly (NftSet | NftMap)[] {
  const address = addressTypes[family];
  const service = [address, 'inet_proto', 'inet_service'];
  const nodePort = ['inet_proto', 'inet_service'];
  const hairpin = [address, address, ...nodePort];
  const listed = elements.has(nftSets.nodePortIPs);
  const set = (name: string, keyType: readonly string[], comment: string): NftSet => ({
    kind: 'set',
    name,
    keyType,
    flags: [],
    comment,
    elements: elements.get(name) ?? [],
  });
  const map = (name: string, keyType: readonly string[], comment: string): NftMap => ({
    ...set(name, keyType, comment),
    kind: 'map',
    valueType: ['verdict'],
  });
  return [
    set(nftSets.clusterIPs, [address], 'Active ClusterIPs'),
    ...(behaviours.has('hairpin-set') ? [set(nftSets.hairpinConnections, hairpin, 'service hairpin connections')] : []),
    ...(listed ? [set(nftSets.nodePortIPs, [address], 'IPs that accept NodePort traffic')] : []),
    map(nftSets.firewallIPs, service, 'destinations that are subject to LoadBalancerSourceRanges'),
    map(nftSets.noEndpointNodePorts, nodePort, 'vmap to drop or reject packets to service nodeports with no endpoints'),
    map(nftSets.noEndpointServices, service, 'vmap to drop or reject packets to services with no endpoints'),
    map(nftSets.serviceIPs, service, 'ClusterIP, ExternalIP and LoadBalancer IP traffic'),
    map(nftSets.serviceNodePorts, nodePort, 'NodePort traffic'),
    ...(rejectsLocalhost
      ? [map(nftSets.localhostNodePortRejects, nodePort, 'localhost NodePorts rejected by kube-proxy')]
      : []),
  ];
}

/** Finds ports without endpoints whose comment is too long for nft. A node would then get no rules at all. */
export function findLongComments({ servicePorts }: Cluster): readonly Finding[] {
  const warnings = new Map<string, Finding>();
  for (const port of servicePorts) {
    if (port.label.length <= maxNftComment) continue;
    const lack = lackWhereRefused(port);
    if (lack === undefined) continue;
    const details = { servicePort: port.label, lack, limit: maxNftComment };
    const warning = diagnose('long-comment', details, port.places?.port);
    warnings.set(keyOfFault(warning), warning);
  }
  return [...warnings.values()];
}

/**
 * Returns why at least one node refuses packets to the port; undefined if no node does. Plans for a node without a name, which has no
 * endpoint.
 */
function lackWhereRefused(port: ServicePort): NonNullable<TrafficPath['refusal']>['reason'] | undefined {
  const plan = planTraffic(port, { name: '', zone: '' });
  const outside = plan.externalIPs.length > 0 || plan.loadBalancerIPs.length > 0 || plan.nodePort !== undefined;
  const refusal = plan.internal.refusal ?? (outside ? plan.external.refusal : undefined);
  return refusal?.reason;
}
