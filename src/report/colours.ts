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
