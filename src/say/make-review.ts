import type { Snapshot } from '../snapshot/snapshot.ts';
import type { SideDiff } from '../ask/diff/diff-sides.ts';
import type { Review } from './diff-review.ts';
import type { Tracing } from './equivalence.ts';

/** The most Service ports to trace packets to: each may be reached in many ways. */
const mostAsked = 400;

/**
 * The review of a change, with what happens to packets: of a large cluster, to those Service ports that differ, if nothing else does. Loads
 * large modules, which other diffs do not need.
 */
export async function makeReview(from: Snapshot, to: Snapshot, diff: SideDiff, trace: Tracing): Promise<Review> {
  const { servicePorts, base } = diff;
  const ports = [from, to].map(({ cluster }) => cluster?.servicePorts.length ?? 0);
  const isLarge = Math.max(...ports) > mostAsked;
  if (servicePorts.length === 0 || (isLarge && (servicePorts.length > mostAsked || base.length > 0))) {
    return { from, to, diff, packets: undefined, trace };
  }
  const { effectsByService } = await import('../ask/equivalence/findings.ts');
  const { packetsTo } = await import('../ask/equivalence/representatives.ts');
  const { onOneNode, sceneOf } = await import('../ask/trace/scene.ts');
  const bareScene = (side: Snapshot) => sceneOf(side.with({ objects: undefined }));
  const labels = new Set(servicePorts.flatMap(({ label, formerLabel }) => [label, formerLabel]));
  const changed = [from, to].flatMap((side) => side.ports.filter(({ label }) => labels.has(label)));
  const options = { only: isLarge ? packetsTo(changed) : undefined };
  const packets = effectsByService(...onOneNode(bareScene(from), bareScene(to)), options);
  return { from, to, diff, packets, trace };
}
