import type { Snapshot } from '../snapshot/snapshot.ts';
import type { SideDiff } from '../diff/diff-sides.ts';
import type { Review } from './diff-review.ts';
import type { Tracing } from './equivalence.ts';

/** The most Service ports to trace packets to: each may be reached in many ways. */
const mostAsked = 400;

/** The review of a change, with what happens to packets. Loads large modules, which other diffs do not need. */
export async function makeReview(from: Snapshot, to: Snapshot, diff: SideDiff, trace: Tracing): Promise<Review> {
  const ports = [from, to].map(({ cluster }) => cluster?.servicePorts.length ?? 0);
  if (diff.servicePorts.length === 0 || Math.max(...ports) > mostAsked) {
    return { from, to, diff, packets: undefined, trace };
  }
  const { effectsByService } = await import('../equivalence/findings.ts');
  const { onOneNode, sceneOf } = await import('../trace/scene.ts');
  const bareScene = (side: Snapshot) => sceneOf(side.with({ objects: undefined }));
  return { from, to, diff, packets: effectsByService(...onOneNode(bareScene(from), bareScene(to))), trace };
}
