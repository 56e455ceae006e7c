import type { Argument, Command, Option } from 'commander';

/** A word that may come next, and what it means. */
export interface Candidate {
  readonly value: string;
  readonly help?: string | undefined;
}

/** What completes a value: of the flag or argument of that name. Without any, the shell completes file names. */
export type FindValues = (request: ValueRequest) => Promise<readonly Candidate[]>;

export interface ValueRequest {
  readonly program: Command;
  readonly called: Command;
  /** The words between the command and the word to complete. */
  readonly before: readonly string[];
  readonly flag: string | undefined;
  readonly argument: string | undefined;
  /** What has been typed of the value. */
  readonly typed: string;
}

/** No shell gives any of these characters a meaning within a word: what has others is not offered. */
const plain = /^[\w.,:/@%+=-]+$/;

/** The words that may stand in the place of the last of these, which follow the name of the program. */
export async function complete(
  program: Command,
  words: readonly string[],
  findValues: FindValues,
): Promise<readonly Candidate[]> {
  const typed = words.at(-1) ?? '';
  const [first, ...before] = words.slice(0, -1);
  const found = await findCandidates();
  return found.filter(({ value }) => value.startsWith(typed) && plain.test(value));

  async function findCandidates(): Promise<readonly Candidate[]> {
    if (first === undefined || first === 'help') {
      return typed.startsWith('-') ? flagsOf(program) : commandsOf(program);
    }
    const called = program.commands.find((command) => command.name() === first);
    if (!called) return [];
    const { flag, operands, isOver } = readWords(called, before);
    const [, name = '', start = ''] = /^(--[\w-]+=)(.*)$/s.exec(typed) ?? [];
    const option = flag ?? (isOver ? undefined : findOption(called, name.slice(0, -1)));
    const request = { program, called, before: flag ? before.slice(0, -1) : before };
    if (option) {
      const values: readonly Candidate[] =
        option.argChoices?.map((value) => ({ value })) ??
        (await findValues({ ...request, flag: option.attributeName(), argument: undefined, typed: start || typed }));
      return values.map(({ value, help }) => ({ value: `${flag ? '' : name}${value}`, help }));
    }
    if (typed.startsWith('-') && !isOver) return flagsOf(called);
    const argument = argumentAt(called, operands);
    if (!argument) return [];
    if (argument.argChoices) return argument.argChoices.map((value) => ({ value }));
    return findValues({ ...request, flag: undefined, argument: argument.name(), typed });
  }
}

function commandsOf(program: Command): readonly Candidate[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .map((command) => ({ value: command.name(), help: command.summary() || command.description() }));
}

function flagsOf(command: Command): readonly Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', help: description }));
}

function findOption(command: Command, flag: string): Option | undefined {
  return command.options.find(({ long, short }) => flag !== '' && (long === flag || short === flag));
}

interface ReadWords {
  /** The flag that has no value yet. */
  readonly flag: Option | undefined;
  /** How many arguments there are. */
  readonly operands: number;
  /** Whether a `--` has ended the flags. */
  readonly isOver: boolean;
}

function readWords(command: Command, words: readonly string[]): ReadWords {
  let operands = 0;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '--') return { flag: undefined, operands: operands + words.length - i - 1, isOver: true };
    const option = findOption(command, word);
    if (option?.required) {
      i++;
      if (i === words.length) return { flag: option, operands, isOver: false };
    } else if (!word.startsWith('-') || word === '-') operands++;
  }
  return { flag: undefined, operands, isOver: false };
}

function argumentAt({ registeredArguments }: Command, place: number): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[place] ?? (last?.variadic ? last : undefined);
}

/** The words of a line as a shell splits it: quotes are taken off, and nothing is expanded. The last may be empty. */
export function splitShellLine(line: string): readonly string[] {
  const words = [''];
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const character = line.charAt(i);
    const add = (text: string): void => void (words[words.length - 1] += text);
    if (character === '\\' && quote !== "'") add(line.charAt(++i));
    else if (character === quote) quote = '';
    else if (quote === '' && (character === '"' || character === "'")) quote = character;
    else if (quote === '' && /\s/.test(character)) {
      if (words.at(-1) !== '') words.push('');
    } else add(character);
  }
  return words;
}
