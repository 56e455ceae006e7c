import { formatError } from '../../report/render-diagnostics.ts';
import { exitStatus, type ExitStatus } from './exit-status.ts';
import type { Terminal } from './terminal.ts';

/** Prints why a command does not do what it was asked, and what to do about that. */
export async function refuse(terminal: Terminal, wrong: string, help?: string): Promise<ExitStatus> {
  await terminal.err(formatError(wrong, help));
  return exitStatus.badInput;
}
