/** How a table is laid out. Columns count from 0. */
export interface TableForm {
  /** How many columns the terminal has; undefined without one: then no cell is cut. */
  readonly width: number | undefined;
  /** How much more than the other columns one keeps; 1 for those left out. */
  readonly weights: Readonly<Record<number, number>>;
  /** The column of names, which keep their ends: those say more than their starts. */
  readonly names?: number;
}

/** A column is not cut to less than this. */
const leastWidth = 8;

/** Without a terminal, a longer cell moves the columns behind it in its own row alone. */
const mostAligned = 60;

const gap = '  ';

/** The rows of a table, their cells cut and padded to the widths of their columns, so that a row fits the terminal. */
export function fitRows(rows: readonly (readonly string[])[], form: TableForm): readonly (readonly string[])[] {
  const { width, names } = form;
  const wanted = rows[0]?.map((_, i) => rows.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 0)) ?? [];
  const widths =
    width === undefined ? wanted.map((each) => Math.min(mostAligned, each)) : fitColumns(wanted, form, width);
  const cut = (cell: string, room: number, i: number): string => {
    if (width === undefined || cell.length <= room) return cell;
    return i === names ? `…${cell.slice(1 - room)}` : `${cell.slice(0, room - 1)}…`;
  };
  return rows.map((row) => row.map((cell, i) => cut(cell, widths[i] ?? 0, i).padEnd(widths[i] ?? 0)));
}

/** A row as a line. */
export function joinCells(cells: readonly string[]): string {
  return cells.join(gap).trimEnd();
}

/** How wide each column may be: what does not fit is taken from the widest. */
function fitColumns(wanted: readonly number[], { weights }: TableForm, width: number): readonly number[] {
  const widths = [...wanted];
  const weigh = (i: number): number => (widths[i] ?? 0) / (weights[i] ?? 1);
  let over = widths.reduce((sum, each) => sum + each, 0) + gap.length * (widths.length - 1) - width;
  while (over > 0) {
    const widest = widths.map((_, i) => i).reduce((a, b) => (weigh(b) > weigh(a) ? b : a));
    if (weigh(widest) <= leastWidth) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    over--;
  }
  return widths;
}
