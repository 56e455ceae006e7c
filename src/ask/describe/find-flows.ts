import { portAddresses, type ShownPort } from '../../cluster/model.ts';
import { deleteArguments, findStaleFlows } from '../../cluster/stale-flows.ts';
import { addressesOn } from '../../kernel/link/link.ts';
import { showsServices } from '../../dumps/coverage.ts';
import type { TrackedFlow } from '../../kernel/conntrack.ts';
import type { Family } from '../../kernel/family.ts';
import { tableNames } from '../../kernel/iptables/iptables.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import type { KernelState } from '../../kernel/state.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import type { DumpedSnapshot } from '../../snapshot/snapshot.ts';
import { followChange, isTranslated, type FlowChange } from './follow-change.ts';

export interface StaleGroup {
  /** Undefined if the flows' Service no longer exists. */
  readonly port: ShownPort | undefined;
  readonly destination: string;
  readonly endpoint: string;
  /** `untranslated`: the flows began before the Service had rules on the node. */
  readonly because: 'not-serving' | 'no-rule' | 'untranslated' | 'no-service';
  flows: number;
  unanswered: number;
  /** Deletes these flows and no others. */
  readonly command: string;
}

/** Listed UDP flows that lead to no serving endpoint. TCP and SCTP are left out, because kube-proxy does not delete their connections. */
export interface FlowFindings {
  readonly listed: number;
  readonly stale: readonly StaleGroup[];
  /** The fate of flows if the dump's Services become those of the manifests; undefined without manifests. */
  readonly change: FlowChange | undefined;
}

/**
 * Finds a dump's stale flows; undefined if it lists no flows. Manifests override rules, because rules do not show whether endpoints are
 * ready.
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
