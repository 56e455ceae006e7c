import { describePlan, type PlannedChange } from '../apply/describe-plan.ts';
import type { Plan } from '../apply/plan.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';

const signs = { add: '+', change: '~', remove: '-' } as const;

/** A plan as people read it: Service by Service, then what belongs to none. '' for one that changes nothing. */
export function formatPlan(plan: Plan, servicePorts: StoredBundle['cluster']['servicePorts']): string {
  const groups = groupBy(describePlan(plan, servicePorts), (change) => change.service ?? '');
  const names = [...groups.keys()].sort();
  // What belongs to no Service (sysctls, base chains) comes first, as it does when it is applied.
  return names.map((name) => formatGroup(name || 'this node', groups.get(name) ?? [])).join('\n');
}

/** Objects of which a Service has many are counted: their number says more than their list. */
const counted: ReadonlySet<PlannedChange['object']> = new Set(['set entry', 'chain']);

function formatGroup(name: string, changes: readonly PlannedChange[]): string {
  const lines = [name];
  const counts = new Map<string, number>();
  for (const change of changes) {
    if (counted.has(change.object) && changes.length > 8) {
      const key = `${signs[change.action]} ${change.object}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    } else lines.push(`  ${signs[change.action]} ${change.object} ${change.text}`);
  }
  for (const [key, count] of counts) {
    const [sign, object = ''] = [key.slice(0, 1), key.slice(2)];
    lines.push(`  ${sign} ${count} ${plural(object, count)}`);
  }
  return `${lines.join('\n')}\n`;
}

/** "3 virtual servers added, 1 chain changed". */
export function summarizePlan(plan: Plan): string {
  const counts = new Map<string, number>();
  for (const { object, action } of describePlan(plan, [])) {
    const key = `${object}|${action}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const done = { add: 'added', change: 'changed', remove: 'removed' } as const;
  const parts = [...counts].map(([key, count]) => {
    const [object = '', action] = key.split('|') as [string, keyof typeof done];
    return `${count} ${plural(object, count)} ${done[action]}`;
  });
  return parts.length > 0 ? parts.join(', ') : 'nothing changed';
}

function plural(object: string, count: number): string {
  if (count === 1 || object.endsWith('timeouts')) return object;
  return object.endsWith('entry')
    ? `${object.slice(0, -1)}ies`
    : object.endsWith('address')
      ? `${object}es`
      : `${object}s`;
}
