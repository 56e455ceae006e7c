import type { ShownPort } from '../../cluster/model.ts';
import { externalPolicyOf, internalPolicyOf } from '../../cluster/plan-traffic.ts';
import type { Scene } from '../trace/scene.ts';
import type { CauseId } from './causes.ts';

interface ServiceCause {
  readonly cause: Extract<CauseId, 'one-sided' | 'service-fields' | 'service-endpoints'>;
  /** In sentences. */
  readonly because: readonly string[];
}

/**
 * Finds what the Services themselves decide differently about a destination: no mode, release or setting is the cause then. `ports`
 * are those of the destination on either side. Undefined if its Services are the same, or if a side does not show all of them.
 */
export function findServiceCause(
  { side: old }: Scene,
  { side: fresh }: Scene,
): (ports: readonly ShownPort[]) => ServiceCause | undefined {
  if (!old.cluster || !fresh.cluster || old.cluster === fresh.cluster || !areReadAlike(old, fresh))
    return () => undefined;
  const [ofOld, ofFresh] = [new Set(old.ports), new Set(fresh.ports)];
  return (ports) => {
    const [before, after] = [ports.filter((port) => ofOld.has(port)), ports.filter((port) => ofFresh.has(port))];
    if (differ(before, after, ({ label }) => [label])) return { cause: 'one-sided', because: [] };
    const [was, is] = [factsOf(before), factsOf(after)];
    const [lost, gained] = [without(was, is), without(is, was)];
    if (lost.length + gained.length > 0) {
      return { cause: 'service-fields', because: [`${lost.join(', ')} → ${gained.join(', ')}.`] };
    }
    return differ(before, after, endpointsOf) ? { cause: 'service-endpoints', because: [] } : undefined;
  };
}

/** Whether the same manifests make the same Services on both sides: modes and releases read different fields. */
function areReadAlike({ settings: old }: Scene['side'], { settings: fresh }: Scene['side']): boolean {
  if (!old || !fresh) return false;
  const { mode, release, ignoresExternalIPs } = old;
  return mode === fresh.mode && release === fresh.release && ignoresExternalIPs === fresh.ignoresExternalIPs;
}

/** The fields that decide which endpoints a client gets. */
function factsOf(ports: readonly ShownPort[]): readonly string[] {
  return ports.flatMap((port) => [
    `internalTrafficPolicy ${internalPolicyOf(port) ?? 'unset'}`,
    `externalTrafficPolicy ${externalPolicyOf(port) ?? 'unset'}`,
    `sessionAffinity ${port.affinitySeconds ? `ClientIP for ${port.affinitySeconds} s` : 'None'}`,
    `loadBalancerSourceRanges ${port.sourceRanges?.map(({ text }) => text).join(', ') || 'unset'}`,
  ]);
}

function endpointsOf({ endpoints = [] }: ShownPort): readonly string[] {
  return endpoints.map(({ label, status }) => `${label} ${status?.ready} ${status?.serving} ${status?.terminating}`);
}

function differ(
  before: readonly ShownPort[],
  after: readonly ShownPort[],
  keysOf: (port: ShownPort) => readonly string[],
): boolean {
  const [was, is] = [before.flatMap(keysOf), after.flatMap(keysOf)];
  return without(was, is).length + without(is, was).length > 0;
}

function without(texts: readonly string[], others: readonly string[]): readonly string[] {
  const known = new Set(others);
  return [...new Set(texts)].filter((text) => !known.has(text));
}
