import { CommanderError } from 'commander';
import type { Command } from 'commander';
import { printable } from '../../base/printable.ts';
import { settleAssumeEndpoints } from '../../input/pod-networks.ts';
import { addCompileCommand } from './compile-command.ts';
import { addDescribeCommand } from './describe-command.ts';
import { addDiffCommand } from './diff-command.ts';
import { exitStatus } from '../shared/exit-status.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import { applyKpcYaml, configuredCommands, findMisnamed } from './kpc-yaml.ts';
import { quieten } from './message-options.ts';
import type { MessageOptions } from './message-options.ts';
import { settleBooleans } from './optional-values.ts';
import { reportDiagnostics } from './report-diagnostics.ts';
import type { Program } from '../shared/run-commands.ts';
import { runCommands } from '../shared/run-commands.ts';
import { say } from '../shared/terminal.ts';
import type { Terminal } from '../shared/terminal.ts';
import { addVersionCommand } from '../shared/version-command.ts';

/** Runs the command of kpc that the command line names. */
export function runProgram(argv: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  return runCommands(kpcProgram(terminal), settleBooleans(settleAssumeEndpoints(argv)), terminal);
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
      command.hook('preAction', (program, called) => readKpcYaml(program, called, terminal));
    },
  };
}

/** Gives the command that is called the flags of kpc.yaml, and says which file that was. */
async function readKpcYaml(program: Command, called: Command, terminal: Terminal): Promise<void> {
  const { kpcYaml: named } = called.opts<{ readonly kpcYaml?: string }>();
  if (!configuredCommands.some((name) => name === called.name())) return;
  const misnamed = named === undefined ? findMisnamed() : undefined;
  if (misnamed !== undefined) {
    const text = `kpc: warning: ${printable(misnamed)} is not read: kpc reads flags from a file called kpc.yaml, so rename it, or name it with --kpc-yaml\n`;
    await say(quieten(terminal, called.opts<MessageOptions>()), text);
  }
  const found = applyKpcYaml(called, program, named);
  if (!found) return;
  const { diagnostics, file, used, places } = found;
  if (diagnostics.length > 0) {
    await reportDiagnostics(diagnostics, new Map([[file.name, file]]), terminal);
    throw new CommanderError(exitStatus.badInput, 'kpc.yaml', `${file.name} is wrong`);
  }
  called.setOptionValue('flagPlaces', places);
  const quiet = quieten(terminal, called.opts<MessageOptions>());
  if (used.length > 0) await say(quiet, `kpc: note: from ${printable(file.name)}: ${used.join(', ')}\n`);
}
