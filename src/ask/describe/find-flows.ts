import { portAddresses, type ShownPort } from '../../cluster/model.ts';
import { deleteArguments, findGonePorts, findStaleFlows, forgottenFlows } from '../../cluster/stale-flows.ts';
import { showsServices } from '../../dumps/coverage.ts';
import type { TrackedFlow } from '../../kernel/conntrack.ts';
import type { Family } from '../../kernel/address.ts';
import { tableNames } from '../../kernel/iptables/iptables.ts';
import { addressesOn } from '../../kernel/link/link.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import type { KernelState } from '../../kernel/state.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { behavioursOf, type Release } from '../../kube-proxy/releases.ts';
import type { DumpedSnapshot } from '../../snapshot/snapshot.ts';

export interface StaleGroup {
  /** Undefined if the Service of the flows no longer exists. */
  readonly port: ShownPort | undefined;
  readonly destination: string;
  readonly endpoint: string;
  /** `untranslated`: the flows began before the Service had rules on the node. */
  readonly because: 'not-serving' | 'no-rule' | 'untranslated' | 'no-service';
  flows: number;
  unanswered: number;
  /** A command that deletes these flows and no others. */
  readonly command: string;
}

/** Listed UDP flows that lead to no serving endpoint. TCP and SCTP connections are left out, because kube-proxy does not delete them. */
export interface FlowFindings {
  readonly listed: number;
  readonly stale: readonly StaleGroup[];
  /** What happens to the flows if the Services in the manifests replace the dump's. Undefined without manifests. */
  readonly change: FlowChange | undefined;
}

/**
 * Finds a dump's stale flows. Returns undefined if the dump lists no flows. Manifests take precedence over rules, because rules do not show
 * whether endpoints are ready.
 */
export function findFlows(dump: DumpedSnapshot): FlowFindings | undefined {
  const { flows, state, coverage, named, release } = dump;
  if (!flows) return undefined;
  const known = named?.servicePorts ?? [];
  const { mode, ports: shown } = dump.shown;
  const showsAll = (family: Family): boolean => mode !== undefined && showsServices(coverage, mode, family);
  const namesPorts = mode !== undefined && modeFacts[mode].namesServices !== 'none';
  const own = addressesOn(state.links);
  const isOwn = (flow: TrackedFlow) => own.has(flow.destination.address.text);
  const isToNode = (flow: TrackedFlow) => isTranslated(flow) || isOwn(flow);
  const udp = flows.filter(({ protocol }) => protocol === 'udp');
  const ports = [...shown, ...known];
  const fromManifests = new Set<ShownPort>(known);
  const groups = new Map<string, StaleGroup>();
  const add = (flow: TrackedFlow, port: StaleGroup['port'], because: StaleGroup['because']): void => {
    const command = ['conntrack', ...deleteArguments(flow)].join(' ');
    const [destination, endpoint] = [formatSocketAddress(flow.destination), formatSocketAddress(flow.answers)];
    const group = groups.get(command) ?? { port, destination, endpoint, because, flows: 0, unanswered: 0, command };
    groups.set(command, group);
    group.flows++;
    if (!flow.isReplied) group.unanswered++;
  };
  for (const { flow, port } of findStaleFlows(
    udp,
    { ports },
    { withoutEndpoints: true, ofGone: 'none', isToNode, isOwn },
  )) {
    const reason = fromManifests.has(port) ? 'not-serving' : 'no-rule';
    add(flow, port, isTranslated(flow) ? reason : 'untranslated');
  }
  const leadsSomewhere = leadsToPorts(ports, state);
  for (const flow of udp) {
    if (isTranslated(flow) && showsAll(flow.family) && !leadsSomewhere(flow)) add(flow, undefined, 'no-service');
  }
  const areNamed = (family: Family) => shown.every((port) => port.family !== family || port.service !== undefined);
  const isBeforeKnown = (family: Family): boolean => namesPorts && showsAll(family) && areNamed(family);
  const change = release && followChange(udp, { before: shown, after: known, release, isBeforeKnown, isToNode });
  return { listed: udp.length, stale: [...groups.values()].sort((a, b) => b.flows - a.flows), change };
}

function leadsToPorts(ports: readonly ShownPort[], state: KernelState): (flow: TrackedFlow) => boolean {
  const targets = new Set(ports.flatMap(({ endpoints = [] }) => endpoints.map(({ label }) => label)));
  const fronts = new Set<string>();
  for (const shown of ports) {
    for (const { address } of portAddresses(shown)) fronts.add(formatSocketAddress({ address, port: shown.port ?? 0 }));
    if (shown.nodePort) fronts.add(String(shown.nodePort));
  }
  for (const tables of Object.values(state.iptables)) {
    for (const chain of tableNames.flatMap((name) => [...(tables[name]?.values() ?? [])])) {
      for (const arg of chain.rules.flatMap(({ args }) => args)) {
        if (arg.kind !== 'jump' || arg.target.kind !== 'dnat') continue;
        const { address, port } = arg.target;
        targets.add(port === undefined ? address.text : formatSocketAddress({ address, port }));
      }
    }
  }
  return ({ destination, answers }) =>
    fronts.has(formatSocketAddress(destination)) ||
    fronts.has(String(destination.port)) ||
    targets.has(formatSocketAddress(answers)) ||
    targets.has(answers.address.text);
}

/** What a release's kube-proxy does with UDP flows when the Services in the manifests replace a node's Services. */
export interface FlowChange {
  readonly release: Release;
  /** Flows that lead, or may lead, to no serving endpoint. The groups with the most flows come first. */
  readonly groups: readonly {
    readonly port: ShownPort | undefined;
    readonly destination: string;
    readonly endpoint: string;
    readonly kubeProxy: FlowFate;
    readonly flows: number;
  }[];
}

/** `unknown`: the fate depends on which Service port had the address before, and the dump does not show that port. */
export type FlowFate = 'forgets' | 'keeps' | 'unknown';

interface ChangedServices {
  readonly before: readonly ShownPort[];
  readonly after: readonly ShownPort[];
  readonly release: Release;
  /** Whether the dump shows all of the family's Service ports, with their names. */
  readonly isBeforeKnown: (family: Family) => boolean;
  readonly isToNode: (flow: TrackedFlow) => boolean;
}

/** Follows UDP flows through a change of Services, as the release's kube-proxy would (see forgottenFlows). */
function followChange(flows: readonly TrackedFlow[], services: ChangedServices): FlowChange {
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

/** Returns a function that finds a flow's fate: undefined if the flow continues to an endpoint or does not go to a Service. */
function fateFinder(flows: readonly TrackedFlow[], services: ChangedServices) {
  const { before, after, release, isBeforeKnown, isToNode } = services;
  const rules = forgottenFlows(behavioursOf(release));
  const gone = findGonePorts(
    before.filter(({ family }) => isBeforeKnown(family)),
    after,
  );
  const portsOf = (found: ReturnType<typeof findStaleFlows>) => new Map(found.map(({ flow, port }) => [flow, port]));
  const forgotten = portsOf(findStaleFlows(flows, { ports: after, gone }, { ...rules, isToNode }));
  // Also covers flows to addresses that a remaining port has lost, because all former ports count as gone.
  const everything = { withoutEndpoints: true, ofGone: 'to-addresses', isToNode } as const;
  const stale = portsOf(findStaleFlows(flows, { ports: after, gone: before }, everything));
  const live = portsByFront(after);
  const former = portsByFront(before);
  /** Reports whether the fate would be different if the flow's address had belonged to a removed port. */
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

/** Reports whether NAT sends a flow to a destination other than the one its client asked for. */
function isTranslated({ destination, answers }: TrackedFlow): boolean {
  return formatSocketAddress(destination) !== formatSocketAddress(answers);
}
