import { Chalk } from 'chalk';
import type { NodeCheck } from '../apply/doctor/node-check.ts';
import { count } from '../base/format-count.ts';
import { joinWords } from '../base/join-words.ts';
import { printable } from '../base/printable.ts';
import type { FleetProblem } from '../bundle/fleet/fleet-folder.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { SaidFinding } from './words/said.ts';
import { modeFacts } from '../kube-proxy/modes.ts';

/** Returns a line of an input file, counted from 1; '' if it is unknown. */
export type LineOf = (file: string, line: number) => string;

const maxWidth = 120;

/**
 * Findings for people, each as "path:line:col: error: text [code]" with its line and a caret, then "help: what to
 * do". Ends with a newline unless there is nothing to print. Control characters of the input become dots.
 */
export function formatFindings(findings: readonly SaidFinding[], lineOf: LineOf, isColoured: boolean): string {
  const chalk = new Chalk({ level: isColoured ? 1 : 0 });
  const paint = { error: chalk.red.bold, warning: chalk.yellow.bold, note: chalk.cyan.bold };
  const blocks = findings.map(({ severity, code, text, help, trace, file, line, column }) => {
    const isPlaced = file !== undefined && line !== undefined && column !== undefined;
    const where = file === undefined ? undefined : chalk.bold(printable(isPlaced ? `${file}:${line}:${column}` : file));
    const header = [where, paint[severity](severity), `${printable(text)} ${chalk.dim(`[${code}]`)}\n`]
      .filter((part) => part !== undefined)
      .join(': ');
    const shows = trace === undefined ? '' : `  trace: ${printable(trace.command)}\n`;
    const advice = `${formatHelp(help)}${shows}`;
    // Of what is left out, a line each is enough.
    if (!isPlaced || code === 'left-out') return `${header}${advice}`;
    const excerpt = excerptLine(lineOf(file, line), column);
    const shown = excerpt === undefined ? '' : `  ${excerpt.line}\n  ${paint[severity](excerpt.caret)}\n`;
    return `${header}${shown}${advice}`;
  });
  return blocks.join('');
}

/** An error without a code, in the form of a diagnostic. */
export function formatError(wrong: string, help?: string): string {
  return `error: ${printable(wrong)}\n${formatHelp(help)}`;
}

function formatHelp(help: string | undefined): string {
  return help === undefined ? '' : `  help: ${printable(help)}\n`;
}

/** The line and a caret below the column, cut to the text around it; undefined for a blank line. */
function excerptLine(line: string, column: number): { readonly line: string; readonly caret: string } | undefined {
  if (line.trim() === '') return undefined;
  const start = column > maxWidth ? column - Math.floor(maxWidth / 2) : 0;
  const shown = printable(line.slice(start, start + maxWidth));
  return { line: shown, caret: `${' '.repeat(column - 1 - start)}^` };
}

/** Why a folder was left alone, and what to do about it. */
export function describeFolderProblem(problem: FleetProblem): readonly [wrong: string, help?: string] {
  switch (problem.kind) {
    case 'io':
      return [`cannot write ${problem.folder}: ${problem.reason}`];
    case 'is-a-bundle':
      return [`${problem.folder} is the bundle of one node`, 'name another folder for the bundles of several nodes'];
    case 'is-a-golden':
      return [`${problem.folder} is a golden, for git`, 'write it with --golden, or name another folder with -o'];
    case 'is-no-golden':
      return [`${problem.folder} is a bundle, for a node`, 'write it with -o, or name another folder with --golden'];
    case 'is-a-file':
      return [`${problem.folder} is a file`, 'name a folder'];
    case 'not-a-bundle': {
      const names = problem.strangers.slice(0, 3).map(printable).join(', ');
      return [
        `${problem.folder} holds files that don't belong to a bundle (${names}), and they would be deleted`,
        'name another folder',
      ];
    }
  }
}

export function formatNodeChecks(checks: readonly NodeCheck[], colour: boolean): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  const paint = { ok: chalk.green, note: chalk.cyan, warning: chalk.yellow, error: chalk.red };
  // What several modes have in common is printed once, under all of them.
  const same = [...groupBy(checks, ({ severity, text, advice }) => JSON.stringify([severity, text, advice])).values()];
  const sections = groupBy(same, (group) =>
    joinWords(group.flatMap(({ mode }) => (mode === undefined ? [] : modeFacts[mode].title))),
  );
  const lines = [...sections].flatMap(([modes, groups]) => [
    ...(modes === '' ? [] : ['', chalk.bold(`For ${modes}:`)]),
    ...groups.flatMap(([{ severity, text, advice }]) => [
      `${paint[severity](severity.padEnd(7))} ${printable(text)}`,
      ...(advice === undefined ? [] : [`        ${chalk.dim(printable(advice))}`]),
    ]),
  ]);
  return `${[...lines, '', countNodeChecks(same.map(([first]) => first))].join('\n')}\n`;
}

/** "1 error, 2 warnings and 1 note; 20 checks passed". */
function countNodeChecks(checks: readonly NodeCheck[]): string {
  const numbers = groupBy(checks, ({ severity }) => severity);
  const parts = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const number = numbers.get(severity)?.length ?? 0;
    return number === 0 ? [] : [count(number, severity)];
  });
  return `${joinWords(parts) || 'nothing to fix'}; ${count(numbers.get('ok')?.length ?? 0, 'check')} passed`;
}
