import { pairUp } from './diff-by-key.ts';
import { readLines, type UnreadLine } from './unread-line.ts';

/** The content of a sysctl.conf(5): one `name = value` a line, in the order of the map. '' for none. */
export function formatSysctls(sysctls: ReadonlyMap<string, string>): string {
  return [...sysctls].map(([name, value]) => `${name} = ${value}\n`).join('');
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
  const unread = readLines(text, ['#', ';'], (line) => {
    // A minus sign in front: whether it can be set does not matter.
    const [, name, value = ''] = /^-?\s*([^\s=]+)\s*=\s*([^]*)$/.exec(line) ?? [];
    if (name === undefined) return 'not "name = value"';
    sysctls.set(withDots(name), value);
    return undefined;
  });
  return { sysctls, unread };
}

/** sysctl takes slashes for dots, and then a dot inside a part (an interface's name) is a dot. */
function withDots(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  return separator === '/' ? name.replace(/[./]/g, (char) => (char === '/' ? '.' : '/')) : name;
}

/** One step from some sysctls to others. */
export type SysctlChange =
  | { readonly kind: 'set-sysctl'; readonly name: string; readonly from: string | undefined; readonly to: string }
  /** It is no longer wanted. A sysctl cannot be taken away: it keeps its value. */
  | { readonly kind: 'drop-sysctl'; readonly name: string; readonly from: string };

/** How to get from some sysctls to others. One that is not wanted any more keeps its value on the node. */
export function diffSysctls(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly SysctlChange[] {
  return pairUp(before, after, ([name]) => name).flatMap(({ old, item }): readonly SysctlChange[] => {
    if (!item) return [{ kind: 'drop-sysctl', name: old[0], from: old[1] }];
    const [name, to] = item;
    return old && wordsOf(old[1]) === wordsOf(to) ? [] : [{ kind: 'set-sysctl', name, from: old?.[1], to }];
  });
}

/** The kernel prints tabs between the numbers of a sysctl that has several. */
function wordsOf(value: string): string {
  return value.trim().split(/\s+/).join(' ');
}
