import { basename } from 'node:path';
import { Command, CommanderError, Help } from 'commander';
import { type Done, type ExitStatus, type Terminal, exitStatus } from './terminal.ts';
import { count } from '../../base/printable.ts';
import { version } from '../../base/version.ts';
import { asksInShort, helpWidth, hiddenInShort, layOutHelp } from './help.ts';
import {
  describeUsageError,
  keepWrongValues,
  readCall,
  type Slips,
  type UsageCall,
  type UsageFault,
} from './usage-errors.ts';

/** Defines a program. Each of its commands calls `done` with its exit status. */
export interface Program {
  readonly name: string;
  readonly description: string;
  /** Adds at least the command that the words name. If they name none, adds all commands. */
  readonly addCommands: (program: Command, done: Done, argv: readonly string[]) => Promise<void> | void;
  readonly refuse: (faults: readonly UsageFault[], call: UsageCall) => Promise<void>;
  /**
   * Reports wrong values on the command line and other errors, before a command runs. Returns true if there are errors. The command then
   * does not run.
   */
  readonly checkCommand?: (program: Command, called: Command, wrong: readonly UsageFault[]) => Promise<boolean>;
  readonly slips?: Slips;
}

/** Reports whether kubectl called this program as its plugin. kubectl recognises a plugin by its name. */
export function isKubectlPlugin(name: string): boolean {
  return [process.argv0, process.argv[1]].some(
    (path) => path !== undefined && basename(path, '.exe') === `kubectl-${name}`,
  );
}

export function newProgram({ name, description }: Program): Command {
  const command = new Command(name);
  // Users call kubectl-kpc as "kubectl kpc".
  if (isKubectlPlugin(name)) {
    command.configureHelp({ commandUsage: (each) => `kubectl ${new Help().commandUsage(each)}` });
  }
  return command
    .description(description)
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help: -h the usual flags, --help all');
}

/** Parses the command line and runs the command. Throws the errors that the command throws. */
export async function runCommands(
  definition: Program,
  argv: readonly string[],
  terminal: Terminal,
): Promise<ExitStatus> {
  const { addCommands, checkCommand, refuse, slips } = definition;
  const written: Promise<void>[] = [];
  let status: ExitStatus = exitStatus.ok;
  let wrongValues: readonly UsageFault[] = [];
  const program: Command = newProgram(definition)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => written.push(terminal.out(text)),
      writeErr: (text) => written.push(terminal.err(text)),
      // Nothing is printed here, because the parser also throws the error, with its code.
      outputError: () => {},
      getOutHelpWidth: () => helpWidth(terminal.width),
      getErrHelpWidth: () => helpWidth(terminal.width),
    })
    .showSuggestionAfterError(false)
    .hook('preAction', async (_, called) => {
      const isWrong = checkCommand ? await checkCommand(program, called, wrongValues) : wrongValues.length > 0;
      if (isWrong && !checkCommand) await refuse(wrongValues, readCall({ program, argv }));
      if (isWrong) throw new CommanderError(exitStatus.badInput, wrongFlags, '');
    });
  const done: Done = (result) => {
    status = result;
  };
  await addCommands(program, done, argv);
  wrongValues = keepWrongValues(program);
  const isShort = asksInShort(argv);
  addHelpTexts(program, isShort);
  layOutHelp(program, isShort);
  if (argv.length === 0) {
    program.outputHelp({ error: true });
    await Promise.all(written);
    return exitStatus.badInput;
  }
  try {
    await program.parseAsync([...askForHelp(program, argv)], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // The parser also throws after help and version, with status 0.
    status = error.exitCode === 0 ? exitStatus.ok : exitStatus.badInput;
    if (status !== exitStatus.ok && error.code !== wrongFlags) {
      const usage = { program, argv, slips };
      await refuse([...wrongValues, describeUsageError(error, usage)], readCall(usage));
    }
  }
  await Promise.all(written);
  return status;
}

const wrongFlags = 'wrong-flags';

/** Turns "kpc help nosuch" into a call. The parser then reports an unknown name as it does for a call. */
function askForHelp(program: Command, argv: readonly string[]): readonly string[] {
  const [called, topic] = argv;
  if (called !== 'help' || topic === undefined || topic === 'help') return argv;
  return program.commands.some((command) => command.name() === topic) ? [topic, '--help'] : [topic];
}

const examples: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  kpc: {
    compile: [
      'kpc compile services.yaml --proxy-mode iptables --print iptables',
      'kpc compile -f services -f nodes.yaml --node worker-1 -o bundle',
      'kubectl get svc,endpointslices,nodes -A -o yaml | kpc compile -f - --node worker-1 -o bundle',
    ],
    bundle: [
      'kpc bundle pack bundle -o node.tgz --sign kpc.key',
      'kpc bundle verify node.tgz --trust kpc.pub',
      'kpc bundle verify bundle',
    ],
    init: ['kpc init services', 'kpc init --github'],
    describe: [
      'kpc describe services',
      'kpc describe nginx -f services.yaml',
      'kpc describe 10.96.0.80:80 -f services.yaml --output json',
      'kpc describe --from-dump node.txt',
    ],
    diff: [
      'kpc diff main:services services',
      'kpc diff HEAD~1:. .',
      'kpc diff golden services.yaml --output markdown',
      'kpc diff node.txt services.yaml --rules',
    ],
    trace: [
      'kpc trace services.yaml nodes.yaml --node worker-1 --from pod --to svc/nginx',
      'kpc trace services.yaml --all nginx --proxy-mode nftables',
      'kpc trace node.txt --from 192.0.2.7 --to 10.96.0.80:80',
    ],
    lint: [
      'kpc lint services',
      'kpc lint services.yaml --proxy-mode ipvs',
      'kpc lint services --output sarif',
      'helm template shop ./chart | kpc lint -',
    ],
    test: [
      'kpc test packets.yaml -f services.yaml --proxy-mode iptables',
      'kpc test --init -f services.yaml --proxy-mode nftables',
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

export function examplesOf(program: string, command: string): readonly string[] {
  return examples[program]?.[command] ?? [];
}

const notes: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'kpc-apply': {
    apply: [
      'With --confirm-timeout, the rollback does not depend on this process. Before the first change, kpc-apply starts a second process in its own session and, where systemd runs, the timer kpc-apply-way-back-ID.timer, which starts the service of the same name. If the first process is killed, these roll everything back at the deadline, or at once if kpc-apply had not asked for confirmation yet.',
      '"kpc-apply confirm" before the deadline still keeps the changes. Neither the second process nor the timer undoes another apply. In a container, both stop with the container.',
    ],
    rollback: [
      'The state folder keeps the last 5 states, or fewer if they take more than 64 MiB. A second rollback undoes the first. If the last command changed nothing, was refused or rolled everything back, there is nothing to undo: the exit status is 2. A repair by watch makes no new state.',
    ],
    watch: [
      'A damaged or missing bundle is reported once. Until it is good again, watch keeps the node on the last good bundle, which the state folder holds in last-good-bundle.json. A watch that starts with a damaged bundle also uses the last good one of the same folder. If there is none, watch leaves the node as it is.',
    ],
  },
};

export function notesOfCommand(program: string, command: string): readonly string[] {
  return notes[program]?.[command] ?? [];
}

/**
 * Adds notes and examples to the help of each command, and the first examples to the program's help. The short help says only how to see
 * these.
 */
function addHelpTexts(program: Command, isShort: boolean): void {
  for (const command of program.commands) {
    const paragraphs = isShort ? [] : notesOfCommand(program.name(), command.name());
    if (paragraphs.length > 0) {
      command.addHelpText('after', () => {
        const width = helpWidth(command.configureOutput().getOutHelpWidth?.());
        return `\n${command.createHelp().boxWrap(paragraphs.join('\n\n'), width)}`;
      });
    }
    const lines = examplesOf(program.name(), command.name());
    addExamples(command, lines);
    const hidden = isShort ? hiddenInShort(command) : 0;
    if (hidden === 0) continue;
    const all = `"${program.name()} ${command.name()} --help" shows ${count(hidden, 'more flag')}.`;
    command.addHelpText('after', `${lines.length === 0 ? '\n' : ''}${all}`);
  }
  const first = program.commands.flatMap((command) => examplesOf(program.name(), command.name()).slice(0, 1));
  addExamples(program, first.slice(0, mostInOverview));
}

const mostInOverview = 4;

function addExamples(command: Command, lines: readonly string[]): void {
  if (lines.length === 0) return;
  command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`);
}
