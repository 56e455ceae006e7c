import type { Command } from 'commander';

/**
 * The values of flags that a command line gives and the flags do not take. The parser would end at the first one: these are
 * kept until all of the command line is read.
 */
export class WrongValues {
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
