import type { Snapshot } from '../snapshot/snapshot.ts';
import { behavioursOf, concernsMode } from '../kube-proxy/releases.ts';
import type { Evaluator } from '../packet/evaluate.ts';
import { lacks } from '../packet/reason.ts';

/**
 * Evaluates packets on a node of a cluster whose ServiceCIDRs could not be read: kube-proxy drops what goes to an address of these
 * networks that no Service has, so what no rule takes may be dropped.
 */
export function withUnreadRanges({ settings, objects }: Snapshot, evaluate: Evaluator): Evaluator {
  if (!settings || !objects.unread.has('serviceCidrs')) return evaluate;
  const { mode, release } = settings;
  if (!behavioursOf(release).has('service-cidrs') || !concernsMode('service-cidrs', mode)) return evaluate;
  return (packet) => {
    const fate = evaluate(packet);
    const isLeftAlone = fate.verdict === 'forwarded';
    return isLeftAlone ? { ...fate, verdict: 'unknown', reasons: [lacks({ kind: 'service-cidrs' })] } : fate;
  };
}
