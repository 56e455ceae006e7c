/** The same of the bundle that is known, and of the one that is to be certified. */
export interface Versions<T> {
  readonly old: T;
  readonly new: T;
}

/** Whether both are the same lines in the same order. */
export function areSameLines(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, i) => line === b[i]);
}

/** The line that ends where another begins; '' for the first. */
export function lineBefore(text: string, at: number): string {
  return text.slice(text.lastIndexOf('\n', at - 2) + 1, Math.max(0, at - 1));
}

/** The line behind some lines of a text that begin there. */
export function lineAfter(text: string, at: number, lines: readonly string[]): string {
  const end = lines.reduce((sum, line) => sum + line.length + 1, at);
  return text.slice(end, text.indexOf('\n', end));
}
