import type { Command } from 'commander';
import { printable } from '../../base/printable.ts';
import { checkFlags, type GivenFlags } from '../../compile/compile.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { settleAssumeEndpoints } from '../../input/configuration/range-flags.ts';
import { proxyFlags } from '../../kube-proxy/settings/table.ts';
import { type Done, type ExitStatus, type Terminal, say } from '../shared/terminal.ts';
import { applyKpcYaml, findKpcYaml, isConfigured, type KpcYaml } from './kpc-yaml.ts';
import { makeStrict, quieten, type MessageOptions, reportDiagnostics } from './messages.ts';
import { addCompletionCommand, type FindValues } from '../shared/completion.ts';
import { showTimeTaken } from '../shared/long-work.ts';
import { runCommands, type Program } from '../shared/run-commands.ts';
import { addVersionCommand } from '../shared/version-command.ts';
import { isPath } from '../shared/path-words.ts';

/** Runs the command of kpc that the command line names. */
export function runProgram(argv: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  const words = settleRuleLine(settleSwitches(settleAssumeEndpoints(argv)));
  return showTimeTaken(`kpc ${argv[0] ?? ''}`, terminal, (watched) => runCommands(kpcProgram(watched), words, watched));
}

/** The commands of kpc, with their flags. */
export function kpcProgram(terminal: Terminal): Program {
  return {
    name: 'kpc',
    description: 'Compiles Kubernetes Services to the rules that kube-proxy programs, offline.',
    addCommands: async (program, done, argv) => {
      const [called = ''] = argv;
      // Most calls need one command, and starting takes longer with the code and the flags of all.
      const own = Object.hasOwn(commands, called) && !mayUseKpcYaml(called, argv) ? commands[called] : undefined;
      for (const load of own ? [own] : Object.values(commands)) (await load())(program, terminal, done, runProgram);
      if (own) return;
      addCompletionCommand(program, terminal, done, findValues);
      addVersionCommand(program, terminal, done);
    },
    checkCommand: (program, called, hasWrongValues) => readKpcYaml(program, called, hasWrongValues, terminal),
  };
}

/** Adds a command to the program; `run` runs kpc, for a command that shows what it says. */
type AddCommand = (program: Command, terminal: Terminal, done: Done, run: typeof runProgram) => void;

const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  compile: async () => (await import('./compile-command.ts')).addCompileCommand,
  bundle: async () => (await import('./bundle-command.ts')).addBundleCommand,
  diff: async () => (await import('./diff-command.ts')).addDiffCommand,
  describe: async () => (await import('./describe-command.ts')).addDescribeCommand,
  trace: async () => (await import('./trace-command.ts')).addTraceCommand,
  test: async () => (await import('./test-command.ts')).addTestCommand,
  equivalence: async () => (await import('./equivalence-command.ts')).addEquivalenceCommand,
  migrate: async () => (await import('./equivalence-command.ts')).addMigrateCommand,
  'fleet-thread': async () => (await import('./fleet-run.ts')).addThreadCommand,
  explain: async () => (await import('./explain-command.ts')).addExplainCommand,
};

/** Whether a kpc.yaml may hold flags of this call: it may name those of other commands too. */
function mayUseKpcYaml(called: string, argv: readonly string[]): boolean {
  if (!isConfigured(called)) return false;
  return argv.some((word) => word.startsWith('--kpc-yaml')) || findKpcYaml() !== undefined;
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
  if (!isConfigured(called.name())) return false;
  const found = applyKpcYaml(called, program, named);
  if (hasWrongValues || (found && found.diagnostics.length > 0)) {
    await reportWrongFlags(called, found, terminal);
    return true;
  }
  if (!found) return false;
  const { file, places } = found;
  called.setOptionValue('flagPlaces', places);
  const quiet = quieten(terminal, called.opts<MessageOptions>());
  const used = [...places.keys()].join(', ');
  if (used !== '') await say(quiet, `note: from ${printable(file.name)}: ${used}\n`);
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
const switches = new Set(proxyFlags.filter(({ kind }) => kind === 'switch').map(({ name }) => name));

/** The words of a command line, where a flag that may be true or false does not take the name of a file for its value. */
function settleSwitches(argv: readonly string[]): readonly string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  return argv.map((word, i) => {
    const next = argv[i + 1] ?? 'true';
    const isFile = i < end && switches.has(word) && !/^(?:true$|false$|-)/i.test(next) && isPath(next);
    return isFile ? `${word}=true` : word;
  });
}

/** The words of a command line, where a line of iptables-save, which begins like a flag, is an argument. */
function settleRuleLine(argv: readonly string[]): readonly string[] {
  const line = argv.find((word) => /^-[AI] ./.test(word));
  return line === undefined || argv.includes('--') ? argv : [...argv.filter((word) => word !== line), '--', line];
}
