import { Command } from 'commander';
import type { FileTree } from '../../library/node/open.ts';
import { isConfigured } from '../../library/node/kpc-yaml-values.ts';
import type { ConfiguredCommand } from '../../library/node/kpc-yaml-schema.ts';
import { readKpcYaml, takenWords, type KpcYaml } from '../../library/node/kpc-yaml.ts';
import type { Flag } from '../../library/options.ts';
import type { Call } from './call.ts';
import { addFlags, flagsOfCommand, givenFlags } from './flags.ts';

export { findMisnamed, mayHoldFlags, takenWords, type KpcYaml } from '../../library/node/kpc-yaml.ts';
export { isConfigured };

export function configuredOf(program: Command): readonly ConfiguredCommand[] {
  return program.commands.filter((each) => isConfigured(each.name())).map(asConfigured);
}

/** Excludes flags that would let a repository's kpc.yaml run a program. */
function asConfigured(command: Command): ConfiguredCommand {
  return { name: command.name(), flags: flagsOfCommand(command).filter(({ isOfCall }) => !isOfCall) };
}

/** Applies kpc.yaml's flags that the command line lacks. Undefined if there is no kpc.yaml. */
export function applyKpcYaml(
  command: Command,
  program: Command,
  asked: string | undefined,
  tree?: FileTree,
): KpcYaml | undefined {
  if (asked === 'none') return undefined;
  const call = {
    ...asConfigured(command),
    all: flagsOfCommand(command),
    has: ({ key }: Flag) => command.getOptionValueSource(key) === 'cli',
    hasSides:
      command.name() === 'diff'
        ? command.getOptionValue('toKubernetesVersion') === undefined || command.args.length > 0
        : tree !== undefined,
  };
  const found = readKpcYaml(call, configuredOf(program), asked, tree);
  for (const [key, value] of found?.values ?? []) command.setOptionValueWithSource(key, value, 'config');
  if (found) command.setOptionValueWithSource('configuredIgnores', found.ignores, 'config');
  return found;
}

/** Uses a revision's kpc.yaml, not the working folder's. Undefined if the revision has none, or if the command line names one. */
function optionsInTree(command: Command, program: Command, tree: FileTree) {
  if (command.getOptionValueSource('kpcYaml') === 'cli') return undefined;
  const twin = addFlags(new Command(command.name()), flagsOfCommand(command));
  twin.args = [...command.args];
  for (const { key } of givenFlags(command)) twin.setOptionValueWithSource(key, command.getOptionValue(key), 'cli');
  const found = applyKpcYaml(twin, program, undefined, tree);
  const elsewhere = givenFlags(command, ['config']);
  // A command that shows one side reads the working folder's file.
  if (elsewhere.length > 0) twin.setOptionValueWithSource('kpcYaml', 'none', 'config');
  const without = Object.fromEntries(elsewhere.map(({ key }) => [key, undefined]));
  return found && { ...found, command: twin, options: { ...without, ...twin.opts() } };
}

/** How to read sides that are revisions: with the flags of each revision's kpc.yaml. Notes the flags taken from these. */
export function readRevisions(call: Pick<Call<object>, 'command' | 'program' | 'sayTaken'>) {
  const { command, program } = call;
  const commands = new Map<string, Command>();
  const taken: string[] = [];
  const optionsOf = async (tree: FileTree, path: string) => {
    const own = optionsInTree(command, program, tree);
    if (!own) return undefined;
    commands.set(path, own.command);
    await call.sayTaken(takenWords(own));
    taken.push(...takenWords(own));
    return own;
  };
  return { optionsOf, taken, commandOf: (path: string) => commands.get(path) ?? command };
}
