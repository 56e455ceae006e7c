import { uniqueBy } from '../../cluster/grouping.ts';
import { portAddresses, type PortAddress, type ServiceInfo, type ShownPort } from '../../cluster/model.ts';
import { externalPolicyOf, internalPolicyOf } from '../../cluster/plan-traffic.ts';
import { findDumpListeners } from '../../dumps/coverage.ts';
import { type Family, parseAddress } from '../../kernel/address.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import type { BehaviourReason } from '../../kube-proxy/releases.ts';
import {
  findLocalhostHandling,
  findNodePortListeners,
  type LocalhostHandling,
  type NodePort,
  type NodePortListeners,
} from '../../kube-proxy/node-port-listeners.ts';
import { itemOf, pairUp } from '../../kernel/compare.ts';
import type { CompiledSnapshot, PortFault, Snapshot } from '../../snapshot/snapshot.ts';

export type ServiceReason =
  | { readonly kind: 'service-added' | 'service-removed' | 'port-added' | 'port-removed' }
  | { readonly kind: 'programmed'; readonly from: Skip; readonly to: Skip }
  | { readonly kind: 'port-renamed'; readonly from: string; readonly to: string }
  /** A field whose value differs; '' means that there is none. */
  | { readonly kind: 'field'; readonly field: string; readonly from: string; readonly to: string }
  /** A change in where a node port listens. `family` is set only if the port has both families. */
  | ({ readonly kind: 'node-port'; readonly family: Family | undefined; readonly port: number } & ListenerChange)
  | {
      readonly kind: 'list';
      readonly field: string;
      readonly added: readonly string[];
      readonly removed: readonly string[];
    }
  | { readonly kind: 'scaled'; readonly from: EndpointCount; readonly to: EndpointCount }
  | { readonly kind: 'endpoint-added' | 'endpoint-removed'; readonly endpoint: string; readonly state: EndpointState }
  | {
      readonly kind: 'endpoint-changed';
      readonly endpoint: string;
      readonly from: EndpointState;
      readonly to: EndpointState;
    }
  | { readonly kind: 'fault'; readonly fault: PortFault }
  | BehaviourReason
  /** The properties of a port that only one side has, for each family. */
  | {
      readonly kind: 'facts';
      readonly ports: readonly ShownPort[];
      /** Undefined for a port read from a kernel, which does not show the Service's type. */
      readonly type: ServiceInfo['type'] | undefined;
    };

type ListenerChange =
  | { readonly at: 'addresses'; readonly from: NodePortListeners; readonly to: NodePortListeners }
  | { readonly at: 'localhost'; readonly from: LocalhostHandling; readonly to: LocalhostHandling };

export type Skip = ServiceInfo['skipped'] | 'absent';

export function programmed(from: Skip, to: Skip): readonly ServiceReason[] {
  return from === to ? [] : [{ kind: 'programmed', from, to }];
}

export function fieldReason(name: string, from: string, to: string): readonly ServiceReason[] {
  return from === to ? [] : [{ kind: 'field', field: name, from, to }];
}

export function listReason(name: string, from: readonly string[], to: readonly string[]): readonly ServiceReason[] {
  const [before, after] = [new Set(from), new Set(to)];
  const added = to.filter((item) => !before.has(item));
  const removed = from.filter((item) => !after.has(item));
  return added.length + removed.length === 0 ? [] : [{ kind: 'list', field: name, added, removed }];
}

/** The number of a Service's endpoints on a side. "not given" if only the other side's input shows the endpoints. */
type EndpointCount = number | 'not given';

export function scaled(from: EndpointCount, to: EndpointCount): readonly ServiceReason[] {
  return from === to ? [] : [{ kind: 'scaled', from, to }];
}

export interface EndpointState {
  /** `draining`: the real server has weight 0, so it keeps its connections but gets no new ones. */
  readonly condition: 'ready' | 'not ready' | 'terminating' | 'terminating, unready' | 'draining';
  readonly node: string | undefined;
  readonly zone?: string | undefined;
  readonly hints: readonly string[];
  readonly used: boolean;
  /** Set if no node is named. The endpoint's own node then uses the endpoint, but nodes without it do not. */
  readonly usedByOwnNode?: true;
}

/** Keyed by "ip:port". Undefined if the endpoints are not given. */
type EndpointStates = ReadonlyMap<string, EndpointState> | undefined;

export function diffEndpointStates(before: EndpointStates, after: EndpointStates): readonly ServiceReason[] {
  const countOf = (states: EndpointStates): EndpointCount =>
    states ? [...states.values()].filter(({ condition }) => condition !== 'draining').length : 'not given';
  const reasons: ServiceReason[] = [...scaled(countOf(before), countOf(after))];
  for (const pair of pairUp(before ?? new Map(), after ?? new Map(), ([name]) => name)) {
    const [endpoint, state] = itemOf(pair);
    const [from, to] = [pair.from?.[1], pair.to?.[1]];
    if (!from || !to) reasons.push({ kind: from ? 'endpoint-removed' : 'endpoint-added', endpoint, state });
    else if (JSON.stringify(from) !== JSON.stringify(to))
      reasons.push({ kind: 'endpoint-changed', endpoint, from, to });
  }
  return reasons;
}

/**
 * Compares the addresses on which node ports listen on both sides. Two modes may listen on different addresses. After a change of mode, the
 * port number in the manifests is the same, but some node addresses no longer answer.
 */
export function findNodePortReasons(
  from: Snapshot,
  to: Snapshot,
): (before: readonly ShownPort[] | undefined, after: readonly ShownPort[] | undefined) => readonly ServiceReason[] {
  const [old, fresh] = [nodePortListeners(from), nodePortListeners(to)];
  return (before = [], after = []) => {
    const kept = after.filter(
      ({ family, protocol, nodePort }) =>
        nodePort &&
        before.some((each) => each.family === family && each.protocol === protocol && each.nodePort === nodePort),
    );
    const isDual = new Set(kept.map(({ family }) => family)).size > 1;
    const reasons = kept.flatMap(({ family, protocol, nodePort: port = 0 }) => {
      const [one, other] = [old({ family, protocol, port }), fresh({ family, protocol, port })];
      const own = { kind: 'node-port', family: isDual ? family : undefined, port } as const;
      const addresses = { from: one.addresses, to: other.addresses };
      const [here, there] = [one.localhost, other.localhost];
      const isKnown = addresses.from.kind !== 'unknown' && addresses.to.kind !== 'unknown';
      const isMoved = isKnown && JSON.stringify(addresses.from) !== JSON.stringify(addresses.to);
      return [
        ...(isMoved ? [{ ...own, at: 'addresses', ...addresses } as const] : []),
        ...(here && there && here !== there ? [{ ...own, at: 'localhost', from: here, to: there } as const] : []),
      ];
    });
    return uniqueReasons(reasons);
  };
}

function nodePortListeners({ kind, state, coverage }: Snapshot) {
  const find = kind === 'dump' ? findDumpListeners(state, coverage) : findNodePortListeners(state);
  const isNft = state.nftables.some(({ name }) => isKubeProxyTable(name));
  const onLocalhost = isNft ? findLocalhostHandling(state) : undefined;
  return (nodePort: NodePort) => ({ addresses: find(nodePort), localhost: onLocalhost?.(nodePort) });
}

/** Explains load balancer addresses that only one side programs because, on the other side, the load balancer handles their packets. */
export function ipModeReasons(service: string, from: CompiledSnapshot, to: CompiledSnapshot): readonly ServiceReason[] {
  const [before, after] = [ipModes(service, from), ipModes(service, to)];
  return [...before].flatMap(([ip, mode]) => fieldReason(`ipMode of ${ip}`, mode, after.get(ip) ?? mode));
}

/** Returns the ipMode of each load balancer address. A bundle or golden records only the addresses that kube-proxy programs. */
function ipModes(service: string, { addresses, written }: CompiledSnapshot): ReadonlyMap<string, 'VIP' | 'Proxy'> {
  const proxied = (written.get(service)?.ingress ?? []).flatMap(({ ip, ipMode }) =>
    ipMode === 'Proxy' ? (parseAddress(ip ?? '')?.text ?? []) : [],
  );
  const served = addresses.portsOf(service).flatMap(({ loadBalancerIPs }) => loadBalancerIPs);
  return new Map([
    ...proxied.map((text) => [text, 'Proxy'] as const),
    ...served.map(({ text }) => [text, 'VIP'] as const),
  ]);
}

/** Drops repeated reasons. Both families of a Service port may have the same reason. */
export function uniqueReasons(reasons: readonly ServiceReason[]): readonly ServiceReason[] {
  return reasons.length < 2 ? reasons : uniqueBy(reasons, (each) => JSON.stringify(each));
}

/** The fields to compare, except addresses and source ranges, which are lists. Undefined means that the value is unknown. */
const comparedFields: Readonly<Record<string, (port: ShownPort) => number | string | undefined>> = {
  port: ({ port }) => port,
  nodePort: ({ nodePort }) => nodePort,
  internalTrafficPolicy: internalPolicyOf,
  externalTrafficPolicy: (port) =>
    externalPolicyOf(port) ?? (port.externalPolicyLocal === undefined ? undefined : 'Cluster'),
  healthCheckNodePort: ({ healthCheckNodePort }) => healthCheckNodePort,
  scheduler: ({ scheduler }) => scheduler,
  forwarding: ({ forwarding }) => forwarding,
  sessionAffinity: ({ affinitySeconds }) => affinitySeconds,
};

/**
 * Returns the differences between two Service ports. Leaves out the protocol, which an excerpt of rules may not show, and any field that
 * one side does not show. A kernel shows no affinity for a Service without endpoints and, in iptables mode, no source ranges for it.
 */
export function diffFields(from: ShownPort, to: ShownPort): readonly ServiceReason[] {
  const [ranges, others] = [from, to].map(({ sourceRanges }) => sourceRanges?.map(({ text }) => text));
  return [
    ...addressReasons(from, to),
    ...Object.entries(comparedFields).flatMap(([name, valueOf]) => {
      const [old, fresh] = [valueOf(from), valueOf(to)];
      return old === undefined || fresh === undefined ? [] : fieldReason(name, String(old || ''), String(fresh || ''));
    }),
    ...(ranges && others ? listReason('loadBalancerSourceRanges', ranges, others) : []),
  ];
}

/** Compares addresses. An address that one side lacks does not count if that side may have addresses that it does not show. */
function addressReasons(from: ShownPort, to: ShownPort): readonly ServiceReason[] {
  const [before, after] = [portAddresses(from), portAddresses(to)];
  const textsOf = (addresses: readonly PortAddress[], wanted?: PortAddress['kind']): readonly string[] =>
    addresses.flatMap(({ kind, address }) => (wanted === undefined || kind === wanted ? [address.text] : []));
  const listed = (name: string, wanted?: PortAddress['kind']): readonly ServiceReason[] => {
    const [old, fresh] = [textsOf(before, wanted), textsOf(after, wanted)];
    return listReason(
      name,
      to.hidesAddresses ? old.filter((each) => fresh.includes(each)) : old,
      from.hidesAddresses ? fresh.filter((each) => old.includes(each)) : fresh,
    );
  };
  // An address of unknown kind on one side may have any kind on the other, so kinds are not compared.
  if ([...before, ...after].some(({ kind }) => kind === 'unknown')) return listed('addresses');
  // Every Service port that kube-proxy programs has a cluster IP.
  const clusterIPs = from.clusterIP && to.clusterIP ? ([from.clusterIP.text, to.clusterIP.text] as const) : undefined;
  return [
    ...(clusterIPs ? fieldReason('clusterIP', ...clusterIPs) : []),
    ...listed('externalIPs', 'external-ip'),
    ...listed('loadBalancerIPs', 'load-balancer-ip'),
  ];
}
