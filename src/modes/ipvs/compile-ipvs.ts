import type { Cluster, NodeContext } from '../../cluster/model.ts';
import { ContextMemo, PlanMemo, planTraffic, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import { isExternallyAccessible } from '../../cluster/endpoint-choice.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { ownAddresses, planNodePorts } from '../../cluster/node-context.ts';
import { planMasquerade } from '../../cluster/plan-masquerade.ts';
import { addressBits, type Family, isLoopback } from '../../kernel/address.ts';
import type { Tables } from '../../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { compareEntries, type SetEntry } from '../../kernel/ipset/set-entry.ts';
import type { LinkAddress } from '../../kernel/link/link.ts';
import { matchModules } from '../../kernel/sysctls-and-modules.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import { serviceLink, setIds } from '../../kube-proxy/ipvs-objects.ts';
import {
  planInternal,
  planServicePort,
  type FamilyNode,
  type IpvsPortPlan,
  mergeVirtualServers,
} from './plan-service-port.ts';
import { makeTables, makeSets, noMembers } from './rules-and-sets.ts';

/** Compiles IPVS mode. If several Service ports have the same address, port and protocol, the first gets the virtual server. */
export function compileIpvs(
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  families: readonly Family[],
  memo?: IpvsMemo,
): KernelState {
  const states = families.map((family) => ({ family, ...compileFamily(cluster, node, settings, family, memo) }));
  const virtualServers = states.flatMap((state) => state.virtualServers);
  const tables = states.map((state) => state.tables);
  return {
    ...emptyState,
    iptables: Object.fromEntries(states.map((state) => [state.family, state.tables])),
    sets: states.flatMap((state) => state.sets),
    virtualServers,
    links: [{ name: serviceLink, kind: 'dummy', addresses: states.flatMap((state) => state.addresses) }],
    sysctls: ipvsSysctls(settings),
    ipvsTimeouts: ipvsTimeouts(settings),
    modules: neededModules(virtualServers, settings.ipvs.scheduler, tables),
  };
}

export class IpvsMemo {
  readonly traffic = new PlanMemo();
  readonly internal = new ContextMemo<TrafficPlan, IpvsPortPlan>();
}

function compileFamily(
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  family: Family,
  memo: IpvsMemo | undefined,
) {
  const on = describeFamilyNode(node, settings, family);
  const ports = cluster.servicePorts.filter((port) => port.family === family);
  // For a Service port with only a cluster IP, the plans of nodes with the same traffic plan can differ only in the scheduler.
  const internal = { scheduler: on.scheduler };
  const plans = ports.map((port) => {
    const traffic = memo ? memo.traffic.recall(port, node) : planTraffic(port, node);
    if (!memo || isExternallyAccessible(port)) return planServicePort(traffic, on);
    return memo.internal.recall(traffic, internal, () => planInternal(traffic, on.scheduler));
  });
  const members = noMembers();
  for (const plan of plans) for (const [id, member] of plan.members) members[id].push(member);
  return {
    tables: makeTables({
      family,
      filled: new Set(setIds.filter((id) => members[id].length > 0)),
      masquerade: planMasquerade(settings, node, family),
      closedToNode: plans.flatMap((plan) => plan.closedToNode).sort(compareEntries),
    }),
    sets: makeSets(members, family),
    virtualServers: mergeVirtualServers(plans.map((plan) => plan.virtualServers)),
    addresses: linkAddresses(members.ipvsAddresses, family),
  };
}

function describeFamilyNode(node: NodeContext, settings: ProxySettings, family: Family): FamilyNode {
  const own = ownAddresses(node, family);
  const { addresses } = planNodePorts(settings, node, family);
  return {
    scheduler: settings.ipvs.scheduler,
    nodeIP: node.nodeIPs[family],
    // IPVS serves no loopback address, whatever --nodeport-addresses says.
    nodePortAddresses: addresses?.filter((address) => !isLoopback(address)) ?? own,
    own: new Set(own.map((address) => address.text)),
  };
}

function linkAddresses(bound: readonly SetEntry[], family: Family): readonly LinkAddress[] {
  const addresses: LinkAddress[] = [];
  for (const { address, origin } of bound.toSorted(compareEntries)) {
    if (!address || address.text === addresses.at(-1)?.address.text) continue;
    addresses.push({ family, address, prefixLength: addressBits[family], origin });
  }
  return addresses;
}

/** Returns the sysctls of every node, except conn_reuse_mode. Its value depends on the node's kernel, so kpc-apply decides about it. */
function ipvsSysctls(settings: ProxySettings): ReadonlyMap<string, string> {
  return new Map([
    ['net.ipv4.ip_forward', '1'],
    ['net.ipv4.vs.conntrack', '1'],
    ['net.ipv4.vs.expire_nodest_conn', '1'],
    ['net.ipv4.vs.expire_quiescent_template', '1'],
    // Without these two, the node would answer ARP requests for addresses that are only on kube-ipvs0.
    ...(settings.ipvs.strictARP
      ? ([
          ['net.ipv4.conf.all.arp_ignore', '1'],
          ['net.ipv4.conf.all.arp_announce', '2'],
        ] as const)
      : []),
  ]);
}

function ipvsTimeouts({ ipvs }: ProxySettings): KernelState['ipvsTimeouts'] {
  const timeouts = { tcp: ipvs.tcpTimeout, tcpFin: ipvs.tcpFinTimeout, udp: ipvs.udpTimeout };
  return Object.values(timeouts).some((seconds) => seconds > 0) ? timeouts : undefined;
}

/** Returns modules in load order. Most kernels load them on use, but nodes without autoloading need the list. */
function neededModules(
  virtualServers: readonly VirtualServer[],
  nodeScheduler: string,
  tables: readonly Tables[],
): readonly string[] {
  const schedulers = new Set([nodeScheduler, ...virtualServers.map(({ scheduler }) => scheduler)]);
  const usesTunnels = virtualServers.some(({ realServers }) => realServers.some((rs) => rs.forwarding === 'tunnel'));
  return [
    'ip_vs',
    ...[...schedulers].toSorted().map((scheduler) => `ip_vs_${scheduler}`),
    'nf_conntrack',
    'dummy',
    'ip_set',
    'ip_set_hash_ip',
    'ip_set_hash_ipport',
    'ip_set_hash_ipportip',
    'ip_set_hash_ipportnet',
    'ip_set_bitmap_port',
    ...matchModules(tables),
    ...(usesTunnels ? ['ipip'] : []),
  ];
}
