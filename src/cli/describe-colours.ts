import { Chalk } from 'chalk';
import type { DescriptionLine } from '../describe/describe-words.ts';

/** Colours of the lines of a description. */
export function painter(colour: boolean): (role: DescriptionLine['role'], text: string) => string {
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
