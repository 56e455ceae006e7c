import type { KernelChange } from '../../ask/changes/kernel-change.ts';
import {
  countChanges,
  listKernelChanges,
  moduleChange,
  sysctlChange,
  type ChangeCount,
} from '../../ask/changes/list-changes.ts';
import { findOwners } from '../../kube-proxy/owners.ts';
import type { Plan } from './plan.ts';
import { objectKinds } from '../../kernel/state.ts';

/** The changes of a plan one by one, in the order of steps. */
export function listPlan(plan: Plan): readonly KernelChange[] {
  const { present, wanted, state } = plan;
  const owners = { from: findOwners([present, wanted]), to: findOwners([wanted, state, present]) };
  return [...changesOfNode(plan), ...listKernelChanges(plan.delta, owners, objectKinds)];
}

/** Counts a plan's changes, in the order of steps. */
export function countPlan(plan: Plan): readonly ChangeCount[] {
  const { modules, settings } = plan;
  const ofNode: readonly ChangeCount[] = [
    { object: 'kernel module', change: 'added', number: modules.length },
    { object: 'sysctl', change: 'changed', number: settings.length },
  ];
  return [...ofNode.filter(({ number }) => number > 0), ...countChanges(plan.delta)];
}

/** Changes outside the delta: modules and sysctls. */
function changesOfNode({ modules, settings }: Plan): readonly KernelChange[] {
  return [
    ...modules.map((name) => moduleChange(name, 'added')),
    ...settings.map(({ setting: { name, value, reason }, from }) => ({
      ...sysctlChange(name, from, value, reason),
      change: 'changed' as const,
    })),
  ];
}
