import { ContextMemo, PlanMemo, admitsNode, planTraffic, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import type { Cluster, NodeContext } from '../../cluster/model.ts';
import { planNodePorts } from '../../cluster/node-context.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { planMasquerade, type MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import type { Address, Family } from '../../kernel/address.ts';
import type { Chain, Rule, Tables } from '../../kernel/iptables/iptables.ts';
import { matchModules } from '../../kernel/sysctls-and-modules.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import { iptablesJumps, jumpChains, localnetRule } from '../../kube-proxy/chains.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { chainsByName, masqueradeRules, type MasqueradeRules, forwardRules, nodePortJumps } from './rule-parts.ts';
import { planServicePort, type IptablesPortPlan } from './plan-service-port.ts';
import {
  makeChances,
  serviceChains,
  captureNodePortRules,
  captureRules,
  firewallDropRules,
  healthCheckRules,
  refuseClusterIPRules,
  refuseExternalRules,
} from './service-chains.ts';

/** If a family has more endpoints than this, kube-proxy omits comments from rules for single endpoints. */
const largeClusterEndpoints = 1000;

/**
 * Makes tables filter and nat, and sets route_localnet if node ports listen on 127.0.0.1. Orders chains like the cluster where kube-proxy
 * has no fixed order. Leaves out kube-proxy's optional nfacct rules. `memo` is for runs that compile one cluster for many nodes.
 */
export function compileIptables(
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  families: readonly Family[],
  memo?: IptablesMemo,
): KernelState {
  const compiled = families.map((family) => compileFamily(cluster, node, settings, family, memo));
  return {
    ...emptyState,
    iptables: Object.fromEntries(compiled.map(({ family, tables }) => [family, tables])),
    sysctls: new Map(
      compiled.some(({ localhostNodePorts }) => localhostNodePorts) ? [['net.ipv4.conf.all.route_localnet', '1']] : [],
    ),
    modules: ['nf_conntrack', ...matchModules(compiled.map(({ tables }) => tables))],
  };
}

export class IptablesMemo {
  readonly traffic = new PlanMemo();
  readonly plans = new ContextMemo<TrafficPlan, IptablesPortPlan>();
  readonly chains = new ContextMemo<IptablesPortPlan, readonly Chain[]>();
}

const noContext = {};

function compileFamily(
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  family: Family,
  memo: IptablesMemo | undefined,
) {
  const ports = cluster.servicePorts.filter((port) => port.family === family);
  const plans = ports.map((port) => {
    if (!memo) return planServicePort(planTraffic(port, node));
    const traffic = memo.traffic.recall(port, node);
    return memo.plans.recall(traffic, noContext, () => planServicePort(traffic));
  });
  const nodePorts = planNodePorts(settings, node, family);
  const localhostNodePorts = family === 'ipv4' && settings.localhostNodePorts && nodePorts.picksIPv4Loopback;
  const masquerade = planMasquerade(settings, node, family);
  const rules = masqueradeRules(masquerade);
  // Count all endpoints, ready or not, once for each port.
  const elsewhere = cluster.endpointsElsewhere?.[family] ?? 0;
  const endpointCount = ports.reduce((count, port) => count + port.endpoints.length, elsewhere);
  const chains = makeServiceChains(plans, masquerade, node.nodeIPs[family], endpointCount, memo);
  const tables: Tables = {
    filter: filterTable(plans, rules, settings, localhostNodePorts),
    nat: natTable(plans, chains, rules, nodePortJumps(nodePorts, family, localhostNodePorts)),
  };
  return { family, tables, localhostNodePorts };
}

function makeServiceChains(
  plans: readonly IptablesPortPlan[],
  masquerade: MasqueradePlan,
  nodeIP: Address,
  endpointCount: number,
  memo: IptablesMemo | undefined,
): readonly Chain[] {
  const usual = { masquerade, endpointComments: endpointCount <= largeClusterEndpoints, nodeIsAdmitted: false };
  const admitting = { ...usual, nodeIsAdmitted: true };
  const chances = makeChances(plans.reduce((most, { targets }) => Math.max(most, targets.length), 0));
  return plans.flatMap((plan) => {
    const context = plan.firewall && admitsNode(plan.firewall, nodeIP) ? admitting : usual;
    const make = (): readonly Chain[] => serviceChains(plan, context, chances);
    return memo ? memo.chains.recall(plan, context, make) : make();
  });
}

function filterTable(
  plans: readonly IptablesPortPlan[],
  masquerade: MasqueradeRules,
  { conntrack }: ProxySettings,
  localhostNodePorts: boolean,
) {
  return chainsByName([
    ...jumpChains(iptablesJumps, 'filter'),
    { name: baseChains.services, rules: plans.flatMap(refuseClusterIPRules) },
    { name: baseChains.externalServices, rules: plans.flatMap(refuseExternalRules) },
    { name: baseChains.forward, rules: forwardRules(masquerade, conntrack) },
    { name: baseChains.nodePorts, rules: plans.flatMap(healthCheckRules) },
    { name: baseChains.proxyFirewall, rules: plans.flatMap(firewallDropRules) },
    { name: baseChains.kubeletFirewall, rules: localhostNodePorts ? [localnetRule] : [] },
  ]);
}

function natTable(
  plans: readonly IptablesPortPlan[],
  portChains: readonly Chain[],
  { mark, postrouting }: MasqueradeRules,
  toNodePorts: readonly Rule[],
) {
  return chainsByName([
    ...jumpChains(iptablesJumps, 'nat'),
    // Packets to a Service's own address go first, because a node port's number may also be a Service's port.
    { name: baseChains.services, rules: [...plans.flatMap(captureRules), ...toNodePorts] },
    { name: baseChains.nodePorts, rules: plans.flatMap(captureNodePortRules) },
    { name: baseChains.postrouting, rules: postrouting },
    { name: baseChains.markMasquerade, rules: mark },
    ...portChains,
  ]);
}
