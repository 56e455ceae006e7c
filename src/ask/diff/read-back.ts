import type { KernelChange } from '../changes/kernel-change.ts';
import type { Owners, SideOwners } from '../../kube-proxy/owners.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { portAddresses, type ShownPort } from '../../cluster/model.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import { jumpChain } from '../../kernel/state.ts';
import { parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { dnatEndpoint } from '../../snapshot/decompile-iptables.ts';
import { decompile } from '../../snapshot/decompile.ts';
import { nodePortPlace, type DecompiledPort } from '../../snapshot/decompiled-port.ts';
import { weighServersOfSides } from '../../snapshot/server-owners.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { coverForServices } from './foreign-items.ts';
import type { ServicePortChange } from './service-changes.ts';
import {
  diffEndpointStates,
  diffFields,
  uniqueReasons,
  type EndpointState,
  type ServiceReason,
} from './service-reasons.ts';

export interface ReadChanges {
  readonly changes: readonly ServicePortChange[];
  readonly compared: { readonly all: number; readonly withoutEndpoints: number };
  readonly shown: Readonly<Record<'from' | 'to', ReadonlyMap<string, readonly ShownPort[]>>>;
  readonly follows: (change: KernelChange, reasons: readonly ServiceReason[]) => boolean;
}

/**
 * Compares the Service ports of two sides by what their states show, for example if one side is a dump, which does not record its
 * Services. Facts about a port that a state hides do not count as differences.
 */
export function compareReadBack(from: Snapshot, to: Snapshot, owners: SideOwners): ReadChanges {
  const weighServer = weighServersOfSides(from, to);
  const read = (side: Snapshot, own: Owners) =>
    groupBy(decompile(coverForServices(side), own, weighServer, side.coverage).ports, ({ label }) => label);
  const [before, after] = [read(from, owners.from), read(to, owners.to)];
  const changes: ServicePortChange[] = [];
  const compared = { all: 0, withoutEndpoints: 0 };
  for (const [label, ports] of after) {
    const reasons = ports.flatMap((port) => {
      const old = before.get(label)?.find(({ family }) => family === port.family);
      if (!old) return [];
      compared.all++;
      if (![old, port].every(({ endpoints = [] }) => endpoints.length > 0)) compared.withoutEndpoints++;
      return [...diffFields(old, port), ...diffEndpoints(old, port)];
    });
    if (reasons.length === 0) continue;
    changes.push({ label, change: 'changed', reasons: uniqueReasons(reasons), place: undefined });
  }
  return { changes, compared, shown: { from: before, to: after }, follows };
}

/** A kernel shows only endpoints in use. */
const usedEndpoint: EndpointState = { condition: 'ready', node: undefined, hints: [], used: true };
const drainingEndpoint: EndpointState = { ...usedEndpoint, condition: 'draining', used: false };

function diffEndpoints(from: DecompiledPort, to: DecompiledPort): readonly ServiceReason[] {
  if (!from.endpoints || !to.endpoints) return [];
  const statesOf = (endpoints: NonNullable<DecompiledPort['endpoints']>) =>
    new Map(endpoints.map(({ label, draining }) => [label, draining ? drainingEndpoint : usedEndpoint]));
  return diffEndpointStates(statesOf(endpointsBeside(from, to)), statesOf(endpointsBeside(to, from)));
}

/**
 * Returns the endpoints of a port to compare with another port. If either port may listen at further addresses, returns only the endpoints
 * at common addresses.
 */
function endpointsBeside({ endpoints = [], hidesAddresses }: DecompiledPort, other: DecompiledPort) {
  if (!hidesAddresses && !other.hidesAddresses) return endpoints;
  const places = portAddresses(other).map(({ address }) => address.text);
  const known = new Set(other.nodePort ? [...places, nodePortPlace] : places);
  return endpoints.filter(({ at }) => at === undefined || at.some((place) => known.has(place)));
}

/**
 * Reports whether these reasons fully explain a kernel change, because it adds or removes an endpoint's chain, or changes the rules that
 * choose among endpoints.
 */
function follows(edit: KernelChange, reasons: readonly ServiceReason[]): boolean {
  if (edit.kind !== 'chain' || edit.fields.shared || edit.fields.reordered) return false;
  const { change, fields, edited = [] } = edit;
  const endpoints = new Set(
    reasons.flatMap((each) =>
      each.kind === 'endpoint-added' || each.kind === 'endpoint-removed' ? [each.endpoint] : [],
    ),
  );
  if (endpoints.size === 0) return false;
  const kind = parseServiceChain(fields.chain)?.kind;
  if (kind === 'cluster' || kind === 'local') {
    const leadsTo = (rule: Rule) => parseServiceChain(jumpChain(rule) ?? '')?.kind;
    return change === 'changed' && edited.every((rule) => leadsTo(rule) === 'endpoint');
  }
  if (kind !== 'endpoint' || change === 'changed') return false;
  return endpoints.has(dnatEndpoint(edited)?.label ?? '');
}
