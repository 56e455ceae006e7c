import { Chalk } from 'chalk';
import type { Finding } from '../apply/doctor/finding.ts';
import { printable } from '../base/printable.ts';
import type { FleetProblem } from '../bundle/fleet/fleet-folder.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { modeFacts } from '../kube-proxy/modes.ts';

/** Gives the text of a line of an input file, counted from 1; '' if it is not known. */
export type LineOf = (file: string, line: number) => string;

/** How much of a long line is shown. */
const maxWidth = 120;

/**
 * Diagnostics for people, each as "path:line:col: error: text [code]" with its line and a caret below, then "help: what to do";
 * ends with a newline unless there is nothing to say. Control characters of the input are shown as dots.
 */
export function renderDiagnostics(diagnostics: readonly Diagnostic[], lineOf: LineOf, isColoured: boolean): string {
  const chalk = new Chalk({ level: isColoured ? 1 : 0 });
  const paint = { error: chalk.red.bold, warning: chalk.yellow.bold, note: chalk.cyan.bold };
  const blocks = diagnostics.map(({ severity, code, text, help, place }) => {
    const location = place?.isWholeFile ? undefined : place?.locate();
    const where =
      place && chalk.bold(printable(location ? `${location.file}:${location.line}:${location.column}` : place.file));
    const header = [where, paint[severity](severity), `${printable(text)} ${chalk.dim(`[${code}]`)}\n`]
      .filter((part) => part !== undefined)
      .join(': ');
    const advice = formatHelp(help);
    // Of what is left out, a line each is enough.
    if (!location || code === 'left-out') return `${header}${advice}`;
    const excerpt = excerptLine(lineOf(location.file, location.line), location.column);
    const shown = excerpt === undefined ? '' : `  ${excerpt.line}\n  ${paint[severity](excerpt.caret)}\n`;
    return `${header}${shown}${advice}`;
  });
  return blocks.join('');
}

/** An error without a code, as diagnostics are printed: what is wrong, and what to do about it on a line of its own. */
export function formatError(wrong: string, help?: string): string {
  return `error: ${printable(wrong)}\n${formatHelp(help)}`;
}

function formatHelp(help: string | undefined): string {
  return help === undefined ? '' : `  help: ${printable(help)}\n`;
}

/** The line with a caret under the column, cut to what is around it; undefined for a blank line. */
function excerptLine(line: string, column: number): { readonly line: string; readonly caret: string } | undefined {
  if (line.trim() === '') return undefined;
  const start = column > maxWidth ? column - Math.floor(maxWidth / 2) : 0;
  const shown = printable(line.slice(start, start + maxWidth));
  return { line: shown, caret: `${' '.repeat(column - 1 - start)}^` };
}

/** Why a folder was left alone, and what to do about it, for people. */
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

/** What kpc-apply doctor found, for people. */
export function formatFindings(findings: readonly Finding[], colour: boolean): string {
  const chalk = new Chalk({ level: colour ? 1 : 0 });
  const paint = { ok: chalk.green, note: chalk.cyan, warning: chalk.yellow, error: chalk.red };
  const lines = findings.flatMap(({ severity, text, advice, mode }, i) => [
    ...(mode === undefined || mode === findings[i - 1]?.mode ? [] : ['', chalk.bold(`For ${modeFacts[mode].title}:`)]),
    `${paint[severity](severity.padEnd(7))} ${printable(text)}`,
    ...(advice === undefined ? [] : [`        ${chalk.dim(printable(advice))}`]),
  ]);
  return `${lines.join('\n')}\n`;
}
