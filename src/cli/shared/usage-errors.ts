import { type Command, type CommanderError, InvalidArgumentError, Option } from 'commander';
import { findNearest } from '../../base/names.ts';
import { countBeforeEnd } from './path-words.ts';
import { didYouMean } from '../../say/words/rows.ts';

export interface Slips {
  readonly commands: Readonly<Record<string, string>>;
  readonly options: Readonly<Record<string, string>>;
  readonly file: string;
}

export interface UsageFault {
  readonly reason: string;
  readonly help?: string | undefined;
}

/** The parts of a call that can be read even from a command line with errors. */
export interface UsageCall {
  /** "kpc trace", or only the program's name if no command is named. */
  readonly command: string;
  readonly output: string | undefined;
}

interface CommandUsage {
  readonly program: Command;
  readonly argv: readonly string[];
  readonly slips: Slips | undefined;
}

export class ValueOption extends Option {
  /** Whether the option may be given several times, and keeps all values. */
  isList = false;
}

export function describeUsageError(error: CommanderError, usage: CommandUsage): UsageFault {
  return { reason: error.message.replace(/^error: /, ''), help: adviseUsage(error, usage) };
}

export function readCall({ program, argv }: Pick<CommandUsage, 'program' | 'argv'>): UsageCall {
  const named = program.commands.find((each) => each.name() === argv[0]);
  const words = argv.slice(0, countBeforeEnd(argv));
  const output = words.flatMap((word, i) => {
    const before = words[i - 1] === '--output' ? word : undefined;
    return before ?? /^--output=(.*)$/s.exec(word)?.[1] ?? [];
  });
  return { command: named ? `${program.name()} ${named.name()}` : program.name(), output: output.at(-1) };
}

function adviseUsage({ code }: CommanderError, { program, argv, slips }: CommandUsage): string | undefined {
  const command = program.commands.find((each) => each.name() === argv[0]) ?? program;
  switch (code) {
    case 'commander.missingArgument':
    case 'commander.excessArguments':
      return `write ${[program.name(), command.name(), ...argumentWords(command)].join(' ')}; see --help`;
    case 'commander.unknownCommand': {
      const [word = ''] = program.args;
      const slip = /[./]/.test(word) ? slips?.file : findSlip(word, slips?.commands);
      const known = program.createHelp().visibleCommands(program);
      const near = findNearest(
        word,
        known.map((each) => each.name()),
      );
      return slip ?? didYouMean(near, '--help lists the commands');
    }
    case 'commander.unknownOption': {
      const later = command === program && program.commands.find((each) => argv.includes(each.name()));
      if (later) return `write flags after the command: ${program.name()} ${later.name()} ${argv[0] ?? ''}`;
      const word = command.args.find((each) => /^-./.test(each)) ?? '';
      const known = command.createHelp().visibleOptions(command);
      const near = findNearest(
        word,
        known.flatMap(({ long }) => long ?? []),
      );
      return findSlip(word, slips?.options) ?? didYouMean(near);
    }
    default:
      return undefined;
  }
}

function argumentWords({ registeredArguments }: Command): readonly string[] {
  return registeredArguments.map((argument) => argument.name().toUpperCase());
}

function findSlip(word: string, known: Readonly<Record<string, string>> = {}): string | undefined {
  return Object.hasOwn(known, word) ? known[word] : undefined;
}

/** Collects all errors in flags and arguments, in command-line order. The parser alone would stop at the first. */
export function keepWrongValues(program: Command): readonly UsageFault[] {
  const wrong: UsageFault[] = [];
  for (const { options, registeredArguments } of program.commands) {
    for (const option of options) {
      if (option.required || option.optional) option.argParser(readOnce(option));
      keepWrong(option, (value) => `option '${option.flags}' argument '${value}' is invalid`, wrong);
    }
    for (const argument of registeredArguments)
      keepWrong(argument, (value) => `'${value}' is invalid as <${argument.name()}>`, wrong);
  }
  return wrong;
}

/** Refuses a second value of an option that takes one, and an empty value, which an unset variable of a script leaves. */
function readOnce(option: Option) {
  const { parseArg = (value: string): unknown => value } = option;
  let first: string | undefined;
  return (value: string, previous: unknown): unknown => {
    if (value.trim() === '')
      throw new InvalidArgumentError('Check that the shell variable for it is set, or leave the flag out.');
    if (first !== undefined && first !== value && !(option instanceof ValueOption && option.isList))
      throw new InvalidArgumentError(`The flag is given twice and takes one value: name "${first}" or "${value}".`);
    const parsed = parseArg(value, previous);
    first = value;
    return parsed;
  };
}

function keepWrong(of: Pick<Option, 'parseArg'>, say: (value: string) => string, wrong: UsageFault[]): void {
  const { parseArg } = of;
  if (!parseArg) return;
  of.parseArg = <Value>(value: string, previous: Value): Value => {
    try {
      return parseArg(value, previous);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      wrong.push({ reason: say(value), help: asHelp(error.message) });
      return previous;
    }
  };
}

function asHelp(sentence: string): string {
  return sentence.replace(/\.$/, '').replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
}
