import type { DescriptionLine } from '../describe/describe-words.ts';
import { oneLine } from '../diff/one-line.ts';
import { descriptionPainter } from './colours.ts';

/** Descriptions for people, each a block of lines. */
export function formatDescription(blocks: readonly (readonly DescriptionLine[])[], isColoured: boolean): string {
  const paint = descriptionPainter(isColoured);
  return blocks
    .map((lines) =>
      lines
        .map((each, i) => {
          const gap = i > 0 && each.role === 'heading' ? '\n' : '';
          return `${gap}${paint(each.role, `${'  '.repeat(each.depth)}${oneLine(each.text)}`)}\n`;
        })
        .join(''),
    )
    .join('\n');
}
