/** How a table is laid out. Columns count from 0. */
export interface TableForm {
  /** Columns of the terminal; undefined if the output is none: then no cell is cut. */
  readonly width: number | undefined;
  /** Relative widths that columns keep when space is short; 1 for those left out. */
  readonly weights: Readonly<Record<number, number>>;
  /** The column of names. They are cut at the start, because their ends say more. */
  readonly names?: number;
  /** Columns that give way before all others. */
  readonly first?: readonly number[];
  /** Columns of lists, of which whole items are left out: "10.96.0.10, +2". An item is never cut. */
  readonly lists?: readonly number[];
}

/** A column is not cut to less than this. */
const leastWidth = 8;

/** Without a terminal, a longer cell only moves the columns behind it in its own row. */
const mostAligned = 60;

const gap = '  ';

/** Cuts and pads cells to the widths of their columns, so that a row fits the terminal. */
export function fitRows(rows: readonly (readonly string[])[], form: TableForm): readonly (readonly string[])[] {
  const { width, names, lists = [] } = form;
  const wanted = rows[0]?.map((_, i) => rows.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 0)) ?? [];
  const least = wanted.map((_, i) => {
    if (!lists.includes(i)) return leastWidth * (form.weights[i] ?? 1);
    return rows.reduce((most, row) => Math.max(most, cutList(row[i] ?? '', 0).length), 0);
  });
  const widths =
    width === undefined ? wanted.map((each) => Math.min(mostAligned, each)) : fitColumns(wanted, form, least, width);
  const cut = (cell: string, room: number, i: number): string => {
    if (width === undefined || cell.length <= room) return cell;
    if (lists.includes(i)) return cutList(cell, room);
    return i === names ? `…${cell.slice(1 - room)}` : `${cell.slice(0, room - 1)}…`;
  };
  return rows.map((row) => row.map((cell, i) => cut(cell, widths[i] ?? 0, i).padEnd(widths[i] ?? 0)));
}

export function joinCells(cells: readonly string[]): string {
  return cells.join(gap).trimEnd();
}

/** The first items of a list that fit, at least one, and the number of the others. */
function cutList(cell: string, room: number): string {
  const items = cell.split(', ');
  for (let shown = items.length; shown > 1; shown--) {
    const text = shortList(items, shown);
    if (text.length <= room) return text;
  }
  return shortList(items, 1);
}

function shortList(items: readonly string[], shown: number): string {
  const hidden = items.length - shown;
  return `${items.slice(0, shown).join(', ')}${hidden > 0 ? `, +${hidden}` : ''}`;
}

/** The width of each column: what does not fit is taken from those that give way first, then from the widest. */
function fitColumns(
  wanted: readonly number[],
  { weights, first = [] }: TableForm,
  least: readonly number[],
  width: number,
): readonly number[] {
  const widths = [...wanted];
  const all = widths.map((_, i) => i);
  let over = widths.reduce((sum, each) => sum + each, 0) + gap.length * (widths.length - 1) - width;
  for (const columns of [first, all]) {
    const weigh = (i: number): number =>
      (widths[i] ?? 0) <= Math.min(wanted[i] ?? 0, least[i] ?? 0) ? 0 : (widths[i] ?? 0) / (weights[i] ?? 1);
    while (over > 0 && columns.length > 0) {
      const widest = columns.reduce((a, b) => (weigh(b) > weigh(a) ? b : a));
      if (weigh(widest) === 0) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
      over--;
    }
  }
  return widths;
}
