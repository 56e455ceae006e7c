import type { Command } from 'commander';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { checkFlags, checkValues, type GivenFlags } from '../../library/inputs.ts';
import type { ReadFiles } from '../../library/node/open.ts';
import { sayFindings } from '../../say/words/said.ts';
import { sortDiagnostics } from '../../library/words.ts';
import { isNetworks, knownNetworks, openFlags } from '../../library/options.ts';
import type { ExitStatus, Terminal } from '../shared/terminal.ts';
import {
  findIdleOption,
  applyKpcYaml,
  findMisnamed,
  mayHoldFlags,
  isConfigured,
  takenWords,
  type KpcYaml,
} from './flags.ts';
import { formatFailure, makeStrict, quieten, renderSaid, sayTaken, type MessageOptions } from './messages.ts';
import type { AddCommand } from './call.ts';
import { addCompletionCommand, addVersionCommand, type FindValues } from '../shared/common-commands.ts';
import { showTimeTaken } from '../shared/long-work.ts';
import { runCommands, type Program } from '../shared/run-commands.ts';
import type { Slips, UsageCall, UsageFault } from '../shared/usage-errors.ts';
import { countBeforeEnd, isPath } from '../shared/path-words.ts';

export function runKpcProgram(argv: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  const words = separateRuleLine(writeInFull(argv));
  return showTimeTaken(`kpc ${argv[0] ?? ''}`, terminal, (watched) => runCommands(kpcProgram(watched), words, watched));
}

export function kpcProgram(terminal: Terminal): Program {
  return {
    name: 'kpc',
    description: 'Compiles Kubernetes Services to the rules that kube-proxy programs, offline.',
    addCommands: async (program, done, argv) => {
      const [called = ''] = argv;
      // Only the called command is loaded if possible. Loading all commands would slow down the start.
      const own = Object.hasOwn(commands, called) && !mayUseKpcYaml(called, argv) ? commands[called] : undefined;
      for (const load of own ? [own] : Object.values(commands)) (await load())(program, terminal, done, argv);
      if (own) return;
      addCompletionCommand(program, terminal, done, findValues);
      addVersionCommand(program, terminal, done);
    },
    slips,
    refuse: (faults, { command, output }) => reportErrors(faults.map(asFinding), { command, output, terminal }),
    checkCommand: (program, called, wrong) => {
      const idle = wrong.length > 0 ? undefined : findIdleOption(called);
      const refused = [...wrong.map(asFinding), ...(idle ? [diagnose('bad-call', idle)] : [])];
      return takeKpcYaml(program, called, refused, terminal);
    },
  };
}

function asFinding({ reason, help }: UsageFault): Finding {
  return diagnose('bad-call', { problem: 'usage', reason, help });
}

const ofKpcApply = (command: string): string => `kpc-apply changes nodes: "kpc-apply ${command}"`;

const asMode = (mode: string): string => `write "kpc compile -f services.yaml --proxy-mode ${mode}"`;

const slips: Slips = {
  file: 'name a command before it: "kpc describe FILE" shows its Services, and "kpc lint FILE" checks them',
  commands: {
    iptables: asMode('iptables'),
    ipvs: asMode('ipvs'),
    nft: asMode('nftables'),
    nftables: asMode('nftables'),
    get: '"kpc describe" lists Services: kpc describe -f services.yaml',
    list: '"kpc describe" lists Services: kpc describe -f services.yaml',
    show: '"kpc describe" shows a Service: kpc describe NAME -f services.yaml',
    apply: ofKpcApply('apply BUNDLE'),
    plan: ofKpcApply('plan BUNDLE'),
    doctor: ofKpcApply('doctor'),
    rollback: ofKpcApply('rollback'),
    watch: ofKpcApply('watch BUNDLE'),
    cleanup: ofKpcApply('cleanup'),
    dump: ofKpcApply('dump -o DIR'),
    verify: '"kpc bundle verify" checks a bundle or a pack, and "kpc-apply verify" a node',
    pack: 'write "kpc bundle pack BUNDLE -o node.tgz"',
    check: '"kpc lint" checks manifests, and "kpc compile --check DIR" compares with a golden or a bundle',
    validate: 'write "kpc lint FILE"',
    audit: 'write "kpc lint FILE"',
    simulate: '"kpc trace" shows what a node does with a packet',
    explore: '"kpc trace" shows what a node does with a packet',
    logs: '"kpc describe --from-dump" reads the log of kube-proxy beside the output of a node\'s tools',
    convert: '"kpc migrate" shows what a change of mode needs and breaks',
    compare: 'write "kpc diff OLD NEW"',
    render: 'write "kpc compile -f services.yaml -o bundle"',
    generate: 'write "kpc compile -f services.yaml -o bundle"',
    build: 'write "kpc compile -f services.yaml -o bundle"',
    upgrade: '"kpc migrate --to-kubernetes-version" shows what an upgrade changes',
  },
  options: {
    '--mode': 'write --proxy-mode',
    '-m': 'write --proxy-mode',
    '-o': 'write --output FORMAT',
    '-A': 'leave it out: kpc reads all namespaces in the input',
    '--all-namespaces': 'leave it out: kpc reads all namespaces in the input',
    '--all': 'name a Service with --all in "kpc trace"; "kpc describe" lists all Services by itself',
    '--format': 'write --output FORMAT',
    '-R': 'leave it out: kpc reads subfolders anyway',
    '--recursive': 'leave it out: kpc reads subfolders anyway',
    '-k': 'pipe it in: kubectl kustomize FOLDER | kpc describe -',
    '--filename': 'write -f or --file',
    '-l': 'kpc has no selectors: name the files with -f',
    '--selector': 'kpc has no selectors: name the files with -f',
    '--context':
      'kpc does not contact a cluster: pipe in the output of "kubectl get svc,endpointslices,nodes -A -o yaml"',
    '--kubeconfig': 'with --cluster, kubectl reads the variable KUBECONFIG: KUBECONFIG=FILE kpc describe --cluster',
    '--fix': 'kpc changes no manifests: each finding says what to write',
    '--from-dump': 'name the dump as an input, as in "kpc trace DUMP --from pod --to svc/NAME"',
    '--dry-run': 'leave it out: kpc changes no node, and writes files with -o or --golden only',
    '--release': 'write --kubernetes-version',
    '-v': 'leave it out; "kpc version" prints the version',
  },
};

const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  compile: async () => (await import('./compile-command.ts')).addCompileCommand,
  init: async () => (await import('./init-command.ts')).addInitCommand,
  bundle: async () => (await import('./bundle-command.ts')).addBundleCommand,
  lint: async () => (await import('./lint-command.ts')).addLintCommand,
  diff: async () => (await import('./diff-command.ts')).addDiffCommand,
  describe: async () => (await import('./describe-command.ts')).addDescribeCommand,
  trace: async () => (await import('./trace-command.ts')).addTraceCommand,
  test: async () => (await import('./trace-command.ts')).addTestCommand,
  equivalence: async () => (await import('./equivalence-command.ts')).addEquivalenceCommand,
  migrate: async () => (await import('./equivalence-command.ts')).addMigrateCommand,
  'fleet-thread': async () => (await import('./compile-command.ts')).addThreadCommand,
  explain: async () => (await import('./explain-command.ts')).addExplainCommand,
};

/** Reports whether a kpc.yaml may hold flags for this call. Such a file may name the flags of any command. */
function mayUseKpcYaml(called: string, argv: readonly string[]): boolean {
  if (!isConfigured(called)) return false;
  return argv.some((word) => word.startsWith('--kpc-yaml')) || mayHoldFlags(argv);
}

const findValues: FindValues = async (request) => {
  const { findKpcValues } = await import('./complete-values.ts');
  return findKpcValues(request);
};

/** Applies the flags in kpc.yaml. If any flag is wrong, there or on the command line (`refused`), reports all errors and returns true. */
async function takeKpcYaml(
  program: Command,
  called: Command,
  refused: readonly Finding[],
  terminal: Terminal,
): Promise<boolean> {
  const { kpcYaml: named } = called.opts<{ readonly kpcYaml?: string }>();
  const found = isConfigured(called.name()) ? applyKpcYaml(called, program, named) : undefined;
  for (const [key, value] of Object.entries(called.opts())) {
    // The parser leaves this for a refused value.
    if (value === '') called.setOptionValue(key, undefined);
  }
  const areWrong = checkValues(called.opts<GivenFlags>()).length > 0;
  if (refused.length > 0 || areWrong || (found && found.diagnostics.length > 0)) {
    await reportWrongFlags(called, found, refused, terminal);
    return true;
  }
  if (!isConfigured(called.name())) return false;
  if (!found) {
    const misnamed = named === undefined ? findMisnamed() : undefined;
    const quiet = quieten(terminal, called.opts<MessageOptions>());
    if (misnamed !== undefined)
      await quiet.err(
        renderSaid([diagnose('reading', { problem: 'misnamed-file', file: misnamed })], new Map(), quiet),
      );
    return false;
  }
  const taken = takenWords(found);
  called.setOptionValue('flagPlaces', found.places);
  called.setOptionValue('taken', taken);
  await sayTaken(taken, called, terminal);
  return false;
}

async function reportWrongFlags(
  called: Command,
  found: KpcYaml | undefined,
  refused: readonly Finding[],
  terminal: Terminal,
): Promise<void> {
  const options = called.opts<GivenFlags & { readonly output?: string }>();
  const wrong = makeStrict(checkFlags(options), { flagPlaces: found?.places ?? new Map() });
  const diagnostics = [...refused, ...sortDiagnostics([...(found?.diagnostics ?? []), ...wrong])];
  const files = new Map(found ? [[found.file.name, found.file]] : []);
  await reportErrors(diagnostics, { command: `kpc ${called.name()}`, output: options.output, files, terminal });
}

async function reportErrors(
  findings: readonly Finding[],
  { command, output, files = new Map(), terminal }: UsageCall & Reporting,
): Promise<void> {
  await terminal.err(renderSaid(findings, files, terminal));
  await terminal.out(await formatFailure(output, { command, findings: sayFindings(findings) }));
}

interface Reporting {
  readonly files?: ReadFiles;
  readonly terminal: Terminal;
}

const kinds = new Map(openFlags('programs').map(({ name, kind }) => [name, kind]));

/** Writes out the optional value of a flag. Otherwise the flag would take the next word, such as a file name, as its value. */
function writeInFull(argv: readonly string[]): readonly string[] {
  const end = countBeforeEnd(argv);
  return argv.map((word, i) => {
    const kind = i < end ? kinds.get(word) : undefined;
    const next = argv[i + 1] ?? '';
    const isFile = kind === 'switch' && !/^(?:true$|false$|-)/i.test(next) && isPath(next);
    if (isFile) return `${word}=true`;
    return kind === 'optional' && !isNetworks(next) ? `${word}=${knownNetworks}` : word;
  });
}

/** Separates a line of iptables-save from the flags, because the line begins like a flag. */
function separateRuleLine(argv: readonly string[]): readonly string[] {
  const line = argv.find((word) => /^-[AI] ./.test(word));
  return line === undefined || argv.includes('--') ? argv : [...argv.filter((word) => word !== line), '--', line];
}
