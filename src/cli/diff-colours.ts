import { Chalk } from 'chalk';
import type { Paint } from '../diff/format-diff.ts';

/** Colours of the lines of a report. */
export function painter(colour: boolean): Paint {
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
