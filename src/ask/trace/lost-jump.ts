import { dormantCause, entryOf, findLostJumps, lostJumpCause } from '../../snapshot/lost-jumps.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { MissingJump } from '../../kube-proxy/missing-jumps.ts';
import type { Trace } from './question.ts';
import type { Scene } from './scene.ts';
import { stopOf, type Stop } from './stop.ts';

/** The missing jumps to the rules of Services, by family. */
export type LostJumps = { readonly [F in Family]: readonly MissingJump[] };

export function lostJumpsOf({ side }: Scene): LostJumps {
  const { mode } = side;
  const [ipv4, ipv6] = families.map((family) => (mode ? findLostJumps(side, mode, family) : []));
  return { ipv4: ipv4 ?? [], ipv6: ipv6 ?? [] };
}

/** Any other stop comes before the rules of Services, or does not depend on them. */
const stopsOfUntaken: ReadonlySet<Stop['kind']> = new Set(['unserved-port', 'no-local-endpoints', 'kube-proxy']);

/** Whether no rule that translates Service addresses has taken the packet, which is then untouched or stopped. */
function isUntaken({ fate }: Pick<Trace, 'fate'>): boolean {
  const end = fate.otherwise ?? fate;
  const stop = stopOf(end);
  return stop ? stopsOfUntaken.has(stop.kind) : end.verdict === 'local' || end.verdict === 'forwarded';
}

/** The missing jump that keeps a packet to a Service from its rules; undefined if there is none. */
export function lostJumpOf(
  trace: Pick<Trace, 'sender' | 'fate'> & { readonly target: Pick<Trace['target'], 'address'> },
  lost: LostJumps,
): MissingJump | undefined {
  const hook = trace.sender.enters ? 'prerouting' : 'output';
  const jumps = lost[trace.target.address.family];
  return isUntaken(trace) ? jumps.find((jump) => entryOf(jump) === hook) : undefined;
}

/** A sentence on why a packet to a Service does not reach its rules, and what to do. */
export function lostWayWords(trace: Trace, scene: Scene): string | undefined {
  if (!scene.side.mode || !isUntaken(trace)) return undefined;
  const jump = lostJumpOf(trace, lostJumpsOf(scene));
  const words = jump && `chain ${jump.to} has rules for it, and nothing in ${jump.from} jumps there: ${lostJumpCause}`;
  return dormantCause(scene.side, trace.target.address.family) ?? words;
}
