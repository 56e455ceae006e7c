import { Command, CommanderError } from 'commander';
import { addCompileCommand } from './compile-command.ts';
import { addDescribeCommand } from './describe-command.ts';
import { addDiffCommand } from './diff-command.ts';
import type { ExitStatus } from './exit-status.ts';
import { exitStatus } from './exit-status.ts';
import type { Terminal } from './terminal.ts';
import { version } from './version.ts';

/** Parses the command line and runs the command that it names. */
export async function runProgram(argv: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  const written: Promise<void>[] = [];
  let status: ExitStatus = exitStatus.ok;
  const program = new Command('kpc')
    .description('Compiles Kubernetes Services to the rules that kube-proxy programs, offline.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => written.push(terminal.out(text)),
      writeErr: (text) => written.push(terminal.err(text)),
    });
  const setStatus = (result: ExitStatus) => {
    status = result;
  };
  addCompileCommand(program, terminal, setStatus);
  addDiffCommand(program, terminal, setStatus);
  addDescribeCommand(program, terminal, setStatus);
  if (argv.length === 0) {
    program.outputHelp({ error: true });
    await Promise.all(written);
    return exitStatus.badInput;
  }
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version end by an "error" of status 0.
    status = error.exitCode === 0 ? exitStatus.ok : exitStatus.badInput;
  }
  await Promise.all(written);
  return status;
}
