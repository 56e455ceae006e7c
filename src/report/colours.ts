import { columnGap, cutCell, fitColumns } from '../base/fit-columns.ts';
import { Chalk } from 'chalk';
import type { DescriptionLine } from '../describe/describe-words.ts';
import type { Paint } from './text-and-markdown.ts';
import { printable } from '../base/printable.ts';

type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow' | 'plain';

const reportStyles: { readonly [R in Parameters<Paint>[0]]: Style } = {
  heading: 'bold',
  title: 'bold',
  added: 'green',
  removed: 'red',
  changed: 'yellow',
  more: 'dim',
  reason: 'plain',
  summary: 'plain',
};

const descriptionStyles: { readonly [R in DescriptionLine['role']]: Style } = {
  heading: 'bold',
  good: 'green',
  bad: 'red',
  dim: 'dim',
  plain: 'plain',
};

function painter<Role extends string>(styles: Readonly<Record<Role, Style>>, colour: boolean) {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  return (role: Role, text: string): string => {
    const style: Style = styles[role];
    return style === 'plain' ? text : chalk[style](text);
  };
}

/** Colours of the lines of a report. */
export const reportPainter = (colour: boolean): Paint => painter(reportStyles, colour);

/** Colours of the lines of a description. */
export const descriptionPainter = (colour: boolean) => painter(descriptionStyles, colour);

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
          return `${gap}${paint(each.role, `${'  '.repeat(each.depth)}${printable(each.text)}`)}\n`;
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
