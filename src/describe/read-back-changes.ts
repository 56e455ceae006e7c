import { groupBy } from '../cluster/group-by.ts';
import { coverForServices } from '../diff/foreign-items.ts';
import type { ReadChanges, ReadServices } from '../diff/diff-sides.ts';
import type { KernelChange } from '../diff/changes/kernel-change.ts';
import type { ServicePortChange } from '../diff/service-changes.ts';
import {
  diffEndpointStates,
  diffFacts,
  uniqueReasons,
  type EndpointState,
  type ServiceReason,
} from '../diff/service-reasons.ts';
import { classifyServers } from '../diff/virtual-servers.ts';
import type { Side } from '../diff/compared-side.ts';
import type { Owners } from '../diff/changes/owners.ts';
import type { PortFacts } from '../diff/port-facts.ts';
import { decompile } from './decompile.ts';
import type { ShownPort } from './shown-port.ts';
import { parseServiceChain } from '../kube-proxy/chain-names.ts';

/**
 * Compares two sides Service port by Service port by what their states show, as where one of them is a dump: they do not show which
 * Services it came from. What a state does not show of a port is no difference.
 */
export const diffDecompiled: ReadServices = (from, to, owners): ReadChanges => {
  const belongingOf = classifyServers(from, to);
  const read = (side: Side, own: Owners) =>
    groupBy(decompile(coverForServices(side), own, belongingOf, side.coverage).ports, ({ name }) => name);
  const [before, after] = [read(from, owners.from), read(to, owners.to)];
  const changes: ServicePortChange[] = [];
  const compared = { all: 0, withoutEndpoints: 0 };
  for (const [label, ports] of after) {
    const reasons = ports.flatMap((port) => {
      const old = before.get(label)?.find(({ family }) => family === port.family);
      if (!old) return [];
      compared.all++;
      if (!old.endpoints || !port.endpoints) compared.withoutEndpoints++;
      return [...diffFacts(factsOf(old), factsOf(port), true), ...diffEndpoints(old, port)];
    });
    if (reasons.length === 0) continue;
    changes.push({ label, change: 'changed', reasons: uniqueReasons(reasons), place: undefined });
  }
  return { changes, compared, shown: { from: factsOfAll(before), to: factsOfAll(after) }, follows };
};

function factsOfAll(ports: ReadonlyMap<string, readonly ShownPort[]>): ReadonlyMap<string, readonly PortFacts[]> {
  return new Map([...ports].map(([label, all]) => [label, all.map(factsOf)]));
}

function factsOf({ name: _, fallback: __, masquerade: ___, endpoints, ...port }: ShownPort): PortFacts {
  return { ...port, endpoints: endpoints?.length };
}

/** A kernel has no endpoints but those that are used. */
const usedEndpoint: EndpointState = { condition: 'ready', node: undefined, hints: [], used: true };

function diffEndpoints(from: ShownPort, to: ShownPort): readonly ServiceReason[] {
  if (!from.endpoints || !to.endpoints) return [];
  const statesOf = (endpoints: NonNullable<ShownPort['endpoints']>) =>
    new Map(endpoints.map(({ endpoint }) => [endpoint, usedEndpoint]));
  return diffEndpointStates(statesOf(from.endpoints), statesOf(to.endpoints));
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
