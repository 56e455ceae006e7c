import { Chalk } from 'chalk';
import { count, printable } from '../../base/printable.ts';
import type { Block, Line } from '../lines.ts';
import type { SaidFinding } from '../words/said.ts';

const styles: { readonly [R in Line['role']]: 'bold' | 'dim' | 'green' | 'red' | 'yellow' | undefined } = {
  heading: 'bold',
  added: 'green',
  better: 'green',
  good: 'green',
  removed: 'red',
  worse: 'red',
  bad: 'red',
  changed: 'yellow',
  other: 'yellow',
  command: 'dim',
  dim: 'dim',
  summary: undefined,
  plain: undefined,
};

/** The sign in front of a line of each role. */
export const signs: { readonly [R in Line['role']]?: string } = {
  added: '+ ',
  better: '+ ',
  removed: '- ',
  worse: '- ',
  changed: '~ ',
  other: '~ ',
};

export function painter(isColoured: boolean): (role: Line['role'], text: string) => string {
  const chalk = new Chalk({ level: isColoured ? 1 : 0 });
  return (role, text) => {
    const style = styles[role];
    return style === undefined ? text : chalk[style](text);
  };
}

export function formatText(blocks: readonly Block[], isColoured = false): string {
  const paint = painter(isColoured);
  return blocks
    .filter((block) => block.length > 0)
    .map((block) =>
      block
        .map(({ role, depth, name, text }, i) => {
          const gap = i > 0 && role === 'heading' ? '\n' : '';
          const words = printable(name === undefined ? text : `${name}  ${text}`);
          return `${gap}${paint(role, `${'  '.repeat(depth)}${signs[role] ?? ''}${words}`)}\n`;
        })
        .join(''),
    )
    .join('\n');
}

/** Returns the number of findings for each severity: "2 errors", "1 note". */
export function countSeverities(all: readonly { readonly severity: string }[]): readonly string[] {
  return ['error', 'warning', 'note'].flatMap((severity) => {
    const number = all.filter((each) => each.severity === severity).length;
    return number === 0 ? [] : [count(number, severity)];
  });
}

/** Returns the text of a line in an input file. Lines are counted from 1. '' if the line is unknown. */
export type LineOf = (file: string, line: number) => string;

const maxWidth = 120;

/**
 * Formats findings for people. Each is printed as "path:line:col: error: text [code]" with its line and a caret, then as "help: what to
 * do". The result ends with a newline unless there are no findings. Control characters from the input become dots.
 */
export function formatFindings(findings: readonly SaidFinding[], lineOf: LineOf, isColoured: boolean): string {
  const chalk = new Chalk({ level: isColoured ? 1 : 0 });
  const paint = { error: chalk.red.bold, warning: chalk.yellow.bold, note: chalk.cyan.bold };
  const blocks = findings.map(({ severity, code, text, help, trace, place, about }) => {
    const { file, line, column } = place ?? {};
    const isPlaced = file !== undefined && line !== undefined && column !== undefined;
    const side = about?.kind === 'side' ? about.name : undefined;
    const at = isPlaced ? `${file}:${line}:${column}` : (file ?? side);
    const where = at === undefined ? undefined : chalk.bold(printable(at));
    const header = [where, paint[severity](severity), `${printable(text)} ${chalk.dim(`[${code}]`)}\n`]
      .filter((part) => part !== undefined)
      .join(': ');
    const shows = trace === undefined ? '' : `  trace: ${printable(trace.command)}\n`;
    const advice = `${formatHelp(help)}${shows}`;
    // A finding about skipped input needs no excerpt.
    if (!isPlaced || code === 'left-out') return `${header}${advice}`;
    const excerpt = excerptLine(lineOf(file, line), column);
    const shown = excerpt === undefined ? '' : `  ${excerpt.line}\n  ${paint[severity](excerpt.caret)}\n`;
    return `${header}${shown}${advice}`;
  });
  return blocks.join('');
}

/** Formats an error that has no code, in the same form as a finding. */
export function formatError(wrong: string): string {
  return `error: ${printable(wrong)}\n`;
}

export function formatHelp(help: string | undefined): string {
  return help === undefined ? '' : `  help: ${printable(help)}\n`;
}

/** Returns a line, cut to the text around a column, with a caret below that column. Undefined for a blank line. */
function excerptLine(line: string, column: number): { readonly line: string; readonly caret: string } | undefined {
  if (line.trim() === '') return undefined;
  const start = column > maxWidth ? column - Math.floor(maxWidth / 2) : 0;
  const shown = printable(line.slice(start, start + maxWidth));
  return { line: shown, caret: `${' '.repeat(column - 1 - start)}^` };
}
