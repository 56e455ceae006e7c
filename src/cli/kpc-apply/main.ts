import { realHost } from '../../apply/node/real-host.ts';
import type { CalledFrom } from './program.ts';
import { exitStatus, printsVersion, processTerminal } from '../shared/terminal.ts';

export async function main(
  argv: readonly string[],
  environment: CalledFrom = {
    terminal: processTerminal(),
    host: { ...realHost, program: ownProgram() },
  },
): Promise<number> {
  if (await printsVersion(argv, environment.terminal)) return exitStatus.ok;
  // SIGHUP asks a watch to sync. A watch that is still starting will sync anyway. SIGHUP would end it now, so SIGHUP is ignored.
  const ignore = () => undefined;
  if (argv[0] === 'watch') process.on('SIGHUP', ignore);
  try {
    const { runApplyProgram } = await import('./program.ts');
    return await runApplyProgram(argv, environment);
  } finally {
    process.off('SIGHUP', ignore);
  }
}

/** scripts/build-binary.mjs sets this. True if Node and the program are one file. */
declare const KPC_IS_BINARY: boolean | undefined;

export function ownProgram(): readonly string[] {
  if (typeof KPC_IS_BINARY !== 'undefined' && KPC_IS_BINARY) return [process.execPath];
  const [, file] = process.argv;
  return file === undefined ? [] : [process.execPath, file];
}
