import type { Command, Option } from 'commander';
import { realHost } from '../src/apply/node/real-host.ts';
import { kpcApplyProgram } from '../src/cli/kpc-apply/program.ts';
import { kpcProgram } from '../src/cli/kpc/program.ts';
import { newProgram, type Program } from '../src/cli/shared/run-commands.ts';
import type { Terminal } from '../src/cli/shared/terminal.ts';

/** Nothing is run, so nothing is said. */
const silent: Terminal = {
  out: async () => {},
  err: async () => {},
  status: async () => {},
  readStdin: async () => '',
  colour: { out: false, err: false },
  interactive: false,
};

/** What a program's commands are, as it tells the library that parses its command line. */
export interface ProgramCommands {
  readonly name: string;
  readonly description: string;
  readonly program: Command;
  /** Those that its help shows, without help itself. */
  readonly commands: readonly Command[];
}

/** kpc and kpc-apply. */
export function readPrograms(): Promise<readonly ProgramCommands[]> {
  return Promise.all(
    [
      kpcProgram(silent),
      kpcApplyProgram({
        host: realHost,
        terminal: { ...silent, tell: async () => {}, note: async () => {} },
        onEvent: () => {},
      }),
    ].map(readCommands),
  );
}

async function readCommands(definition: Program): Promise<ProgramCommands> {
  const program = newProgram(definition);
  await definition.addCommands(program, () => {}, []);
  const visible = program.createHelp().visibleCommands(program);
  const commands = program.commands.filter((command) => visible.includes(command));
  return { name: definition.name, description: definition.description, program, commands };
}

/** The flags of a command that its help shows, without --help. */
export function visibleFlags(command: Command): readonly Option[] {
  return command.options.filter(({ hidden }) => !hidden);
}
