// Finds the step that decides a difference if neither a mode nor a Service explains it, because it stops packets on one side only.
import type { Fate } from '../../packet/packet.ts';
import { stopOf } from '../trace/stop.ts';
import type { Scene } from '../trace/scene.ts';
import { haveOneSetup, type CauseId, type CauseReason, type StopOfNode } from './causes.ts';
import type { Difference } from './compare.ts';
import { compareChoice } from './ends.ts';

interface StepCause {
  readonly cause: CauseId;
  readonly because: readonly CauseReason[];
}

/** Causes that hold even if a rule or sysctl stops packets too. */
const settled: ReadonlySet<CauseId> = new Set([
  'lost-jump',
  'one-sided',
  'service-addresses',
  'node-addresses',
  'service-fields',
  'service-endpoints',
  'behaviour',
  'external-ips',
  'connection',
  'ungiven-endpoints',
  'not-understood',
]);

const ofSetup: ReadonlySet<CauseId> = new Set([
  'node-port-addresses',
  'node-port-loopback',
  'external-policy-local',
  'internal-policy-local',
  'hairpin',
]);

/** Returns a function that finds the deciding step of a difference with this cause; undefined if the given cause remains the answer. */
export function stepFinder(scenes: readonly [Scene, Scene]) {
  const isOneSetup = haveOneSetup(scenes);
  // Rules compiled from manifests cannot be out of date.
  const areCompiled = scenes.every(({ side: { kind } }) => kind === 'manifests');
  return (cause: CauseId, { from, to }: Difference): StepCause | undefined => {
    if (settled.has(cause)) return undefined;
    const stops = [stopsOf(from), stopsOf(to)] as const;
    const because = (kind: StopOfNode['kind']): readonly CauseReason[] =>
      scenes.flatMap(({ side }, at) => {
        const others = stops[1 - at];
        return [...(stops[at] ?? [])].flatMap(([key, stop]) =>
          stop.kind === kind && !others?.has(key) ? [{ kind: 'stop', side: side.name, stop } as const] : [],
        );
      });
    const foreign = because('stranger');
    if (foreign.length > 0) return { cause: 'foreign-rules', because: foreign };
    const delivers = [from, to].filter(({ endpoints }) => endpoints.length > 0).length;
    if (!isOneSetup || !(ofSetup.has(cause) || (cause === 'other' && delivers === 1))) return undefined;
    const kernel = because('kernel');
    if (kernel.length > 0) return { cause: 'kernel', because: kernel };
    if (compareChoice(from, to) === 'other-endpoints') return { cause: 'endpoints', because: [] };
    return areCompiled ? undefined : { cause: 'rules', because: [] };
  };
}

/**
 * Returns what stops some of the packets: other programs' rules, and the kernel. Leaves out packets whose sender is the endpoint, because
 * the node is not at fault.
 */
function stopsOf({ ways }: Fate): ReadonlyMap<string, StopOfNode> {
  const stops = ways.flatMap((way): readonly (readonly [string, StopOfNode])[] => {
    const stop = stopOf(way);
    if (stop?.kind === 'kernel' && stop.decision.kind !== 'own-address') return [[stop.decision.kind, stop]];
    if (stop?.kind !== 'stranger') return [];
    const { kind, tool, table, chain } = stop.step;
    return [[[kind, tool, table, chain].join(' '), stop]];
  });
  return new Map(stops);
}
