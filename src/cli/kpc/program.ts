import type { Command } from 'commander';
import { printable } from '../../base/printable.ts';
import { checkFlags, type GivenFlags } from '../../compile/check-flags.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { settleAssumeEndpoints } from '../../input/configuration/pod-networks.ts';
import { addBundleCommand } from './bundle-command.ts';
import { addCompileCommand } from './compile-command.ts';
import { addDescribeCommand } from './describe-command.ts';
import { addDiffCommand } from './diff-command.ts';
import { addExplainCommand } from './explain-command.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import { applyKpcYaml, configuredCommands, findMisnamed, type KpcYaml } from './kpc-yaml.ts';
import { makeStrict, quieten, type MessageOptions, reportDiagnostics } from './messages.ts';
import { addTestCommand } from './test-command.ts';
import { addEquivalenceCommand } from './equivalence-command.ts';
import { addMigrateCommand } from './migrate-command.ts';
import { addTraceCommand } from './trace-command.ts';
import { addCompletionCommand } from '../shared/completion-command.ts';
import type { FindValues } from '../shared/complete.ts';
import { showTimeTaken } from '../shared/long-work.ts';
import { runCommands, type Program } from '../shared/run-commands.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { addVersionCommand } from '../shared/version-command.ts';
import { isPath } from '../shared/near-misses.ts';

/** Runs the command of kpc that the command line names. */
export function runProgram(argv: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  const words = settleBooleans(settleAssumeEndpoints(argv));
  return showTimeTaken(`kpc ${argv[0] ?? ''}`, terminal, (watched) => runCommands(kpcProgram(watched), words, watched));
}

/** The commands of kpc, with their flags. */
export function kpcProgram(terminal: Terminal): Program {
  return {
    name: 'kpc',
    description: 'Compiles Kubernetes Services to the rules that kube-proxy programs, offline.',
    addCommands: (command, done) => {
      addCompileCommand(command, terminal, done);
      addBundleCommand(command, terminal, done);
      addDiffCommand(command, terminal, done);
      addDescribeCommand(command, terminal, done);
      addTraceCommand(command, terminal, done);
      addTestCommand(command, terminal, done);
      addEquivalenceCommand(command, terminal, done);
      addMigrateCommand(command, terminal, done);
      addExplainCommand(command, terminal, runProgram, done);
      addCompletionCommand(command, terminal, done, findValues);
      addVersionCommand(command, terminal, done);
    },
    checkCommand: (program, called, hasWrongValues) => readKpcYaml(program, called, hasWrongValues, terminal),
  };
}

/** Loads what completes names only for the shell that asks. */
const findValues: FindValues = async (request) => {
  const { findKpcValues } = await import('./complete-values.ts');
  return findKpcValues(request);
};

/**
 * Gives the command the flags of kpc.yaml, and says which file that was. True if a flag is wrong, there or on the command
 * line: all that are have been reported.
 */
async function readKpcYaml(
  program: Command,
  called: Command,
  hasWrongValues: boolean,
  terminal: Terminal,
): Promise<boolean> {
  const { kpcYaml: named } = called.opts<{ readonly kpcYaml?: string }>();
  if (!configuredCommands.some((name) => name === called.name())) return false;
  const misnamed = named === undefined ? findMisnamed() : undefined;
  if (misnamed !== undefined) {
    const text = `warning: ${printable(misnamed)} is not read: kpc reads flags from a file called kpc.yaml, so rename it, or name it with --kpc-yaml\n`;
    await say(quieten(terminal, called.opts<MessageOptions>()), text);
  }
  const found = applyKpcYaml(called, program, named);
  if (hasWrongValues || (found && found.diagnostics.length > 0)) {
    await reportWrongFlags(called, found, terminal);
    return true;
  }
  if (!found) return false;
  const { file, used, places } = found;
  called.setOptionValue('flagPlaces', places);
  const quiet = quieten(terminal, called.opts<MessageOptions>());
  if (used.length > 0) await say(quiet, `note: from ${printable(file.name)}: ${used.join(', ')}\n`);
  return false;
}

/** Reports what is wrong with kpc.yaml and with the values of flags. */
async function reportWrongFlags(called: Command, found: KpcYaml | undefined, terminal: Terminal): Promise<void> {
  const options = called.opts<GivenFlags & { readonly output?: string }>();
  const wrong = makeStrict(checkFlags(options), { flagPlaces: found?.places ?? new Map() });
  const diagnostics = sortDiagnostics([...(found?.diagnostics ?? []), ...wrong]);
  const files = new Map(found ? [[found.file.name, found.file]] : []);
  await reportDiagnostics(diagnostics, files, terminal);
  if (called.name() !== 'compile' || diagnostics.length === 0) return;
  const { reportFailure } = await import('./messages.ts');
  await reportFailure(options.output, diagnostics, terminal);
}

/** Flags whose value may be left out: it is true then. */
const booleanFlags: ReadonlySet<string> = new Set([
  '--masquerade-all',
  '--iptables-localhost-nodeports',
  '--ipvs-strict-arp',
  '--conntrack-tcp-be-liberal',
]);

/** The words of a command line, where a flag that may be true or false does not take the name of a file for its value. */
function settleBooleans(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return argv.map((word, i) => {
    const next = argv[i + 1];
    if ((end >= 0 && i >= end) || !booleanFlags.has(word) || next === undefined) return word;
    return !/^(?:true|false)$/i.test(next) && !next.startsWith('-') && isPath(next) ? `${word}=true` : word;
  });
}
