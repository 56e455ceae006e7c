import { Chalk } from 'chalk';
import { fitRows, joinCells, printable } from '../../base/printable.ts';
import type { DescriptionLine } from '../../ask/describe/description-line.ts';
import type { ReportLine } from '../diff-report.ts';

type Role = ReportLine['role'] | DescriptionLine['role'];

const styles: { readonly [R in Role]: 'bold' | 'dim' | 'green' | 'red' | 'yellow' | undefined } = {
  heading: 'bold',
  title: 'bold',
  added: 'green',
  good: 'green',
  removed: 'red',
  bad: 'red',
  changed: 'yellow',
  more: 'dim',
  dim: 'dim',
  reason: undefined,
  summary: undefined,
  plain: undefined,
};

export function painter(isColoured: boolean): (role: Role, text: string) => string {
  const chalk = new Chalk({ level: isColoured ? 1 : 0 });
  return (role, text) => {
    const style = styles[role];
    return style === undefined ? text : chalk[style](text);
  };
}

/** Descriptions for people, each a block of lines. On a terminal, tables are cut to its width. */
export function formatDescription(
  blocks: readonly (readonly DescriptionLine[])[],
  isColoured: boolean,
  width?: number,
): string {
  const paint = painter(isColoured);
  return blocks
    .map((block) =>
      alignRows(block, width)
        .map(({ role, depth, text }, i) => {
          const gap = i > 0 && role === 'heading' ? '\n' : '';
          return `${gap}${paint(role, `${'  '.repeat(depth)}${printable(text)}`)}\n`;
        })
        .join(''),
    )
    .join('\n');
}

/** Aligns the rows of a block's tables. If the terminal is narrow, the last column keeps the most space, because it gives the reason. */
function alignRows(block: readonly DescriptionLine[], width: number | undefined): readonly DescriptionLine[] {
  const rows = block.flatMap(({ cells }) => (cells ? [cells] : []));
  const indent = 2 * Math.max(0, ...block.map(({ cells, depth }) => (cells ? depth : 0)));
  const weights = { [(rows[0]?.length ?? 0) - 1]: 3 };
  // The first column is an address.
  const form = { width: width === undefined ? undefined : width - indent, weights, lists: [0] };
  const fitted = fitRows(rows, form).values();
  return block.map((line) => (line.cells ? { ...line, text: joinCells(fitted.next().value ?? []) } : line));
}
