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
    // A minus sign in front: whether it can be set does not matter.
    const match = /^-?\s*([^\s=]+)\s*=\s*(.*)$/.exec(line);
    const [, name, value] = match ?? [];
    if (name === undefined || value === undefined)
      unread.push({ line: index + 1, text: raw, reason: 'not "name = value"' });
    else sysctls.set(withDots(name), value);
  });
  return { sysctls, unread };
}

/** sysctl takes slashes for dots, and then a dot inside a part (an interface's name) is a dot. */
function withDots(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  return separator === '/' ? name.replace(/[./]/g, (char) => (char === '/' ? '.' : '/')) : name;
}
