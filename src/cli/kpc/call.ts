import { Argument, type Command } from 'commander';
import { withSlashes } from '../../base/system-paths.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import { repositoryPaths, type ReadFiles, type Snapshot } from '../../library/node/open.ts';
import { keyOfFinding } from '../../library/open.ts';
import { Refusal } from '../../library/refusal.ts';
import type { SaidByCommand } from '../../say/formats/json.ts';
import type { Answered, AnswerOutput } from '../../say/formats/answer.ts';
import { sayFindings, type SaidFinding } from '../../say/words/said.ts';
import type { Flag } from '../../library/options.ts';
import { exitStatus, say, type Done, type ExitStatus, type Terminal } from '../shared/terminal.ts';
import { addFlags, givenFlags, pipedWords } from './flags.ts';
import {
  formatFailure,
  formatRefusal,
  makeStrict,
  quieten,
  wantedFindings,
  renderSaid,
  sayTaken,
  type MessageOptions,
} from './messages.ts';

interface Reported {
  readonly findings: Finding[];
  readonly refusals: SaidFinding[];
}

class Ended extends Error {}

/** One call of a command, with its command line and its terminal. Only code in this folder uses the terminal. */
export class Call<Options extends MessageOptions = MessageOptions> {
  readonly command: Command;
  readonly program: Command;
  readonly argv: readonly string[];
  readonly options: Options;
  private readonly loud: Terminal;
  /** The terminal for messages. With --quiet, prints only results and errors. */
  readonly terminal: Terminal;
  /** Runs kpc. Used by a command that shows the output of another command. */
  readonly run: RunProgram;
  private readonly reported: Reported;

  constructor(
    command: Command,
    program: Command,
    terminal: Terminal,
    argv: readonly string[],
    run: RunProgram,
    options: Options = {
      readStdin: terminal.readStdin,
      into: { command: pipedWords(command) },
      ...command.opts<Options>(),
    },
    reported: Reported = { findings: [], refusals: [] },
  ) {
    this.command = command;
    this.program = program;
    this.argv = argv;
    this.options = options;
    this.loud = terminal;
    this.terminal = quieten(terminal, options);
    this.run = run;
    this.reported = reported;
  }

  get said(): SaidByCommand {
    const { findings, refusals } = this.reported;
    const once = new Map(wantedFindings(findings, this.terminal).map((each) => [keyOfFinding(each), each])).values();
    return { command: `kpc ${this.command.name()}`, findings: [...sayFindings([...once]), ...refusals] };
  }

  /** Ends the call without an answer. In a format for programs, prints the reasons. `looked`: the nodes that lack the requested object. */
  async fail(status: ExitStatus, looked: readonly Snapshot[] = []): Promise<ExitStatus> {
    await this.out(await formatFailure(this.options.output, this.said, looked));
    return status;
  }

  with<More extends object>(more: More, terminal: Partial<Terminal> = {}): Call<Options & More> {
    const { command, program, argv, run, options, reported } = this;
    return new Call(command, program, { ...this.loud, ...terminal }, argv, run, { ...options, ...more }, reported);
  }

  /** Returns a call that prints each message only once. A fault in manifests recurs in every mode, for example. */
  once(): Call<Options> {
    const said = new Set<string>();
    const err = async (text: string): Promise<void> => {
      if (!said.has(text)) await this.terminal.err(text);
      said.add(text);
    };
    return this.with({}, { err });
  }

  /** Runs a part of the call. If the part fails, reports the failure and returns false. */
  async tries(part: () => Promise<void>): Promise<boolean> {
    try {
      await part();
      return true;
    } catch (error) {
      await this.refuse(error);
      return false;
    }
  }

  get words(): readonly string[] {
    return this.command.args;
  }

  get given(): readonly Flag[] {
    return givenFlags(this.command);
  }

  isGiven(key: string): boolean {
    return this.command.getOptionValueSource(key) === 'cli';
  }

  /** Joins the paths in the arguments and in -f. Paths in kpc.yaml count only if the command line has no paths. */
  inputs(named: readonly string[], file: readonly string[] | undefined): readonly string[] {
    const counts = this.isGiven('file') || named.length === 0;
    return [...named.map((path) => withSlashes(path)), ...(counts ? (file ?? []) : [])];
  }

  /** Prints an input's diagnostics. If there are errors, prints only these and ends the call. With --strict, warnings are errors. */
  async report(input: { readonly diagnostics: readonly Finding[]; readonly files: ReadFiles }): Promise<void> {
    const said = makeStrict(input.diagnostics, this.options);
    const isRefused = said.some(isError);
    // Prints, besides the errors, how many files have errors and how to continue without these files.
    const counts = said.filter((each) => !isError(each) && each.code === 'left-out');
    const shown = isRefused ? [...counts, ...said.filter(isError)] : said;
    await this.print(shown, input.files);
    if (isRefused) throw new Ended();
  }

  async print(diagnostics: readonly Finding[], files: ReadFiles): Promise<void> {
    this.reported.findings.push(...diagnostics);
    const said = renderSaid(diagnostics, files, this.terminal);
    if (said !== '') await this.terminal.err(said);
  }

  async expectNone(faults: readonly Finding[]): Promise<void> {
    await this.print(faults, new Map());
    if (faults.length > 0) throw new Ended();
  }

  async note(...notes: readonly ArgumentsOf<'reading'>[]): Promise<void> {
    await this.print(
      notes.map((each) => diagnose('reading', each)),
      new Map(),
    );
  }

  end(): never {
    throw new Ended();
  }

  /** Reports a refusal. Throws any other error again, except the end of a command. */
  async refuse(error: unknown): Promise<void> {
    if (error instanceof Refusal) {
      this.reported.refusals.push(error.finding);
      await this.terminal.err(formatRefusal(error.finding, this.terminal));
    } else if (!(error instanceof Ended)) throw error;
  }

  /** Prints a text for people that is not part of the result. Prints nothing with --quiet. */
  async say(text: string): Promise<void> {
    await say(this.terminal, text);
  }

  async sayTaken(taken: readonly string[]): Promise<void> {
    await sayTaken(taken, this.command, this.loud);
  }

  async answerAs(output: AnswerOutput, answered: Answered): Promise<void> {
    const { formatAnswer } = await import('../../say/formats/answer.ts');
    const { files: read = [] } = answered;
    const files = read.length > 0 ? read : (this.options.file ?? this.words);
    const text = await formatAnswer(output, { ...answered, files }, repositoryPaths());
    if (text !== '') await this.out(text);
  }

  /** Prints a result. `said`: a text for people that is not part of the result. */
  async answer({ printed, said }: { readonly printed: string; readonly said: string }): Promise<void> {
    if (printed !== '') await this.out(printed);
    if (said !== '') await this.say(said);
  }

  async out(text: string): Promise<void> {
    await this.terminal.out(text);
  }
}

type RunProgram = (argv: readonly string[], terminal: Terminal) => Promise<unknown>;

interface Definition<Options extends MessageOptions> {
  readonly name: string;
  readonly summary?: string;
  readonly description?: string;
  /** Each argument: its form in the help, such as "<from>" or "[input...]", its meaning and its choices. */
  readonly arguments?: readonly (readonly [usage: string, help: string, choices?: readonly string[]])[];
  readonly flags?: readonly Flag[];
  readonly isHidden?: boolean;
  /** Returns the exit status. Throws a Refusal if the input or the call is wrong. */
  readonly run: (call: Call<Options>) => Promise<ExitStatus>;
}

export type AddCommand = (
  program: Command,
  terminal: Terminal,
  done: Done,
  argv?: readonly string[],
  run?: RunProgram,
) => void;

export function defineCommand<Options extends MessageOptions>({
  name,
  summary,
  description,
  arguments: words = [],
  flags = [],
  isHidden = false,
  run: runCommand,
}: Definition<Options>): AddCommand {
  return (program, terminal, done, argv = [], run = async () => {}) => {
    const command = program.command(name, { hidden: isHidden });
    if (summary !== undefined) command.summary(summary);
    if (description !== undefined) command.description(description);
    for (const [usage, help, choices] of words) {
      const argument = new Argument(usage, help);
      command.addArgument(choices ? argument.choices(choices) : argument);
    }
    addFlags(command, flags).action(async () => {
      const call = new Call<Options>(command, program, terminal, argv, run);
      done(await orRefuse(runCommand(call), call));
    });
  };
}

async function orRefuse(running: Promise<ExitStatus>, call: Call<MessageOptions>): Promise<ExitStatus> {
  try {
    return await running;
  } catch (error) {
    await call.refuse(error);
    return call.fail(exitStatus.badInput);
  }
}
