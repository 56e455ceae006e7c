import { columnGap, cutCell, fitColumns } from '../base/fit-columns.ts';
import { Chalk } from 'chalk';
import type { DescriptionLine } from '../describe/describe-words.ts';
import type { Paint } from './text.ts';
import { oneLine } from '../diff/one-line.ts';

/** Colours of the lines of a report. */
export function reportPainter(colour: boolean): Paint {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  return (role, text) => {
    switch (role) {
      case 'heading':
      case 'title':
        return chalk.bold(text);
      case 'added':
        return chalk.green(text);
      case 'removed':
        return chalk.red(text);
      case 'changed':
        return chalk.yellow(text);
      case 'more':
        return chalk.dim(text);
      case 'reason':
      case 'summary':
        return text;
    }
  };
}

/** Colours of the lines of a description. */
export function descriptionPainter(colour: boolean): (role: DescriptionLine['role'], text: string) => string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  return (role, text) => {
    switch (role) {
      case 'heading':
        return chalk.bold(text);
      case 'good':
        return chalk.green(text);
      case 'bad':
        return chalk.red(text);
      case 'dim':
        return chalk.dim(text);
      case 'plain':
        return text;
    }
  };
}

/** Descriptions for people, each a block of lines. On a terminal, tables are cut to its width. */
export function formatDescription(
  blocks: readonly (readonly DescriptionLine[])[],
  isColoured: boolean,
  width?: number,
): string {
  const paint = descriptionPainter(isColoured);
  return blocks
    .map((block) =>
      (width === undefined ? block : fitRows(block, width))
        .map((each, i) => {
          const gap = i > 0 && each.role === 'heading' ? '\n' : '';
          return `${gap}${paint(each.role, `${'  '.repeat(each.depth)}${oneLine(each.text)}`)}\n`;
        })
        .join(''),
    )
    .join('\n');
}

/** The block with the rows of its tables in columns that fit. */
function fitRows(block: readonly DescriptionLine[], width: number): readonly DescriptionLine[] {
  const rows = block.flatMap(({ cells }) => (cells ? [cells] : []));
  const [first = []] = rows;
  const room = width - 2 * Math.max(0, ...block.flatMap(({ cells, depth }) => (cells ? [depth] : [])));
  const wanted = first.map((_, i) => rows.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 0));
  // The last column says why: it keeps most.
  const columns = wanted.map((each, i) => ({ wanted: each, weight: i === wanted.length - 1 ? 3 : 1 }));
  const widths = fitColumns(columns, room);
  return block.map((line) => {
    if (!line.cells) return line;
    const cells = line.cells.map((cell, i) => cutCell(cell, widths[i] ?? 0, 'start').padEnd(widths[i] ?? 0));
    return { ...line, text: cells.join(columnGap).trimEnd() };
  });
}
