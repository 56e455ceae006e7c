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
 * The options of a command as they are in a revision: the flags of the command line, and those of the kpc.yaml that the revision
 * has. Undefined if it has none, or if the command line names one.
 */
export function optionsInTree(command: Command, program: Command, tree: FileTree) {
  if (command.getOptionValueSource('kpcYaml') === 'cli') return undefined;
  const twin = addFlags(new Command(command.name()), flagsOf(command));
  twin.args = [...command.args];
  for (const { key } of givenFlags(command)) twin.setOptionValueWithSource(key, command.getOptionValue(key), 'cli');
  const found = applyKpcYaml(twin, program, undefined, tree);
  return found && { ...found, options: twin.opts() };
}
