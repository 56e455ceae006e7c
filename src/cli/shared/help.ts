import { countBeforeEnd } from './path-words.ts';
import { Help, type Command, type Option } from 'commander';

/** The groups of options, in the help's order. Options without a group come first. */
export const helpGroups = {
  input: 'Input:',
  nodes: 'Many nodes:',
  output: 'Output:',
  further: 'Further options:',
  settings: 'Settings of kube-proxy:',
} as const;

const groupOrder: readonly string[] = ['Options:', ...Object.values(helpGroups)];

const usualWidth = 80;

/** The most characters in a line of help, because longer lines are hard to read. */
const mostWidth = 120;

/** The most characters in an option that has its description on the same line. A longer option has a line of its own. */
const widestTerm = 24;

export function helpWidth(width: number | undefined): number {
  return Math.min(mostWidth, width ?? usualWidth);
}

export function asksInShort(argv: readonly string[]): boolean {
  const words = argv.slice(0, countBeforeEnd(argv));
  return words.length === 0 || (words.includes('-h') && !words.includes('--help'));
}

/** Wraps the help to the width of the terminal and puts options into groups. The short form fits on one screen. */
export function layOutHelp(command: Command, isShort: boolean): void {
  command.configureHelp({ ...command.configureHelp(), formatItem, groupItems, padWidth, ...(isShort ? inShort : {}) });
  for (const each of command.commands) layOutHelp(each, isShort);
}

/** Counts the flags that the short help leaves out. */
export function hiddenInShort(command: Command): number {
  return command.options.filter((option) => !option.hidden && isGrouped(option)).length;
}

function isGrouped({ helpGroupHeading }: Option): boolean {
  return helpGroupHeading !== undefined;
}

const usual = new Help();

const inShort = {
  commandDescription: (command: Command) => command.summary() || command.description(),
  subcommandTerm: (command: Command) => command.name(),
  visibleOptions: (command: Command) => usual.visibleOptions(command).filter((option) => !isGrouped(option)),
};

function padWidth(command: Command, helper: Help): number {
  const terms = [
    ...helper.visibleOptions(command).map((option) => helper.optionTerm(option)),
    ...helper.visibleArguments(command).map((argument) => helper.argumentTerm(argument)),
    ...helper.visibleCommands(command).map((each) => helper.subcommandTerm(each)),
  ].map(({ length }) => length);
  return Math.min(widestTerm, Math.max(0, ...terms));
}

function formatItem(term: string, termWidth: number, description: string, helper: Help): string {
  if (description === '') return `  ${term}`;
  const indent = ' '.repeat(termWidth + 4);
  const wrapped = helper.boxWrap(description, Math.max(20, (helper.helpWidth ?? usualWidth) - indent.length));
  const text = wrapped.replaceAll('\n', `\n${indent}`);
  return term.length > termWidth ? `  ${term}\n${indent}${text}` : `  ${term.padEnd(termWidth)}  ${text}`;
}

function groupItems<Item extends Command | Option>(
  _all: Item[],
  visible: Item[],
  groupOf: (item: Item) => string,
): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  const ranked = visible.toSorted((a, b) => groupOrder.indexOf(groupOf(a)) - groupOrder.indexOf(groupOf(b)));
  for (const item of ranked) groups.set(groupOf(item), [...(groups.get(groupOf(item)) ?? []), item]);
  return groups;
}
