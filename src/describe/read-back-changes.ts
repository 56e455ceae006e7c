import { groupBy } from '../cluster/group-by.ts';
import { coverForServices } from '../diff/foreign-items.ts';
import type { ReadChanges, ReadServices } from '../diff/diff-sides.ts';
import type { KernelChange } from '../diff/changes/kernel-change.ts';
import { affinity, type ServicePortChange } from '../diff/service-changes.ts';
import { diffEndpointStates, field, list, type EndpointState, type ServiceReason } from '../diff/service-reasons.ts';
import { classifyServers } from '../diff/virtual-servers.ts';
import type { Side } from '../diff/compared-side.ts';
import type { Owners } from '../diff/changes/owners.ts';
import type { PortAddress, PortFacts } from '../diff/port-facts.ts';
import { decompile } from './decompile.ts';
import type { ShownPort } from './shown-port.ts';
import { parseServiceChain } from '../kube-proxy/chain-names.ts';

/**
 * Compares two sides Service port by Service port by what their states show, as where one of them is a dump: they do not show which
 * Services it came from. What a state does not show of a port is no difference.
 */
export const diffDecompiled: ReadServices = (from, to, owners): ReadChanges => {
  const belongingOf = classifyServers(from, to);
  const read = (side: Side, own: Owners): ReadonlyMap<string, readonly ShownPort[]> => {
    const { ports } = decompile(coverForServices(side), own, belongingOf, side.coverage);
    return groupBy(ports, ({ name }) => name);
  };
  const before = read(from, owners.from);
  const after = read(to, owners.to);
  const changes: ServicePortChange[] = [];
  const compared = { all: 0, withoutEndpoints: 0 };
  for (const [label, ports] of after) {
    const reasons = new Map<string, ServiceReason>();
    for (const port of ports) {
      const old = before.get(label)?.find(({ family }) => family === port.family);
      if (!old) continue;
      compared.all++;
      if (!old.endpoints || !port.endpoints) compared.withoutEndpoints++;
      // What both families say alike is said once.
      for (const reason of diffPort(old, port)) reasons.set(JSON.stringify(reason), reason);
    }
    if (reasons.size === 0) continue;
    changes.push({
      label,
      formerLabel: undefined,
      change: 'changed',
      reasons: [...reasons.values()],
      place: undefined,
    });
  }
  return { changes, compared, shown: { from: factsOf(before), to: factsOf(after) }, follows };
};

function factsOf(ports: ReadonlyMap<string, readonly ShownPort[]>): ReadonlyMap<string, readonly PortFacts[]> {
  return new Map(
    [...ports].map(([label, all]) => [
      label,
      all.map(({ name: _, fallback: __, masquerade: ___, endpoints, ...port }) => ({
        ...port,
        endpoints: endpoints?.length,
      })),
    ]),
  );
}

const addressLists: { readonly [K in PortAddress['kind']]: string } = {
  'cluster-ip': 'cluster IPs',
  'external-ip': 'external IPs',
  'load-balancer-ip': 'load balancer addresses',
  unknown: 'addresses',
};

function diffPort(from: ShownPort, to: ShownPort): readonly ServiceReason[] {
  // Addresses whose kind one side does not show may be of any on the other.
  const isUnknown = [from, to].some(({ addresses }) => addresses.some(({ kind }) => kind === 'unknown'));
  const kinds = isUnknown ? (['unknown'] as const) : (['cluster-ip', 'external-ip', 'load-balancer-ip'] as const);
  const ofKind = ({ addresses }: ShownPort, wanted: PortAddress['kind']): readonly string[] =>
    addresses.filter(({ kind }) => isUnknown || kind === wanted).map(({ address }) => address);
  return [
    ...kinds.flatMap((kind) => list(addressLists[kind], ofKind(from, kind), ofKind(to, kind))),
    ...known('port', from.port, to.port),
    ...known('node port', from.nodePort, to.nodePort),
    ...known('internalTrafficPolicy', from.internalTrafficPolicy, to.internalTrafficPolicy),
    ...known('externalTrafficPolicy', from.externalTrafficPolicy, to.externalTrafficPolicy),
    ...known('healthCheckNodePort', from.healthCheckNodePort, to.healthCheckNodePort),
    ...known('scheduler', from.scheduler, to.scheduler),
    // Without endpoints, iptables mode has no rules for them.
    ...(from.sourceRanges.length > 0 && to.sourceRanges.length > 0
      ? list('loadBalancerSourceRanges', from.sourceRanges, to.sourceRanges)
      : []),
    ...diffEndpoints(from, to),
  ];
}

/** A value that both sides show. */
function known(name: string, from: string | number | undefined, to: string | number | undefined) {
  return from === undefined || to === undefined ? [] : field(name, String(from), String(to));
}

/** A kernel has no endpoints but those that are used. */
const usedEndpoint: EndpointState = { condition: 'ready', node: undefined, hints: [], used: true };

function diffEndpoints(from: ShownPort, to: ShownPort): readonly ServiceReason[] {
  if (!from.endpoints || !to.endpoints) return [];
  const statesOf = (endpoints: NonNullable<ShownPort['endpoints']>) =>
    new Map(endpoints.map(({ endpoint }) => [endpoint, usedEndpoint]));
  // Without an endpoint no rule shows the affinity.
  const isShown = from.endpoints.length > 0 && to.endpoints.length > 0;
  return [
    ...(isShown ? field('sessionAffinity', affinity(from.affinitySeconds), affinity(to.affinitySeconds)) : []),
    ...diffEndpointStates(statesOf(from.endpoints), statesOf(to.endpoints)),
  ];
}

/**
 * Whether a change in the kernel only follows from these reasons: the chain of an endpoint that was added or removed,
 * and the rules that choose among the endpoints.
 */
function follows({ change, rules }: KernelChange, reasons: readonly ServiceReason[]): boolean {
  if (!rules || rules.shared || rules.reordered) return false;
  const endpoints = new Set(
    reasons.flatMap(({ kind, endpoint }) => (kind === 'endpoint-changed' ? [] : (endpoint ?? []))),
  );
  if (endpoints.size === 0) return false;
  const edited = [...rules.added, ...rules.removed];
  const kind = parseServiceChain(rules.chain)?.kind;
  if (kind === 'cluster' || kind === 'local') {
    return change === 'changed' && edited.every(leadsToEndpoint);
  }
  if (kind !== 'endpoint' || change === 'changed') return false;
  return edited.some((rule) => endpoints.has(/ --to-destination (\S+)/.exec(rule)?.[1] ?? ''));
}

function leadsToEndpoint(rule: string): boolean {
  return parseServiceChain(/ -j (\S+)$/.exec(rule)?.[1] ?? '')?.kind === 'endpoint';
}
