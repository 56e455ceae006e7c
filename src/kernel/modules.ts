/** The content of a modules-load.d(5) file: one module a line. '' for none. */
export function formatModules(modules: readonly string[]): string {
  return modules.map((module) => `${module}\n`).join('');
}
