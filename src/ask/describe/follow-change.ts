import { portAddresses, type ShownPort } from '../../cluster/model.ts';
import { findGonePorts, findStaleFlows, forgottenFlows } from '../../cluster/stale-flows.ts';
import type { TrackedFlow } from '../../kernel/conntrack.ts';
import type { Family } from '../../kernel/family.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { behavioursOf, type Release } from '../../kube-proxy/releases.ts';

/** What a release's kube-proxy does with UDP flows when a node's Services become those of manifests. */
export interface FlowChange {
  readonly release: Release;
  /** The flows that end without a serving endpoint, or may do so. The groups with the most flows come first. */
  readonly groups: readonly {
    readonly port: ShownPort | undefined;
    readonly destination: string;
    readonly endpoint: string;
    readonly kubeProxy: FlowFate;
    readonly flows: number;
  }[];
}

/** Unknown if the fate depends on which Service port had the address before, and the dump does not show that port. */
export type FlowFate = 'forgets' | 'keeps' | 'unknown';

export interface ChangedServices {
  readonly before: readonly ShownPort[];
  readonly after: readonly ShownPort[];
  readonly release: Release;
  /** Whether the dump shows all Service ports in a family, with names. */
  readonly isBeforeKnown: (family: Family) => boolean;
  readonly isToNode: (flow: TrackedFlow) => boolean;
}

/** Follows UDP flows through a change of Services, as the release's kube-proxy would (see forgottenFlows). */
export function followChange(flows: readonly TrackedFlow[], services: ChangedServices): FlowChange {
  const { release } = services;
  const fateOf = fateFinder(flows, services);
  const groups = new Map<string, FlowChange['groups'][number]>();
  for (const flow of flows) {
    const found = fateOf(flow);
    if (!found) continue;
    const { port, kubeProxy } = found;
    const [destination, endpoint] = [formatSocketAddress(flow.destination), formatSocketAddress(flow.answers)];
    const key = [kubeProxy, destination, endpoint].join(' ');
    const before = groups.get(key)?.flows ?? 0;
    groups.set(key, { port, destination, endpoint, kubeProxy, flows: before + 1 });
  }
  return { release, groups: [...groups.values()].sort((a, b) => b.flows - a.flows) };
}

/** Returns a function that finds a flow's fate. The fate is undefined if the flow continues to an endpoint, or goes to no Service. */
function fateFinder(flows: readonly TrackedFlow[], services: ChangedServices) {
  const { before, after, release, isBeforeKnown, isToNode } = services;
  const rules = forgottenFlows(behavioursOf(release));
  const gone = findGonePorts(
    before.filter(({ family }) => isBeforeKnown(family)),
    after,
  );
  const portsOf = (found: ReturnType<typeof findStaleFlows>) => new Map(found.map(({ flow, port }) => [flow, port]));
  const forgotten = portsOf(findStaleFlows(flows, { ports: after, gone }, { ...rules, isToNode }));
  // If all former ports count as gone, flows to addresses that a port has lost are included.
  const everything = { withoutEndpoints: true, ofGone: 'to-addresses', isToNode } as const;
  const stale = portsOf(findStaleFlows(flows, { ports: after, gone: before }, everything));
  const live = portsByFront(after);
  const former = portsByFront(before);
  /** Reports whether the fate would differ if a removed port had had the address. */
  const dependsOnBefore = (flow: TrackedFlow): boolean => {
    if (rules.ofGone === 'none' || isBeforeKnown(flow.family)) return false;
    return rules.ofGone === 'to-cluster-ip' || !live.has(formatSocketAddress(flow.destination));
  };
  return (flow: TrackedFlow): { readonly port: ShownPort | undefined; readonly kubeProxy: FlowFate } | undefined => {
    const byForgetting = forgotten.get(flow);
    if (byForgetting) return { port: byForgetting, kubeProxy: 'forgets' };
    const nodePort = nodePortOf(flow);
    const isOfNodePort = isTranslated(flow) && isToNode(flow) && !former.has(formatSocketAddress(flow.destination));
    if (isOfNodePort && live.has(nodePort)) return undefined;
    const byNodePort = isOfNodePort ? former.get(nodePort) : undefined;
    if (byNodePort) return { port: byNodePort, kubeProxy: 'keeps' };
    const port = stale.get(flow);
    if (dependsOnBefore(flow) && (port ?? isTranslated(flow))) return { port, kubeProxy: 'unknown' };
    return port && { port, kubeProxy: 'keeps' };
  };
}

function portsByFront(ports: readonly ShownPort[]): ReadonlyMap<string, ShownPort> {
  const fronts = new Map<string, ShownPort>();
  for (const shown of ports.filter(({ protocol }) => protocol === 'UDP')) {
    const { family, port = 0, nodePort } = shown;
    for (const { address } of portAddresses(shown)) fronts.set(formatSocketAddress({ address, port }), shown);
    if (nodePort) fronts.set(`${family} ${nodePort}`, shown);
  }
  return fronts;
}

function nodePortOf({ family, destination }: TrackedFlow): string {
  return `${family} ${destination.port}`;
}

/** Reports whether a flow goes to another destination than its client sent it to. */
export function isTranslated({ destination, answers }: TrackedFlow): boolean {
  return formatSocketAddress(destination) !== formatSocketAddress(answers);
}
