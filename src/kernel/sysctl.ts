/** The content of a sysctl.conf(5): one `name = value` a line, in the order of the map. '' for none. */
export function formatSysctls(sysctls: ReadonlyMap<string, string>): string {
  let text = '';
  for (const [name, value] of sysctls) text += `${name} = ${value}\n`;
  return text;
}
