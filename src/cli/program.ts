import { addCompileCommand } from './compile-command.ts';
import { addDescribeCommand } from './describe-command.ts';
import { addDiffCommand } from './diff-command.ts';
import type { ExitStatus } from './exit-status.ts';
import type { Program } from './run-commands.ts';
import { runCommands } from './run-commands.ts';
import type { Terminal } from './terminal.ts';
import { addVersionCommand } from './version-command.ts';

/** Runs the command of kpc that the command line names. */
export function runProgram(argv: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  return runCommands(kpcProgram(terminal), argv, terminal);
}

/** The commands of kpc, with their flags. */
export function kpcProgram(terminal: Terminal): Program {
  return {
    name: 'kpc',
    description: 'Compiles Kubernetes Services to the rules that kube-proxy programs, offline.',
    addCommands: (command, done) => {
      addCompileCommand(command, terminal, done);
      addDiffCommand(command, terminal, done);
      addDescribeCommand(command, terminal, done);
      addVersionCommand(command, terminal, done);
    },
  };
}
