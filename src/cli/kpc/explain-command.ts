import type { Command } from 'commander';
import { codes, failures } from '#codes';
import { failureCodes } from '../../base/failure-codes.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { printable } from '../../base/printable.ts';
import { diagnosticCodes, severitiesOf, type DiagnosticCode } from '../../diagnostics/codes.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { refuse } from './messages.ts';

export function addExplainCommand(program: Command, terminal: Terminal, done: Done): void {
  program
    .command('explain')
    .description('Explain a message by its code: what it means, an example, and what to do; or list all codes.')
    .argument('[code]', 'the code, as in [bad-value] at the end of a message')
    .action(async (code: string | undefined) => done(await explain(code, terminal)));
}

async function explain(word: string | undefined, terminal: Terminal): Promise<ExitStatus> {
  // As it is copied from a message.
  const name = word?.replace(/^\[(.*)\]$/, '$1');
  const code = diagnosticCodes.find((each) => each === name);
  const failure = failureCodes.find((each) => each === name);
  if (name === undefined) await terminal.out(listCodes());
  else if (failure === undefined && code === undefined) {
    const near = findNearest(name, [...diagnosticCodes, ...failureCodes]);
    const help = near === undefined ? 'list the codes with "kpc explain"' : `did you mean ${near}?`;
    return refuse(terminal, `no message has the code ${printable(name)}`, help);
  }
  // Both programs may have a code of this name.
  if (code !== undefined) await terminal.out(explainCode(code));
  if (failure !== undefined) {
    const head = `${code === undefined ? '' : '\n'}${failure}: error of kpc-apply`;
    const { meaning, advice } = failures[failure];
    await terminal.out(`${head}\n${meaning}\n\n${adviceLine(advice)}`);
  }
  return exitStatus.ok;
}

function explainCode(code: DiagnosticCode): string {
  const { meaning, shown, advice } = codes[code];
  const help = advice === undefined ? '' : `\n${adviceLine(advice)}`;
  return `${code}: ${severitiesOf(code).join(' or ')}\n${meaning}\n\n${shown}${help}`;
}

/** Set apart from the help of a message, which is about its own input. */
function adviceLine(advice: string): string {
  return `What to do: ${advice}.\n`;
}

function listCodes(): string {
  const meanings = [
    ...diagnosticCodes.map((code) => [code, codes[code].meaning] as const),
    ...failureCodes.map((code) => [code, `kpc-apply: ${failures[code].meaning}`] as const),
  ];
  const width = Math.max(...meanings.map(([code]) => code.length));
  return meanings.map(([code, meaning]) => `${code.padEnd(width)}  ${meaning}\n`).join('');
}
