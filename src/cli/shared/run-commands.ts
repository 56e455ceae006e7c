import { basename } from 'node:path';
import { Command, CommanderError, Help } from 'commander';
import { exitStatus, type Done, type ExitStatus } from './exit-status.ts';
import { addHelpTexts } from './help-texts.ts';
import type { Terminal } from './terminal.ts';
import { formatError } from '../../report/render-diagnostics.ts';
import { version } from '../../base/version.ts';

/** A program with commands, each of which says how it ended by calling `done`. */
export interface Program {
  readonly name: string;
  readonly description: string;
  /** Adds at least the command that the words call, and all if they call none. */
  readonly addCommands: (program: Command, done: Done, argv: readonly string[]) => Promise<void> | void;
  /**
   * Says what else is wrong before a command runs, and whether anything is: it does not run then, nor where the command line
   * has wrong values, which have been reported.
   */
  readonly checkCommand?: (program: Command, called: Command, hasWrongValues: boolean) => Promise<boolean>;
}

/** A program as its help shows it, without its commands. */
export function newProgram({ name, description }: Program): Command {
  const command = new Command(name);
  // What kubectl calls kubectl-kpc, its users call "kubectl kpc".
  if ([process.argv0, process.argv[1]].some((path) => path !== undefined && basename(path) === `kubectl-${name}`)) {
    command.configureHelp({ commandUsage: (each) => `kubectl ${new Help().commandUsage(each)}` });
  }
  return command
    .description(description)
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help');
}

/** Parses the command line and runs the command that it names. Throws what that throws. */
export async function runCommands(
  definition: Program,
  argv: readonly string[],
  terminal: Terminal,
): Promise<ExitStatus> {
  const { addCommands, checkCommand } = definition;
  const written: Promise<void>[] = [];
  let status: ExitStatus = exitStatus.ok;
  const wrongValues = new WrongValues();
  const program: Command = newProgram(definition)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => written.push(terminal.out(text)),
      writeErr: (text) => written.push(terminal.err(text)),
      outputError: (text, writeLine) => {
        for (const each of [...wrongValues.close(), text]) writeLine(formatParserError(each));
      },
    })
    .hook('preAction', async (_, called) => {
      const wrong = wrongValues.close();
      for (const text of wrong) await terminal.err(formatParserError(text));
      const isWrong = (await checkCommand?.(program, called, wrong.length > 0)) ?? false;
      if (isWrong || wrong.length > 0) {
        throw new CommanderError(exitStatus.badInput, 'wrong-flags', 'flags have wrong values');
      }
    });
  const done: Done = (result) => {
    status = result;
  };
  await addCommands(program, done, argv);
  wrongValues.watch(program);
  addHelpTexts(program);
  if (argv.length === 0) {
    program.outputHelp({ error: true });
    await Promise.all(written);
    return exitStatus.badInput;
  }
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version end by an "error" of status 0.
    status = error.exitCode === 0 ? exitStatus.ok : exitStatus.badInput;
  }
  await Promise.all(written);
  return status;
}

const invalid = ' is invalid. ';

/**
 * The parser's error as all errors are printed. What follows its first line is what to do about it, and so is a sentence after the
 * one that calls an argument invalid.
 */
function formatParserError(text: string): string {
  const [first = '', ...advice] = text.trimEnd().split('\n');
  const end = first.lastIndexOf(invalid);
  const [wrong, ...hints] =
    end === -1 ? [first] : [first.slice(0, end + invalid.length - 2), first.slice(end + invalid.length)];
  const help = [...hints, ...advice]
    .map((line) => line.replace(/^\((.*)\)$/, '$1').replace(/\.$/, ''))
    .map((line) => line.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase()))
    .join('; ');
  return formatError((wrong ?? '').replace(/^error: /, ''), help === '' ? undefined : help);
}

/**
 * The values of flags that a command line gives and the flags do not take. The parser would end at the first one: these are
 * kept until all of the command line is read.
 */
class WrongValues {
  readonly #messages: string[] = [];
  #isOpen = true;

  /** Keeps what the flags of the program's commands refuse. */
  watch(program: Command): void {
    for (const command of program.commands) {
      for (const option of command.options) {
        const { parseArg } = option;
        if (!parseArg) continue;
        option.parseArg = <Value>(value: string, previous: Value): Value => {
          try {
            return parseArg(value, previous);
          } catch (error) {
            if (!this.#isOpen || !isRefusal(error)) throw error;
            this.#messages.push(`error: option '${option.flags}' argument '${value}' is invalid. ${error.message}\n`);
            return previous;
          }
        };
      }
    }
  }

  /** The parser's messages so far, in the order of the command line. From now on the parser ends at what a flag refuses. */
  close(): readonly string[] {
    this.#isOpen = false;
    return this.#messages.splice(0);
  }
}

function isRefusal(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && error.code === 'commander.invalidArgument';
}
