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
    ...(release === undefined ? {} : { kubernetesVersion: release }),
    ...planValue(plan),
    ...(foresight && foresight.warnings.length > 0 ? { warnings: foresight.warnings } : {}),
    ...(foresight && foresight.refusals.length > 0
      ? { refusals: foresight.refusals.map(({ subject, text, advice }) => ({ subject, text, advice })) }
      : {}),
  });
}

/** The plan itself, as JSON has it. */
export function planValue(plan: Plan): object {
  return {
    changes: describePlan(plan),
    conflicts: plan.share.conflicts,
    foreignVirtualServers: plan.share.foreign,
    draining: plan.draining,
    ...(plan.higherSettings.length > 0 ? { higherSettings: plan.higherSettings.map(describeHigher) } : {}),
    ...(plan.leftSettings.length > 0 ? { leftSettings: plan.leftSettings.map(describeLeft) } : {}),
    ...(plan.held.length > 0 ? { heldAddresses: plan.held } : {}),
    ...(plan.leftIpvs === undefined ? {} : { addressesLeft: listLeftAddresses(plan) }),
    ...(plan.kept + plan.cut > 0 ? { connections: { draining: plan.kept, cut: plan.cut } } : {}),
  };
}

function describeLeft({ setting: { path, value, onlyFrom }, from }: Plan['leftSettings'][number]) {
  return { path, value: from, made: onlyFrom, before: value };
}

function describeHigher({ setting: { name, value, reason }, from }: Plan['higherSettings'][number]) {
  return { name, value: from, wanted: value, reason };
}
