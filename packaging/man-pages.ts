import type { Command } from 'commander';
import { version } from '../src/base/version.ts';
import { examplesOf, notesOfCommand } from '../src/cli/shared/run-commands.ts';
import { readPrograms, type ProgramCommands } from './programs.ts';

/** Commands of users are in section 1, those of the administrator in section 8. */
const sections: Readonly<Record<string, number>> = { kpc: 1, 'kpc-apply': 8 };

/** What an exit status means to a program, from 0 on. */
const exitStatuses: Readonly<Record<string, readonly string[]>> = {
  kpc: ['Done; nothing differs; no problems.', 'A difference or a finding.', 'The input or the command line is wrong.'],
  'kpc-apply': [
    'Done; nothing differs; no problems.',
    'A difference or a finding.',
    'The bundle or the command line is wrong.',
    'Could not apply, and the node is as it was.',
    'Could neither apply nor roll everything back.',
  ],
};

/** Files that a page ends with, by program. */
const files: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  kpc: [['kpc.yaml', 'Flags for the repository that it is in.']],
  'kpc-apply': [
    ['/etc/kpc/bundle', 'The bundle that kpc-apply.service keeps on the node.'],
    ['/var/lib/kpc', 'What kpc-apply made on this node, and how to go back.'],
  ],
};

/** The manual pages of both programs and their commands, from what --help prints: file names and roff. */
export async function manPages(date: string): Promise<ReadonlyMap<string, string>> {
  return new Map(
    (await readPrograms()).flatMap((each): readonly (readonly [string, string])[] => [
      [`${each.name}.${sectionOf(each)}`, programPage(each, date)],
      ...each.commands.map((command): readonly [string, string] => [
        `${each.name}-${command.name()}.${sectionOf(each)}`,
        commandPage(each, command, date),
      ]),
    ]),
  );
}

function sectionOf({ name }: ProgramCommands): number {
  return sections[name] ?? 1;
}

function programPage(each: ProgramCommands, date: string): string {
  const { name, description, program, commands } = each;
  const section = sectionOf(each);
  return page(name, section, date, [
    ...nameSection(name, description),
    ...heading('SYNOPSIS', [`\\fB${escape(name)}\\fR \\fIcommand\\fR [\\fIoption\\fR...]`]),
    ...heading('DESCRIPTION', [escape(description), `Each command has a page of its own.`]),
    ...heading(
      'COMMANDS',
      commands.flatMap((command) => entry(`${name}-${command.name()}`, `(${section})`, summaryOf(command))),
    ),
    ...optionSection(program),
    ...heading(
      'EXIT STATUS',
      (exitStatuses[name] ?? []).flatMap((text, status) => entry(String(status), '', text)),
    ),
    ...heading(
      'FILES',
      (files[name] ?? []).flatMap(([path, text]) => entry(path, '', text)),
    ),
    ...seeAlso(commands.map((command) => `${name}-${command.name()}(${section})`)),
  ]);
}

function commandPage(each: ProgramCommands, command: Command, date: string): string {
  const title = `${each.name}-${command.name()}`;
  const section = sectionOf(each);
  const help = command.createHelp();
  return page(title, section, date, [
    ...nameSection(title, summaryOf(command)),
    ...heading('SYNOPSIS', [`\\fB${escape(`${each.name} ${command.name()}`)}\\fR ${escape(command.usage())}`]),
    ...heading('DESCRIPTION', paragraphs(command.description().split('\n'))),
    ...heading(
      'ARGUMENTS',
      help
        .visibleArguments(command)
        .flatMap((argument) => entry(help.argumentTerm(argument), '', help.argumentDescription(argument))),
    ),
    ...optionSection(command),
    ...heading('NOTES', paragraphs(notesOfCommand(each.name, command.name()))),
    ...exampleSection(examplesOf(each.name, command.name())),
    ...seeAlso([`${each.name}(${section})`]),
  ]);
}

function summaryOf(command: Command): string {
  return command.summary() || command.description();
}

function optionSection(command: Command): readonly string[] {
  const help = command.createHelp();
  const options = help.visibleOptions(command);
  return heading(
    'OPTIONS',
    options.flatMap((option) => entry(help.optionTerm(option), '', help.optionDescription(option))),
  );
}

/** One sentence, as apropos lists it. */
function nameSection(title: string, text: string): readonly string[] {
  const [sentence = ''] = text.split(/[:.](?: |$)/);
  return heading('NAME', [
    `${escape(title)} \\- ${escape(sentence.charAt(0).toLowerCase())}${escape(sentence.slice(1))}`,
  ]);
}

function exampleSection(lines: readonly string[]): readonly string[] {
  return heading('EXAMPLES', lines.length === 0 ? [] : ['.EX', ...lines.map(escape), '.EE']);
}

function seeAlso(pages: readonly string[]): readonly string[] {
  const words = pages.map((each) => escape(each).replace(/^(.*)(\(\d\))$/, '\\fB$1\\fR$2'));
  return heading('SEE ALSO', [words.join(', ')]);
}

function heading(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`.SH ${title}`, ...lines];
}

function entry(term: string, more: string, text: string): readonly string[] {
  return ['.TP', `\\fB${escape(term)}\\fR${escape(more)}`, escape(text)];
}

function paragraphs(texts: readonly string[]): readonly string[] {
  return texts.flatMap((line, i) => (i === 0 ? [escape(line)] : ['.PP', escape(line)]));
}

function page(title: string, section: number, date: string, lines: readonly string[]): string {
  return [`.TH ${escape(title.toUpperCase())} ${section} ${date} "kpc ${escape(version)}"`, ...lines, ''].join('\n');
}

/** The text as roff prints it: nothing in it is a request or an escape of its own, and it is one line. */
function escape(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll(/[^\0-\x7f]/gu, (character) => {
      const code = character.codePointAt(0) ?? 0;
      return `\\[u${code.toString(16).toUpperCase().padStart(4, '0')}]`;
    })
    .replace(/^\./, '\\&.');
}
