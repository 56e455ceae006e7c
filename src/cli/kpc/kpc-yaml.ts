import { Command } from 'commander';
import type { FileTree } from '../../library/node/open.ts';
import { isConfigured } from '../../library/node/kpc-yaml-values.ts';
import type { ConfiguredCommand } from '../../library/node/kpc-yaml-schema.ts';
import { readKpcYaml, type KpcYaml } from '../../library/node/kpc-yaml.ts';
import type { Flag } from '../../library/options.ts';
import { addFlags, flagsOf, givenFlags } from './flags.ts';

export { findMisnamed, mayHoldFlags, takenWords, type KpcYaml } from '../../library/node/kpc-yaml.ts';
export { isConfigured };

/** The commands of a program that a kpc.yaml configures. */
export function configuredOf(program: Command): readonly ConfiguredCommand[] {
  return program.commands.filter((each) => isConfigured(each.name())).map(asConfigured);
}

/** None of its flags by which whoever writes the kpc.yaml of a repository could run a program. */
function asConfigured(command: Command): ConfiguredCommand {
  return { name: command.name(), flags: flagsOf(command).filter(({ isOfCall }) => !isOfCall) };
}

/** Gives a command the flags that kpc.yaml holds and the command line does not. Undefined if there is none. */
export function applyKpcYaml(
  command: Command,
  program: Command,
  asked: string | undefined,
  tree?: FileTree,
): KpcYaml | undefined {
  if (asked === 'none') return undefined;
  const call = {
    ...asConfigured(command),
    all: flagsOf(command),
    has: ({ key }: Flag) => command.getOptionValueSource(key) === 'cli',
    hasSides: command.getOptionValue('toKubernetesVersion') === undefined || command.args.length > 0,
  };
  const found = readKpcYaml(call, configuredOf(program), asked, tree);
  for (const [key, value] of found?.values ?? []) command.setOptionValueWithSource(key, value, 'config');
  if (found) command.setOptionValueWithSource('configuredIgnores', found.ignores, 'config');
  return found;
}

/**
 * The command as it is in a revision, and its options: the flags of the command line, those of the kpc.yaml that the revision has,
 * and none of the working folder's. Undefined if the revision has no kpc.yaml, or if the command line names one.
 */
export function optionsInTree(command: Command, program: Command, tree: FileTree) {
  if (command.getOptionValueSource('kpcYaml') === 'cli') return undefined;
  const twin = addFlags(new Command(command.name()), flagsOf(command));
  twin.args = [...command.args];
  for (const { key } of givenFlags(command)) twin.setOptionValueWithSource(key, command.getOptionValue(key), 'cli');
  const found = applyKpcYaml(twin, program, undefined, tree);
  const elsewhere = givenFlags(command, ['config']);
  // A command that shows one side reads the working folder's file.
  if (elsewhere.length > 0) twin.setOptionValueWithSource('kpcYaml', 'none', 'config');
  const without = Object.fromEntries(elsewhere.map(({ key }) => [key, undefined]));
  return found && { ...found, command: twin, options: { ...without, ...twin.opts() } };
}
