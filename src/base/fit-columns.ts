/** A column of a table for a terminal. */
interface Column {
  /** How wide its widest cell is. */
  readonly wanted: number;
  /** How much more than the others it keeps; 1 if it is like them. */
  readonly weight: number;
}

/** A column is not cut to less than this. */
const leastWidth = 8;

/** What is between two columns. */
export const columnGap = '  ';

/** How wide each column may be, so that a row fits the terminal: what does not fit is taken from the widest. */
export function fitColumns(columns: readonly Column[], width: number): readonly number[] {
  const widths = columns.map(({ wanted }) => wanted);
  const weigh = (i: number): number => (widths[i] ?? 0) / (columns[i]?.weight ?? 1);
  let over = widths.reduce((sum, each) => sum + each, 0) + columnGap.length * (widths.length - 1) - width;
  while (over > 0) {
    const widest = widths.map((_, i) => i).reduce((a, b) => (weigh(b) > weigh(a) ? b : a));
    if (weigh(widest) <= leastWidth) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    over--;
  }
  return widths;
}

/** The cell in that width. The end of a name says more than its start; of other texts the start does. */
export function cutCell(text: string, width: number, kept: 'start' | 'end'): string {
  if (text.length <= width) return text;
  return kept === 'end' ? `…${text.slice(1 - width)}` : `${text.slice(0, width - 1)}…`;
}
