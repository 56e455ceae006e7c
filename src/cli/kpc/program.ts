import type { Command } from 'commander';
import { printable } from '../../base/printable.ts';
import { checkFlags, type GivenFlags } from '../../compile/compile.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { settleAssumeEndpoints } from '../../input/configuration/range-flags.ts';
import { proxyFlags } from '../../kube-proxy/settings/values.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { releases } from '../../kube-proxy/releases.ts';
import type { Done, ExitStatus } from '../shared/exit-status.ts';
import { applyKpcYaml, configuredCommands, findKpcYaml, type KpcYaml } from './kpc-yaml.ts';
import { makeStrict, quieten, type MessageOptions, reportDiagnostics, reportFailure } from './messages.ts';
import { addCompletionCommand, type FindValues } from '../shared/completion.ts';
import { runCommands, type Program } from '../shared/run-commands.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { addVersionCommand } from '../shared/version-command.ts';
import { isPath } from '../shared/path-words.ts';

/** Runs the command of kpc that the command line names. */
export function runProgram(argv: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  return runCommands(kpcProgram(terminal), settleRuleLine(settleBooleans(settleAssumeEndpoints(argv))), terminal);
}

/** The commands of kpc, with their flags. */
export function kpcProgram(terminal: Terminal): Program {
  return {
    name: 'kpc',
    description: 'Compiles Kubernetes Services to the rules that kube-proxy programs, offline.',
    addCommands: async (program, done, argv) => {
      const [called = ''] = argv;
      // Most calls need one command, and starting takes longer with the code and the flags of all.
      const own = Object.hasOwn(commands, called) && !mayUseKpcYaml(argv) ? commands[called] : undefined;
      for (const load of own ? [own] : Object.values(commands)) (await load())(program, terminal, done, runProgram);
      if (own) return;
      addCompletionCommand(program, terminal, done, findValues);
      addVersionCommand(program, terminal, done);
    },
    checkCommand: (program, called) => readKpcYaml(program, called, terminal),
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
  migrate: async () => (await import('./migrate-command.ts')).addMigrateCommand,
  explain: async () => (await import('./explain-command.ts')).addExplainCommand,
};

/** Whether a kpc.yaml may hold flags of this call: it may name those of other commands too. */
function mayUseKpcYaml(argv: readonly string[]): boolean {
  return argv.some((word) => word.startsWith('--kpc-yaml')) || findKpcYaml() !== undefined;
}

/** Completes what only kpc knows: codes, modes and releases. */
const findValues: FindValues = async (of) => {
  switch (of) {
    case 'explain code': {
      const { diagnosticCodes, entryOf } = await import('../../diagnostics/codes.ts');
      return diagnosticCodes.map((value) => ({ value, help: entryOf(value).meaning }));
    }
    case 'proxyMode':
    case 'equivalence from':
    case 'equivalence to':
      return proxyModes.map((value) => ({ value }));
    case 'kubernetesVersion':
    case 'toKubernetesVersion':
      return releases.map((value) => ({ value }));
    default:
      return [];
  }
};

/** Gives the command the flags of kpc.yaml, and says which file that was. True if that is wrong, which has been reported. */
async function readKpcYaml(program: Command, called: Command, terminal: Terminal): Promise<boolean> {
  const { kpcYaml: named } = called.opts<{ readonly kpcYaml?: string }>();
  if (!configuredCommands.some((name) => name === called.name())) return false;
  const found = applyKpcYaml(called, program, named);
  if (!found) return false;
  if (found.diagnostics.length > 0) {
    await reportWrongFlags(called, found, terminal);
    return true;
  }
  const { file, places } = found;
  called.setOptionValue('flagPlaces', places);
  const quiet = quieten(terminal, called.opts<MessageOptions>());
  const used = [...places.keys()].join(', ');
  if (used !== '') await say(quiet, `note: from ${printable(file.name)}: ${used}\n`);
  return false;
}

/** Reports what is wrong with kpc.yaml and with the values of flags. */
async function reportWrongFlags(
  called: Command,
  { file, diagnostics, places }: KpcYaml,
  terminal: Terminal,
): Promise<void> {
  const options = called.opts<GivenFlags & { readonly output?: string }>();
  const wrong = sortDiagnostics([...diagnostics, ...makeStrict(checkFlags(options), { flagPlaces: places })]);
  await reportDiagnostics(wrong, new Map([[file.name, file]]), terminal);
  if (called.name() === 'compile') await reportFailure(options.output, wrong, terminal);
}

/** Flags whose value may be left out: it is true then. */
const booleanFlags = new Set(proxyFlags.filter(({ kind }) => kind === 'switch').map(({ name }) => name));

/** The words of a command line, where a flag that may be true or false does not take the name of a file for its value. */
function settleBooleans(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return argv.map((word, i) => {
    const next = argv[i + 1];
    if ((end >= 0 && i >= end) || !booleanFlags.has(word) || next === undefined) return word;
    return !/^(?:true|false)$/i.test(next) && !next.startsWith('-') && isPath(next) ? `${word}=true` : word;
  });
}

/** The words of a command line, where a line of iptables-save, which begins like a flag, is an argument. */
function settleRuleLine(argv: readonly string[]): readonly string[] {
  const line = argv.find((word) => /^-[AI] ./.test(word));
  return line === undefined || argv.includes('--') ? argv : [...argv.filter((word) => word !== line), '--', line];
}
