import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { failureFacts, type FailureCode } from '../../base/failure-codes.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { printable, printableLines } from '../../base/printable.ts';
import { diagnosticCodes, entryOf, severitiesOf, type DiagnosticCode } from '../../diagnostics/codes.ts';
import type { Example } from '../../diagnostics/examples.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { refuse } from './messages.ts';

const failureCodes = Object.keys(failureFacts) as readonly FailureCode[];

type Run = (argv: readonly string[], terminal: Terminal) => Promise<unknown>;

export function addExplainCommand(
  program: Command,
  terminal: Terminal,
  done: Done,
  _argv: readonly string[],
  run: Run,
): void {
  program
    .command('explain')
    .description('Explain a message by its code: what it means, an example, and what to do; or list all codes.')
    .argument('[code]', 'the code, as in [bad-value] at the end of a message')
    .action(async (code: string | undefined) => done(await explain(code, terminal, run)));
}

async function explain(word: string | undefined, terminal: Terminal, run: Run): Promise<ExitStatus> {
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
  if (code !== undefined) await terminal.out(await explainCode(code, terminal, run));
  if (failure !== undefined) {
    const head = `${code === undefined ? '' : '\n'}${failure}: error of kpc-apply`;
    const { meaning, advice } = failureFacts[failure];
    await terminal.out(`${head}\n${meaning}\n\n${adviceLine(advice)}`);
  }
  return exitStatus.ok;
}

async function explainCode(code: DiagnosticCode, terminal: Terminal, run: Run): Promise<string> {
  const { meaning, advice, example } = entryOf(code);
  const { words, files } = example();
  const said = await tryExample(code, { words, files }, terminal, run);
  const inputs = Object.entries(files).map(([file, text]) => `\n${file}:\n\n${indent(cutText(text))}`);
  const head = `${code}: ${severitiesOf(code).join(' or ')}\n${meaning}\n`;
  const help = advice === undefined ? '' : `\n${adviceLine(advice)}`;
  return `${head}${inputs.join('')}\n$ kpc ${words.join(' ')}\n\n${indent(said)}${help}`;
}

/** Set apart from the help of a message, which is about its own input. */
function adviceLine(advice: string): string {
  return `What to do: ${advice}.\n`;
}

function listCodes(): string {
  const meanings = [
    ...diagnosticCodes.map((code) => [code, entryOf(code).meaning] as const),
    ...failureCodes.map((code) => [code, `kpc-apply: ${failureFacts[code].meaning}`] as const),
  ];
  const width = Math.max(...meanings.map(([code]) => code.length));
  return meanings.map(([code, meaning]) => `${code.padEnd(width)}  ${meaning}\n`).join('');
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '    ');
}

/** The most lines to show of a file: some examples show what is too large. */
const mostLines = 20;
const longestLine = 120;

function cutText(text: string): string {
  const lines = printableLines(text).trimEnd().split('\n');
  const shown = lines.slice(0, mostLines);
  if (lines.length > mostLines) shown.push('…');
  return shown.map((line) => `${line.length > longestLine ? `${line.slice(0, longestLine)}…` : line}\n`).join('');
}

/** Runs the example, so that the shown message is never out of date. */
async function tryExample(code: DiagnosticCode, example: Example, terminal: Terminal, run: Run): Promise<string> {
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), 'kpc-explain-'));
  const said: string[] = [];
  const listening: Terminal = {
    ...terminal,
    // kpc lint prints its messages as its result.
    out: async (text) => void said.push(text),
    err: async (text) => void said.push(text),
    status: async () => {},
    colour: { out: false, err: false },
    interactive: false,
  };
  try {
    for (const [file, text] of Object.entries(example.files)) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    process.chdir(folder);
    await run(example.words, listening);
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true, force: true });
  }
  // Of all that kpc says, the first message with the code.
  const messages = said.join('').split(/^(?! )/m);
  return messages.find((message) => message.split('\n')[0]?.endsWith(` [${code}]`)) ?? '';
}
