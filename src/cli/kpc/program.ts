import { addCompileCommand } from './compile-command.ts';
import { addDescribeCommand } from './describe-command.ts';
import { addDiffCommand } from './diff-command.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import type { Program } from '../shared/run-commands.ts';
import { runCommands } from '../shared/run-commands.ts';
import type { Terminal } from '../shared/terminal.ts';
import { addVersionCommand } from '../shared/version-command.ts';

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
