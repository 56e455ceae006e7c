import { Argument, type Command } from 'commander';
import { complete, splitShellLine, type Candidate, type FindValues } from './complete.ts';
import { completionScript, shells, type Shell } from './completion-scripts.ts';
import { exitStatus, type ExitStatus } from './exit-status.ts';
import type { Terminal } from './terminal.ts';

/** Adds the command that prints what a shell reads, and the hidden one that the shell then calls. */
export function addCompletionCommand(
  program: Command,
  terminal: Terminal,
  done: (status: ExitStatus) => void,
  findValues: FindValues = async () => [],
): void {
  program
    .command('completion')
    .description('Print the script that makes a shell complete commands, flags and names.')
    .addArgument(new Argument('<shell>', 'the shell to print it for').choices(shells))
    .action(async (shell: Shell) => {
      await terminal.out(completionScript(shell, program.name()));
      done(exitStatus.ok);
    });
  program
    .command('complete', { hidden: true })
    .addArgument(new Argument('<shell>').choices(shells))
    .argument('<typed>', 'what has been typed, with the name of the program')
    .action(async (shell: Shell, typed: string) => {
      await terminal.out(await answer(program, shell, typed, findValues));
      done(exitStatus.ok);
    });
}

async function answer(program: Command, shell: Shell, typed: string, findValues: FindValues): Promise<string> {
  if (shell === 'bash') {
    const end = typed.lastIndexOf('\n');
    const words = splitShellLine(typed.slice(0, end));
    const found = await complete(program, words.slice(1), findValues);
    // To bash a word also begins after = and :, and what it completes is that part.
    const [word = '', part] = [words.at(-1), typed.slice(end + 1)];
    const known = word.endsWith(part) ? word.length - part.length : 0;
    return found.map(({ value }) => `${value.slice(known)}\n`).join('');
  }
  const lines = (shell === 'fish' ? typed.replace(/\n$/, '') : typed).split('\n');
  const found = await complete(program, lines.slice(1), findValues);
  return found.map(formatCandidate).join('');
}

function formatCandidate({ value, help }: Candidate): string {
  return `${value}${help ? `\t${help.replaceAll(/\s+/g, ' ')}` : ''}\n`;
}
