import type { Snapshot } from '../snapshot/snapshot.ts';
import type { SideDiff } from '../ask/diff/diff-sides.ts';
import type { ServiceEffects, Severity } from '../ask/equivalence/findings.ts';
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
  const { effectsByService, severities } = await import('../ask/equivalence/findings.ts');
  const { packetsTo, packetsToPlaced } = await import('../ask/equivalence/representatives.ts');
  const { onOneNode, pairsElsewhere, sceneOf } = await import('../ask/trace/scene.ts');
  const bareScene = (side: Snapshot) => sceneOf(side.with({ objects: undefined }));
  const labels = new Set(servicePorts.flatMap(({ label, formerLabel }) => [label, formerLabel]));
  const changed = [from, to].flatMap(({ cluster }) =>
    (cluster?.servicePorts ?? []).filter(({ label }) => labels.has(label)),
  );
  const options = { only: isLarge ? packetsTo(changed) : undefined };
  const packets = effectsByService(...onOneNode(bareScene(from), bareScene(to)), options);
  const only = packetsToPlaced(changed);
  const others = (only ? pairsElsewhere(from, to) : []).map(([old, fresh]) =>
    effectsByService(...onOneNode(bareScene(old), bareScene(fresh)), { only }),
  );
  return { from, to, diff, packets: withoutOutsiders(withLosses(packets, others, severities)), trace };
}

/** Adds what only other assumed Nodes gain or lose: what else differs there is like here. */
function withLosses(
  packets: ServiceEffects,
  others: readonly ServiceEffects[],
  severities: readonly Severity[],
): ServiceEffects {
  const keyOf = ({ target, senders, from, to, services }: ServiceEffects['effects'][number]): string =>
    JSON.stringify([target, senders, from, to, services]);
  const known = new Set(packets.effects.map(keyOf));
  const added = others
    .flatMap(({ effects }) => effects)
    .filter((each) => (each.severity === 'breaks' || each.severity === 'opens') && !known.has(keyOf(each)));
  const all = [...packets.effects, ...added];
  return { ...packets, effects: severities.flatMap((severity) => all.filter((each) => each.severity === severity)) };
}

/** Leaves out clients outside the cluster that ask for a cluster IP: that is no news to anybody. */
function withoutOutsiders(packets: ServiceEffects): ServiceEffects {
  const effects = packets.effects.flatMap((effect) => {
    const senders = effect.senders.filter(({ kind }) => effect.target !== 'cluster-ip' || kind !== 'outside');
    return senders.length === 0 ? [] : [{ ...effect, senders }];
  });
  return { ...packets, effects };
}
