import type { Foresight } from '../apply/change/apply-bundle.ts';
import { describePlan } from '../apply/plan/describe-plan.ts';
import { listLeftAddresses, type Plan } from '../apply/plan/plan.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { formatJson } from './format-json.ts';
import { olderReleaseOf } from './plan-text.ts';

/** A plan for programs: `changes` is empty where nothing would change. */
export function formatPlanJson(plan: Plan, bundle: StoredBundle, foresight?: Foresight): string {
  const release = olderReleaseOf(bundle);
  return formatJson({
    kubernetesVersion: release,
    ...planValue(plan),
    warnings: unlessEmpty(foresight?.warnings ?? []),
    refusals: unlessEmpty((foresight?.refusals ?? []).map(({ subject, text, advice }) => ({ subject, text, advice }))),
  });
}

/** The plan itself, as JSON has it. */
export function planValue(plan: Plan): object {
  return {
    changes: describePlan(plan),
    conflicts: plan.share.conflicts,
    foreignVirtualServers: plan.share.foreign,
    draining: plan.draining,
    higherSettings: unlessEmpty(plan.higherSettings.map(describeHigher)),
    leftSettings: unlessEmpty(plan.leftSettings.map(describeLeft)),
    heldAddresses: unlessEmpty(plan.held),
    addressesLeft: plan.leftIpvs === undefined ? undefined : listLeftAddresses(plan),
    connections: plan.kept + plan.cut > 0 ? { draining: plan.kept, cut: plan.cut } : undefined,
  };
}

/** JSON leaves out what is undefined. */
function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length > 0 ? list : undefined;
}

function describeLeft({ setting: { path, value, onlyFrom }, from }: Plan['leftSettings'][number]) {
  return { path, value: from, made: onlyFrom, before: value };
}

function describeHigher({ setting: { name, value, reason }, from }: Plan['higherSettings'][number]) {
  return { name, value: from, wanted: value, reason };
}
