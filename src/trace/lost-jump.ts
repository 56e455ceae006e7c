import { dormantCause, entryOf, findLostJumps, lostJumpCause } from '../snapshot/lost-jumps.ts';
import { families, type Family } from '../kernel/family.ts';
import type { MissingJump } from '../kube-proxy/missing-jumps.ts';
import type { Trace } from './question.ts';
import type { Scene } from './scene.ts';
import { stopOf, type Stop } from './stop.ts';

/** The jumps to the rules of Services that a side has lost, by family. */
export type LostJumps = { readonly [F in Family]: readonly MissingJump[] };

export function lostJumpsOf({ side }: Scene): LostJumps {
  const { mode } = side;
  const [ipv4, ipv6] = families.map((family) => (mode ? findLostJumps(side, mode, family) : []));
  return { ipv4: ipv4 ?? [], ipv6: ipv6 ?? [] };
}

/** What else stops a packet does so before the rules of Services, or whatever they do. */
const stopsOfUntaken: ReadonlySet<Stop['kind']> = new Set(['unserved-port', 'no-local-endpoints', 'kube-proxy']);

/** Whether no rule that translates addresses of Services has taken a packet, which is then left alone or stopped. */
function isUntaken({ fate }: Pick<Trace, 'fate'>): boolean {
  const end = fate.otherwise ?? fate;
  const stop = stopOf(end);
  return stop ? stopsOfUntaken.has(stop.kind) : end.verdict === 'local' || end.verdict === 'forwarded';
}

/** The lost jump that keeps a packet to a Service from the Service's rules; undefined if none does. */
export function lostJumpOf(
  trace: Pick<Trace, 'sender' | 'fate'> & { readonly target: Pick<Trace['target'], 'address'> },
  lost: LostJumps,
): MissingJump | undefined {
  const hook = trace.sender.enters ? 'prerouting' : 'output';
  const jumps = lost[trace.target.address.family];
  return isUntaken(trace) ? jumps.find((jump) => entryOf(jump) === hook) : undefined;
}

/** Why a packet to a Service does not come to the Service's rules, and what to do: a sentence. */
export function lostWayWords(trace: Trace, scene: Scene): string | undefined {
  if (!scene.side.mode || !isUntaken(trace)) return undefined;
  const jump = lostJumpOf(trace, lostJumpsOf(scene));
  const words = jump && `chain ${jump.to} has rules for it, and nothing in ${jump.from} jumps there: ${lostJumpCause}`;
  return dormantCause(scene.side, trace.target.address.family) ?? words;
}
