import { exitStatus } from './exit-status.ts';
import type { Terminal } from './terminal.ts';
import { processTerminal } from './terminal.ts';
import { version } from './version.ts';

/**
 * The program kpc: runs one command and gives its exit status. Commands load when they are called, so that asking for
 * the version costs nothing of what compiling needs.
 */
export async function main(argv: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
    await terminal.out(`${version}\n`);
    return exitStatus.ok;
  }
  const { runProgram } = await import('./program.ts');
  return runProgram(argv, terminal);
}
