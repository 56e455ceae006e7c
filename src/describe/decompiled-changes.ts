import { coverForServices } from '../diff/belonging.ts';
import type { ReadChanges, ReadServices } from '../diff/diff-sides.ts';
import type { KernelChange } from '../diff/changes/kernel-change.ts';
import type { EndpointState, ServicePortChange, ServiceReason } from '../diff/service-changes.ts';
import { classifyServers } from '../diff/server-belonging.ts';
import type { Side } from '../diff/side.ts';
import type { Owners } from '../diff/changes/owners.ts';
import type { PortFacts } from '../diff/port-facts.ts';
import { decompile } from './decompile.ts';
import type { DecompiledPort } from './decompiled-port.ts';

/**
 * Compares two sides Service port by Service port by what their states show, as where one of them is a dump: they do not tell which
 * Services it came from. What a state does not show of a port is no difference.
 */
export const diffDecompiled: ReadServices = (from, to, owners): ReadChanges => {
  const belongingOf = classifyServers(from, to);
  const read = (side: Side, own: Owners): ReadonlyMap<string, readonly DecompiledPort[]> => {
    const { ports } = decompile(coverForServices(side), own, belongingOf, side.coverage);
    const byName = new Map<string, DecompiledPort[]>();
    for (const port of ports) {
      const known = byName.get(port.name);
      if (known) known.push(port);
      else byName.set(port.name, [port]);
    }
    return byName;
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

function factsOf(ports: ReadonlyMap<string, readonly DecompiledPort[]>): ReadonlyMap<string, readonly PortFacts[]> {
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

function diffPort(from: DecompiledPort, to: DecompiledPort): readonly ServiceReason[] {
  const kinds = ['cluster-ip', 'external-ip', 'load-balancer-ip', 'unknown'] as const;
  const names = {
    'cluster-ip': 'cluster IPs',
    'external-ip': 'external IPs',
    'load-balancer-ip': 'load balancer addresses',
    unknown: 'addresses',
  } as const;
  // Whose kind one side does not tell may be of any on the other.
  const isTold = [from, to].every(({ addresses }) => addresses.every(({ kind }) => kind !== 'unknown'));
  const all = ({ addresses }: DecompiledPort): readonly string[] => addresses.map(({ address }) => address);
  const ofKind = (port: DecompiledPort, kind: (typeof kinds)[number]): readonly string[] =>
    port.addresses.filter((each) => each.kind === kind).map(({ address }) => address);
  return [
    ...(isTold
      ? kinds.flatMap((kind) => list(names[kind], ofKind(from, kind), ofKind(to, kind)))
      : list(names.unknown, all(from), all(to))),
    ...field('port', from.port, to.port),
    ...field('node port', from.nodePort, to.nodePort),
    ...field('internalTrafficPolicy', from.internalTrafficPolicy, to.internalTrafficPolicy),
    ...field('externalTrafficPolicy', from.externalTrafficPolicy, to.externalTrafficPolicy),
    ...field('healthCheckNodePort', from.healthCheckNodePort, to.healthCheckNodePort),
    ...field('scheduler', from.scheduler, to.scheduler),
    // Without endpoints, iptables mode has no rules for them.
    ...(from.sourceRanges.length > 0 && to.sourceRanges.length > 0
      ? list('loadBalancerSourceRanges', from.sourceRanges, to.sourceRanges)
      : []),
    ...diffEndpoints(from, to),
  ];
}

function field(
  name: string,
  from: string | number | undefined,
  to: string | number | undefined,
): readonly ServiceReason[] {
  if (from === undefined || to === undefined || from === to) return [];
  return [{ kind: 'field', field: name, from: String(from), to: String(to) }];
}

function list(name: string, from: readonly string[], to: readonly string[]): readonly ServiceReason[] {
  const added = to.filter((item) => !from.includes(item));
  const removed = from.filter((item) => !to.includes(item));
  return added.length + removed.length === 0 ? [] : [{ kind: 'list', field: name, added, removed }];
}

/** A kernel has no endpoints but those that are used. */
const usedEndpoint: EndpointState = { condition: 'ready', node: undefined, hints: [], used: true };

function diffEndpoints(from: DecompiledPort, to: DecompiledPort): readonly ServiceReason[] {
  if (!from.endpoints || !to.endpoints) return [];
  const before = new Set(from.endpoints.map(({ endpoint }) => endpoint));
  const after = new Set(to.endpoints.map(({ endpoint }) => endpoint));
  const affinity = (port: DecompiledPort): string =>
    port.affinitySeconds === undefined ? 'None' : `ClientIP for ${port.affinitySeconds} s`;
  // Without an endpoint no rule shows the affinity.
  const isShown = before.size > 0 && after.size > 0;
  return [
    ...(isShown ? field('sessionAffinity', affinity(from), affinity(to)) : []),
    ...(before.size === after.size ? [] : [{ kind: 'scaled', from: before.size, to: after.size } as const]),
    ...[...after]
      .filter((endpoint) => !before.has(endpoint))
      .map((endpoint) => ({ kind: 'endpoint-added', endpoint, state: usedEndpoint }) as const),
    ...[...before]
      .filter((endpoint) => !after.has(endpoint))
      .map((endpoint) => ({ kind: 'endpoint-removed', endpoint, state: usedEndpoint }) as const),
  ];
}

const endpointRule = / -j KUBE-SEP-\w+$/;

/**
 * Whether a change in the kernel is nothing but what these reasons come to: the chain of an endpoint that was added or removed,
 * and the rules that choose among the endpoints.
 */
function follows(change: KernelChange, reasons: readonly ServiceReason[]): boolean {
  if (change.kind !== 'chain' || change.shared || change.reordered) return false;
  const endpoints = new Set(
    reasons.flatMap((reason) =>
      reason.kind === 'endpoint-added' || reason.kind === 'endpoint-removed' ? [reason.endpoint] : [],
    ),
  );
  if (endpoints.size === 0) return false;
  const rules = [...change.added, ...change.removed];
  if (/^KUBE-(SVC|SVL)-/.test(change.chain)) {
    return change.change === 'changed' && rules.every((rule) => endpointRule.test(rule));
  }
  if (!change.chain.startsWith('KUBE-SEP-') || change.change === 'changed') return false;
  return rules.some((rule) => endpoints.has(/ --to-destination (\S+)/.exec(rule)?.[1] ?? ''));
}
