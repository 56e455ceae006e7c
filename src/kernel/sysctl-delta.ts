import { partition, type Split } from './split.ts';

type Sysctls = ReadonlyMap<string, string>;

export type SysctlChange =
  | { readonly kind: 'set-sysctl'; readonly name: string; readonly from: string | undefined; readonly to: string }
  /** It is no longer wanted. A sysctl cannot be taken away: it keeps its value. */
  | { readonly kind: 'drop-sysctl'; readonly name: string; readonly from: string };

export function diffSysctls(from: Sysctls, to: Sysctls): readonly SysctlChange[] {
  const changes: SysctlChange[] = [];
  for (const [name, value] of to) {
    const old = from.get(name);
    if (old === undefined || !isSameValue(old, value)) changes.push({ kind: 'set-sysctl', name, from: old, to: value });
  }
  for (const [name, value] of from) if (!to.has(name)) changes.push({ kind: 'drop-sysctl', name, from: value });
  return changes;
}

/** The kernel prints tabs between the numbers of a sysctl that has several. */
function isSameValue(a: string, b: string): boolean {
  return a === b || a.trim().split(/\s+/).join(' ') === b.trim().split(/\s+/).join(' ');
}

export function applySysctlsDelta(sysctls: Sysctls, changes: readonly SysctlChange[]): Sysctls {
  const result = new Map(sysctls);
  for (const change of changes) {
    if (change.kind === 'set-sysctl') result.set(change.name, change.to);
    else result.delete(change.name);
  }
  return result;
}

export function splitSysctlsDelta(changes: readonly SysctlChange[]): Split<SysctlChange> {
  return partition(changes, ({ kind }) => kind === 'drop-sysctl');
}
