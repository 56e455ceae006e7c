// docs/commands.md is made of the programs' own commands and flags. UPDATE_DOCS=1 writes it.
import type { Command, Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { pagePaths, readExamples, readPage } from '../support/markdown.ts';
import { readPrograms, visibleFlags } from '../../packaging/programs.ts';
import { expectWrittenPage, plainText, tableRow } from '../support/written-page.ts';

const programs = await readPrograms();
const [kpc] = programs;

/** Flags that say how manifests are compiled: the same in each command that compiles some. */
const shared = commonFlags(['compile', 'diff', 'describe'].map((name) => findCommand(name)));

function findCommand(name: string): Command {
  const command = kpc?.commands.find((each) => each.name() === name);
  if (command === undefined) throw new Error(`kpc has no command ${name}`);
  return command;
}

function commonFlags(commands: readonly Command[]): ReadonlySet<string> {
  const texts = commands.map((command) => new Set(visibleFlags(command).map(flagText)));
  const [first = new Set<string>(), ...others] = texts;
  return new Set([...first].filter((text) => others.every((other) => other.has(text))));
}

/** All that the page says about a flag. */
function flagText(flag: Option): string {
  return `${flag.flags}\n${describeFlag(flag)}`;
}

function describeFlag({ description, argChoices, defaultValue, defaultValueDescription, negate }: Option): string {
  const notes: string[] = [];
  if (argChoices) notes.push(`one of ${argChoices.map((choice) => `\`${choice}\``).join(', ')}`);
  if (defaultValue !== undefined && defaultValue !== false && !negate && !description.includes('(default:')) {
    notes.push(`default: ${defaultValueDescription ?? `\`${String(defaultValue)}\``}`);
  }
  return [plainText(description), ...notes].join('; ');
}

function flagTable(flags: readonly Option[]): string {
  if (flags.length === 0) return '';
  const rows = flags.map((flag) => tableRow([`\`${flag.flags}\``, describeFlag(flag)]));
  return ['| flag | meaning |', '| --- | --- |', ...rows, ''].join('\n');
}

function describeCommand(program: string, command: Command): string {
  const own = visibleFlags(command).filter((flag) => !shared.has(flagText(flag)));
  // A command may say of one that its default differs.
  const sharedNames = new Set([...shared].map((text) => text.split('\n')[0]));
  const isCompiling = visibleFlags(command).filter(({ flags }) => sharedNames.has(flags)).length === shared.size;
  const args = command.registeredArguments.map((argument) =>
    tableRow([
      `\`${argument.required ? `<${argument.name()}>` : `[${argument.name()}]`}\``,
      plainText(argument.description),
    ]),
  );
  return [
    `### ${program} ${command.name()}\n`,
    `\`${program} ${command.name()} ${command.usage()}\`\n`,
    `${plainText(command.description())}\n`,
    args.length === 0 ? '' : ['| argument | meaning |', '| --- | --- |', ...args, ''].join('\n'),
    flagTable(own),
    isCompiling ? 'It also takes all [flags for manifests](#flags-for-manifests).\n' : '',
  ]
    .filter(Boolean)
    .join('\n');
}

function page(): string {
  const parts = programs.map(({ name, description, commands }) =>
    [`## ${name}\n`, `${description}\n`, ...commands.map((command) => describeCommand(name, command))].join('\n'),
  );
  const flags = visibleFlags(findCommand('compile')).filter((flag) => shared.has(flagText(flag)));
  return `# Commands and flags

Written by \`npm run docs\` from the programs themselves. \`--help\` after a command prints the same in a terminal.
What the exit statuses mean is in [diagnostics.md](diagnostics.md).

${parts.join('\n')}
## Flags for manifests

Every command that compiles manifests takes these. A flag wins over kube-proxy's
configuration, and the configuration over kube-proxy's default.

${flagTable(flags)}`;
}

describe('commands and flags', () => {
  test('docs/commands.md has all of them', () => expectWrittenPage('docs/commands.md', page()));

  test('are few enough in common to be worth a table', () => {
    expect(shared.size).toBeGreaterThan(20);
  });

  test.each(pagePaths())('%s uses no others', (path) => {
    const lines = readExamples(readPage(path)).flatMap(({ commands }) =>
      commands.text.replaceAll('\\\n', ' ').split('\n'),
    );
    for (const line of lines) {
      for (const [, name = '', rest = ''] of line.matchAll(/(?:^|[|;&]|sudo|npx|exec) *(kpc|kpc-apply) ([^|;&#]*)/g)) {
        const words = rest.trim().split(/\s+/);
        const command = programs
          .find((program) => program.name === name)
          ?.commands.find((each) => each.name() === words[0]);
        const known = new Set(command?.options.flatMap(({ short, long }) => [short, long]));
        const flags = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.replace(/=.*/, ''));
        if (words[0]?.startsWith('-') || words[0] === 'help') continue;
        expect(command, line).toBeDefined();
        expect(
          flags.filter((flag) => flag !== '--help' && !known.has(flag)),
          line,
        ).toEqual([]);
      }
    }
  });
});
