import { partition, type Split } from './split-changes.ts';
import type { UnreadLine } from './unread-line.ts';

/** The content of a sysctl.conf(5): one `name = value` a line, in the order of the map. '' for none. */
export function formatSysctls(sysctls: ReadonlyMap<string, string>): string {
  let text = '';
  for (const [name, value] of sysctls) text += `${name} = ${value}\n`;
  return text;
}

/**
 * Reads a sysctl.conf(5), or what `sysctl -a` prints: name with dots → value, the last of each name. Takes any text:
 * lines it cannot read are in `unread`.
 */
export function parseSysctls(text: string): {
  readonly sysctls: ReadonlyMap<string, string>;
  readonly unread: readonly UnreadLine[];
} {
  const sysctls = new Map<string, string>();
  const unread: UnreadLine[] = [];
  text.split('\n').forEach((raw, index) => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#') || line.startsWith(';')) return;
    const assigned = readAssignment(line);
    if (assigned) sysctls.set(withDots(assigned.name), assigned.value);
    else unread.push({ line: index + 1, text: raw, reason: 'not "name = value"' });
  });
  return { sysctls, unread };
}

/** Reads "name = value", blanks behind the value included; undefined for a line that is none. */
function readAssignment(line: string): { readonly name: string; readonly value: string } | undefined {
  const at = line.indexOf('=');
  if (at < 0) return undefined;
  // A minus sign in front: whether it can be set does not matter.
  const name = line.slice(0, at).trimStart().replace(/^-/, '').trim();
  return /^\S+$/.test(name) ? { name, value: line.slice(at + 1).trimStart() } : undefined;
}

/** sysctl takes slashes for dots, and then a dot inside a part (an interface's name) is a dot. */
function withDots(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  return separator === '/' ? name.replace(/[./]/g, (char) => (char === '/' ? '.' : '/')) : name;
}

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

export function splitSysctlsDelta(changes: readonly SysctlChange[]): Split<SysctlChange> {
  return partition(changes, ({ kind }) => kind === 'drop-sysctl');
}
