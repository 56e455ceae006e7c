import { isSystemError } from '../../base/system-errors.ts';
import { unreadOf } from '../../base/unread.ts';
import { unreadWords } from '../../say/words/unread.ts';
import { type ExitStatus, type Terminal, exitStatus, printsVersion, processTerminal } from '../shared/terminal.ts';

/** Runs kpc. Loads only the command that is called, so that --version does not load the compiler. */
export async function main(argv: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  if (await printsVersion(argv, terminal)) return exitStatus.ok;
  try {
    const { runKpcProgram } = await import('./program.ts');
    return await runKpcProgram(argv, terminal);
  } catch (error) {
    return reportUnexpected(error, terminal);
  }
}

/** Reports an error that kpc did not expect. The status is not 1, because 1 would mean that there is a difference. */
async function reportUnexpected(error: unknown, terminal: Terminal): Promise<ExitStatus> {
  const help = isSystemError(error) ? '' : '  help: this is a bug in kpc: report it with the command and its input\n';
  try {
    await terminal.err(`error: ${unreadWords(unreadOf(error))}\n${help}`);
  } catch {
    // If stderr fails, this is ignored. The status still reports the error.
  }
  return exitStatus.badInput;
}
