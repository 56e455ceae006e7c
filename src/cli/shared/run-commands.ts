import { basename } from 'node:path';
import { Command, CommanderError, Help, InvalidArgumentError } from 'commander';
import { type Done, type ExitStatus, type Terminal, exitStatus } from './terminal.ts';
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
  let takeWrongValues = (): readonly string[] => [];
  const program: Command = newProgram(definition)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => written.push(terminal.out(text)),
      writeErr: (text) => written.push(terminal.err(text)),
      outputError: (text, writeLine) => {
        for (const each of [...takeWrongValues(), text]) writeLine(formatParserError(each));
      },
    })
    .hook('preAction', async (_, called) => {
      const wrong = takeWrongValues();
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
  takeWrongValues = keepWrongValues(program);
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
 * Keeps what the flags of the program's commands refuse, where the parser would end at the first value. Returns a function that
 * returns the messages so far, in the order of the command line: after its first call, the parser ends at what a flag refuses.
 */
function keepWrongValues(program: Command): () => readonly string[] {
  let messages: string[] | undefined = [];
  for (const option of program.commands.flatMap(({ options }) => options)) {
    const { parseArg } = option;
    if (!parseArg) continue;
    option.parseArg = <Value>(value: string, previous: Value): Value => {
      try {
        return parseArg(value, previous);
      } catch (error) {
        if (!messages || !(error instanceof InvalidArgumentError)) throw error;
        messages.push(`error: option '${option.flags}' argument '${value}' is invalid. ${error.message}\n`);
        return previous;
      }
    };
  }
  return () => {
    const kept = messages ?? [];
    messages = undefined;
    return kept;
  };
}

/** Example commands, by program and command; those of kpc run in a checkout of the project. */
const examples: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  kpc: {
    compile: [
      'kpc compile -f fixtures/quickstart/svc.yaml',
      'kpc compile -f fixtures/quickstart/svc.yaml --proxy-mode iptables --print iptables',
      'kpc compile -f fixtures/cluster/shop.yaml -f fixtures/cluster/nodes.yaml --node worker-1 -o /tmp/kpc-bundle',
      'kubectl get svc,endpointslices,nodes -A -o yaml | kpc compile -f - --node worker-1 -o bundle',
    ],
    bundle: ['kpc bundle pack bundle -o node.tgz', 'kpc bundle pack bundle -o node.tgz --sign kpc.key'],
    describe: [
      'kpc describe -f fixtures/quickstart/svc.yaml',
      'kpc describe nginx -f fixtures/quickstart/svc.yaml',
      'kpc describe 10.96.0.80:80 -f fixtures/quickstart/svc.yaml --output json',
      'kpc describe --from-dump fixtures/dumps/kube-proxy-iptables-session-affinity',
    ],
    diff: [
      'kpc diff fixtures/clusterip/svc.yaml fixtures/quickstart/svc.yaml',
      'kpc diff fixtures/clusterip/svc.yaml fixtures/quickstart/svc.yaml --proxy-mode iptables --output markdown',
      'kpc diff fixtures/dumps/kube-proxy-iptables-session-affinity fixtures/quickstart/svc.yaml',
    ],
    trace: [
      'kpc trace --from pod --to svc/nginx -f fixtures/quickstart/svc.yaml',
      'kpc trace --all nginx -f fixtures/quickstart/svc.yaml --proxy-mode nftables',
      'kpc trace --from external --to 10.96.0.80 --proto icmp -f fixtures/quickstart/svc.yaml',
    ],
    test: [
      'kpc test fixtures/packet-tests/nginx.yaml --proxy-mode iptables',
      'kpc test --init -f fixtures/quickstart/svc.yaml --proxy-mode nftables',
    ],
    explain: ['kpc explain', 'kpc explain bad-value'],
    completion: ['source <(kpc completion bash)', 'kpc completion fish | source'],
    version: ['kpc version', 'kpc version --output json'],
  },
  'kpc-apply': {
    apply: [
      'kpc-apply apply bundle --dry-run',
      'kpc-apply apply bundle --confirm-timeout 1m',
      'kpc-apply apply bundle --adopt --drain-timeout 30s',
      'kpc-apply apply node.tgz --trust kpc.pub',
    ],
    cleanup: ['kpc-apply cleanup', 'kpc-apply cleanup --adopt'],
    completion: ['source <(kpc-apply completion bash)', 'kpc-apply completion fish | source'],
    confirm: ['kpc-apply confirm', 'kpc-apply confirm --state-dir /srv/kpc'],
    doctor: ['kpc-apply doctor', 'kpc-apply doctor bundle', 'kpc-apply doctor bundle --output json'],
    dump: ['kpc-apply dump -o dump', 'kpc-apply dump -o dump --node worker-1'],
    plan: ['kpc-apply plan bundle', 'kpc-apply plan bundle --output json', 'kpc-apply plan bundle --adopt'],
    rollback: ['kpc-apply rollback', 'kpc-apply rollback --drain-timeout 10s'],
    verify: ['kpc-apply verify bundle', 'kpc-apply verify bundle --output json'],
    version: ['kpc-apply version', 'kpc-apply version --output json'],
    watch: ['kpc-apply watch bundle', 'kpc-apply watch bundle --sync-period 10s --adopt'],
  },
};

/** The examples for a command of a program. */
export function examplesOf(program: string, command: string): readonly string[] {
  return examples[program]?.[command] ?? [];
}

/** Notes about commands, by program and command: paragraphs that help shows after the options. */
const notes: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'kpc-apply': {
    apply: [
      'With --confirm-timeout, the rollback does not depend on this process. Before the first change it starts a second process in its own session and, where systemd runs, the timer kpc-apply-way-back-ID.timer, which starts the service of the same name. If this process is killed, they put everything back when the time is over, or at once if it had not asked for confirmation yet.',
      '"kpc-apply confirm" within the time still keeps the changes. Neither undoes another apply. In a container, both end with the container.',
    ],
    rollback: [
      'The state folder keeps the last 5 states, or fewer if they take more than 64 MiB. A second rollback undoes the first. If the last command changed nothing, was refused or put everything back, there is nothing to undo: the exit status is 2. A repair by watch makes no new state.',
    ],
    watch: [
      'A damaged or missing bundle is reported once. Until it is good again, watch keeps the node on the last good bundle. The state folder holds that bundle in last-good-bundle.json, so a watch that starts with a damaged bundle uses it too, if it came from the same folder. If there is none, watch leaves the node as it is.',
    ],
  },
};

/** The notes about a command of a program. */
export function notesOf(program: string, command: string): readonly string[] {
  return notes[program]?.[command] ?? [];
}

/** Appends notes and examples to the help of each command, and the first example of some commands to the program's. */
function addHelpTexts(program: Command): void {
  for (const command of program.commands) {
    const paragraphs = notesOf(program.name(), command.name());
    if (paragraphs.length > 0) {
      command.addHelpText('after', () => {
        const width = command.configureOutput().getOutHelpWidth?.() ?? usualWidth;
        return `\n${command.createHelp().boxWrap(paragraphs.join('\n\n'), width)}`;
      });
    }
    addExamples(command, examplesOf(program.name(), command.name()));
  }
  const first = program.commands.flatMap((command) => examplesOf(program.name(), command.name()).slice(0, 1));
  addExamples(program, first.slice(0, mostInOverview));
}

/** The width of commander's help without a terminal. */
const usualWidth = 80;
/** How many examples the program's help shows; the help of each command has the rest. */
const mostInOverview = 4;

function addExamples(command: Command, lines: readonly string[]): void {
  if (lines.length === 0) return;
  command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`);
}
