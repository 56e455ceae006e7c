import type { ServiceInfo } from '../cluster/model.ts';
import { findDumpListeners } from '../dumps/coverage.ts';
import { familyNames } from '../kernel/family.ts';
import { isKubeProxyTable } from '../kube-proxy/nft-names.ts';
import {
  describeListeners,
  findLocalhostHandling,
  findNodePortListeners,
  type NodePort,
} from '../kube-proxy/node-port-listeners.ts';
import { changeOf, turn, type ChangeKind } from './changes/kernel-change.ts';
import { itemOf, pairUp } from '../kernel/diff-by-key.ts';
import type { Side } from './compared-side.ts';
import type { PortAddress, PortFacts } from './port-facts.ts';

/** One reason why a Service port differs. */
export interface ServiceReason {
  readonly kind:
    | keyof typeof wholeReasons
    | 'behaviour'
    | 'facts'
    | 'port-renamed'
    | 'programmed'
    | 'field'
    | 'list'
    | 'scaled'
    | `endpoint-${ChangeKind}`;
  /** In the words of Kubernetes, on one line. */
  readonly text: string;
  /** What JSON has of it. */
  readonly fields: { readonly families?: readonly PortFacts[]; readonly [field: string]: unknown };
  /** "ip:port", of an endpoint. */
  readonly endpoint?: string;
}

/** The whole Service, or one port of it. */
const wholeReasons = {
  'service-added': 'Service added',
  'service-removed': 'Service removed',
  'port-added': 'port added to the Service',
  'port-removed': 'port removed from the Service',
} as const;

/** A reason that is about all of a Service or of a port. */
export function whole(kind: keyof typeof wholeReasons): ServiceReason {
  return { kind, text: wholeReasons[kind], fields: {} };
}

type Skip = ServiceInfo['skipped'] | 'absent';

/** kube-proxy programs nothing for it on one side: why, there. */
export function programmed(from: Skip, to: Skip): readonly ServiceReason[] {
  const words = (skip: Skip) => (skip === undefined ? 'programmed by kube-proxy' : skipWords[skip]);
  return from === to ? [] : [{ kind: 'programmed', text: `${words(from)} → ${words(to)}`, fields: { from, to } }];
}

const skipWords: { readonly [S in Exclude<Skip, undefined>]: string } = {
  headless: 'headless (clusterIP: None)',
  'external-name': 'type ExternalName',
  'no-cluster-ip': 'without a cluster IP',
  absent: 'absent',
};

/** A value that differs; '' for none. */
export function field(name: string, from: string, to: string): readonly ServiceReason[] {
  if (from === to) return [];
  return [{ kind: 'field', text: `${name} ${turn(from, to)}`, fields: { field: name, from, to } }];
}

/** What a list has on one side alone; nothing where both sides have the same. */
export function list(name: string, from: readonly string[], to: readonly string[]): readonly ServiceReason[] {
  const [before, after] = [new Set(from), new Set(to)];
  const added = to.filter((item) => !before.has(item));
  const removed = from.filter((item) => !after.has(item));
  if (added.length + removed.length === 0) return [];
  const items = [...added.map((item) => `+ ${item}`), ...removed.map((item) => `− ${item}`)];
  return [{ kind: 'list', text: `${name}: ${items.join(', ')}`, fields: { field: name, added, removed } }];
}

/** How many endpoints there are. */
export function scaled(from: number, to: number): readonly ServiceReason[] {
  return from === to ? [] : [{ kind: 'scaled', text: `endpoints ${from} → ${to}`, fields: { from, to } }];
}

/** What there is to say of an endpoint on one side. */
export interface EndpointState {
  readonly condition: 'ready' | 'not ready' | 'terminating' | 'terminating, not serving';
  readonly node: string | undefined;
  readonly zone?: string | undefined;
  /** Zones and nodes that are to use it, by its hints. */
  readonly hints: readonly string[];
  /** Whether the node sends it any traffic. */
  readonly used: boolean;
}

/** By "ip:port". */
type EndpointStates = ReadonlyMap<string, EndpointState>;

/** How many endpoints there are, and which come, go and change. */
export function diffEndpointStates(before: EndpointStates, after: EndpointStates): readonly ServiceReason[] {
  const reasons = [...scaled(before.size, after.size)];
  for (const pair of pairUp(before, after, ([name]) => name)) {
    const [endpoint, state] = itemOf(pair);
    const [from, to] = [pair.from?.[1], pair.to?.[1]];
    if (from && to && JSON.stringify(from) === JSON.stringify(to)) continue;
    const change = changeOf(from, to);
    const words = from && to ? describeTurn(from, to).join(', ') : describeOneSided(state, change);
    const fields = from && to ? { endpoint, from, to } : { endpoint, state };
    reasons.push({ kind: `endpoint-${change}`, text: `endpoint ${endpoint} ${words}`, fields, endpoint });
  }
  return reasons;
}

function describeOneSided({ condition, node, used }: EndpointState, change: ChangeKind): string {
  if (change === 'removed') return node === undefined ? 'removed' : `removed (was on ${node})`;
  const parts = [
    ...(condition === 'ready' ? [] : [condition]),
    ...(node === undefined ? [] : [`on ${node}`]),
    ...(used || condition !== 'ready' ? [] : ['not used on this node']),
  ];
  return parts.length === 0 ? 'added' : `added (${parts.join(', ')})`;
}

function describeTurn(from: EndpointState, to: EndpointState): readonly string[] {
  const hints = turn(from.hints.join(' '), to.hints.join(' '));
  return [
    ...(from.condition === to.condition ? [] : [`${to.condition} (was ${from.condition})`]),
    ...(from.node === to.node ? [] : [`now on ${to.node ?? 'no node'} (was on ${from.node ?? 'no node'})`]),
    ...(from.zone === to.zone ? [] : [`zone ${turn(from.zone ?? '', to.zone ?? '')}`]),
    ...(from.hints.join() === to.hints.join() ? [] : [`hints ${hints}`]),
    ...(from.used === to.used ? [] : [to.used ? 'now used on this node' : 'no longer used on this node']),
  ];
}

/**
 * What becomes of node ports that both sides have where they listen for them on other addresses, as those of two modes do:
 * a number is the same in the manifests, and stops to answer on some addresses of the node.
 */
export function findNodePortReasons(
  from: Side,
  to: Side,
): (before: readonly PortFacts[] | undefined, after: readonly PortFacts[] | undefined) => readonly ServiceReason[] {
  const [old, fresh] = [wordsOfNodePorts(from), wordsOfNodePorts(to)];
  return (before = [], after = []) => {
    const kept = after.filter(
      ({ family, protocol, nodePort }) =>
        nodePort !== undefined &&
        before.some((each) => each.family === family && each.protocol === protocol && each.nodePort === nodePort),
    );
    const isDual = new Set(kept.map(({ family }) => family)).size > 1;
    const reasons = kept.flatMap(({ family, protocol, nodePort: port }) => {
      if (port === undefined) return [];
      const name = `${isDual ? `${familyNames[family]} ` : ''}node port ${port}`;
      const [one, other] = [old({ family, protocol, port }), fresh({ family, protocol, port })];
      return (['listens on', 'on localhost:'] as const).flatMap((what) => {
        const [was, is] = [one[what], other[what]];
        return was === undefined || is === undefined ? [] : field(`${name} ${what}`, was, is);
      });
    });
    return uniqueReasons(reasons);
  };
}

/** Describes the addresses that a node port listens on, as a side shows them; undefined if it does not show them. */
function wordsOfNodePorts({ kind, state, coverage }: Side) {
  const find = kind === 'dump' ? findDumpListeners(state, coverage) : findNodePortListeners(state);
  // Only the rules of nftables mode show how connections on localhost end.
  const isNft = state.nftables.some(({ name }) => isKubeProxyTable(name));
  const onLocalhost = isNft ? findLocalhostHandling(state) : undefined;
  return (nodePort: NodePort) => {
    const listeners = find(nodePort);
    return {
      'listens on': listeners.kind === 'unknown' ? undefined : describeListeners(listeners),
      'on localhost:': onLocalhost?.(nodePort),
    };
  };
}

/** Drops reasons that repeat another, as those of both families of a Service port may. */
export function uniqueReasons(reasons: readonly ServiceReason[]): readonly ServiceReason[] {
  return reasons.length < 2 ? reasons : [...new Map(reasons.map((each) => [JSON.stringify(each), each])).values()];
}

/** The facts that are compared besides protocol, addresses, session affinity, source ranges and endpoints. */
const comparedFacts = [
  'port',
  'nodePort',
  'internalTrafficPolicy',
  'externalTrafficPolicy',
  'healthCheckNodePort',
  'scheduler',
  'forwarding',
] as const;

/** The facts of a Service that sets nothing else. */
const usualFacts: { readonly [K in keyof PortFacts]?: string } = {
  externalTrafficPolicy: 'Cluster',
  forwarding: 'masquerade',
};

/** The differences of two Service ports. `isRead`: read back from kernels, so what is not shown is not a difference. */
export function diffFacts(from: PortFacts, to: PortFacts, isRead: boolean): readonly ServiceReason[] {
  const textOf = (port: PortFacts, name: (typeof comparedFacts)[number]) =>
    String(port[name] ?? usualFacts[name] ?? '');
  const isShown = (one: unknown, other: unknown) => !isRead || (one !== undefined && other !== undefined);
  // Without endpoints, no rule shows session affinity.
  const showsAffinity = !isRead || ((from.endpoints ?? 0) > 0 && (to.endpoints ?? 0) > 0);
  // Without endpoints, iptables mode has no rules for source ranges.
  const showsRanges = !isRead || (from.sourceRanges.length > 0 && to.sourceRanges.length > 0);
  return [
    // An excerpt of the rules may not show the protocol.
    ...(isRead ? [] : field('protocol', from.protocol, to.protocol)),
    ...diffAddresses(from.addresses, to.addresses),
    ...comparedFacts.flatMap((name) =>
      isShown(from[name], to[name]) ? field(name, textOf(from, name), textOf(to, name)) : [],
    ),
    ...(showsAffinity ? field('sessionAffinity', affinityOf(from), affinityOf(to)) : []),
    ...(showsRanges ? list('loadBalancerSourceRanges', from.sourceRanges, to.sourceRanges) : []),
  ];
}

function affinityOf({ affinitySeconds }: PortFacts): string {
  return affinitySeconds === undefined ? 'None' : `ClientIP for ${affinitySeconds} s`;
}

function diffAddresses(from: readonly PortAddress[], to: readonly PortAddress[]): readonly ServiceReason[] {
  const textsOf = (addresses: readonly PortAddress[], wanted?: PortAddress['kind']): readonly string[] =>
    addresses.flatMap(({ kind, address }) => (wanted === undefined || kind === wanted ? [address] : []));
  // An address of unknown kind on one side may be of any kind on the other.
  if ([...from, ...to].some(({ kind }) => kind === 'unknown')) return list('addresses', textsOf(from), textsOf(to));
  return [
    ...field('clusterIP', textsOf(from, 'cluster-ip').join(', '), textsOf(to, 'cluster-ip').join(', ')),
    ...list('externalIPs', textsOf(from, 'external-ip'), textsOf(to, 'external-ip')),
    ...list('load balancer addresses', textsOf(from, 'load-balancer-ip'), textsOf(to, 'load-balancer-ip')),
  ];
}
