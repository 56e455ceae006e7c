import { diagnose, isError, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { FileText } from '../../base/chunks.ts';
import { printable } from '../../base/printable.ts';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { holdsGolden, holdsReal, replaceFolder, writeQuickly } from '../../bundle/folder.ts';
import { makeGolden } from '../../bundle/golden.ts';
import {
  formatFile,
  joinFiles,
  makeBundle,
  makeLongBundle,
  type BundleContent,
  type Bundle,
} from '../../bundle/make-bundle.ts';
import type { Expected } from '../../sides/check-folder.ts';
import type { OutputFormat } from '../../report/check-report.ts';
import { nameSome } from '../../base/join-words.ts';
import { compileLoaded } from '../../compile/compile.ts';
import { goldenContext, chooseNodeName } from '../../compile/compile-node.ts';
import { checkNodeName } from '../../compile/chosen-nodes.ts';
import { compileFleet, chooseFleet, isFleet, type FleetOptions } from '../../compile/compile-fleet.ts';
import { formatAll, mainFile, printNames, summarize } from '../../report/bundle-text.ts';
import { exitStatus, type ExitStatus, type Done } from '../shared/exit-status.ts';
import { formatJson } from '../../report/format-json.ts';
import { isHostFolder, readHostFolder, readInputs, type FileOptions } from '../../compile/read-texts.ts';
import { checkFleet, writeFleet } from './fleet-run.ts';
import { describeFolderProblem } from '../../report/render-diagnostics.ts';
import { loadTexts, type InputTexts, type LoadedInputs } from '../../compile/load-texts.ts';
import { addInputOptions, append, namedInputs } from './input-options.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import {
  addMessageOptions,
  failsStrictly,
  makeStrict,
  quieten,
  type MessageOptions,
  reportDiagnostics,
  reportFailure,
} from './messages.ts';
import { tuneForShortRun } from './v8-flags.ts';
import { refuse } from '../shared/refuse.ts';

interface CompileOptions extends FileOptions, MessageOptions, FleetOptions {
  readonly jobs: number;
  readonly node?: readonly string[];
  readonly out?: string;
  readonly golden?: string;
  readonly print?: string;
  readonly check?: string;
  readonly allowEmpty?: boolean;
  readonly output: OutputFormat;
}

export function addCompileCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('compile')
    .description('Compile Services and EndpointSlices to what kube-proxy would program on one node.')
    .argument('[input...]', 'manifests, as with -f');
  addMessageOptions(addInputOptions(command))
    .option(
      '--node <name>',
      'the node to compile for (default: hostnameOverride, or else the only Node in the input); repeat to write a folder for each',
      append,
    )
    .addOption(new Option('--all-nodes', 'compile for each Node in the input, into a folder each').conflicts('node'))
    .option('--shard <i/n>', 'compile only part I of N of the nodes; I counts from 0')
    .addOption(
      new Option('--jobs <count>', 'write the folders of this many nodes at once; each needs its own memory')
        .argParser(parseJobs)
        .default(1)
        .conflicts(['print', 'check']),
    )
    .option('--allow-empty', 'compile even if that programs nothing, which removes all Services from a node')
    .option('--prune', 'remove the folders of nodes that are no longer in the input')
    .addOption(
      new Option('-o, --out <folder>', 'write the files to a folder, replacing everything in it')
        .argParser(parseOutFolder)
        .conflicts(['print', 'check']),
    )
    .addOption(
      new Option('--golden <folder>', 'write a golden to keep in git: a file for each Service, so that branches merge')
        .argParser(parseOutFolder)
        .conflicts(['out', 'print', 'check']),
    )
    .addOption(new Option('--print <file>', 'print one file').choices([...printNames.keys()]).conflicts('check'))
    .option('--check <folder>', 'write nothing; print how this bundle or golden differs: exit status 1 if it does')
    .addOption(
      new Option('--output <format>', 'how to print; with --check, github annotates the Services of a pull request')
        .choices(['text', 'json', 'github', 'junit'] satisfies readonly OutputFormat[])
        .default('text'),
    )
    .action(async (inputs: readonly string[], options: CompileOptions) => {
      const file = namedInputs(command, inputs, options.file);
      const quiet = quieten(terminal, options);
      done(await runCompile({ ...options, ...(file.length === 0 ? {} : { file }) }, quiet));
    });
}

/** Replaced by scripts/build-binary.mjs: whether Node and the program are one file, which no thread can load. */
declare const KPC_IS_BINARY: boolean | undefined;
const isBinary = typeof KPC_IS_BINARY !== 'undefined' && KPC_IS_BINARY;

const mostJobs = 64;

function parseJobs(text: string): number {
  const jobs = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (jobs < 1 || jobs > mostJobs) throw new InvalidArgumentError(`Write a number from 1 to ${mostJobs}.`);
  return jobs;
}

async function runCompile(options: CompileOptions, terminal: Terminal): Promise<ExitStatus> {
  if (options.check === undefined && (options.output === 'github' || options.output === 'junit')) {
    return refuse(terminal, `--output ${options.output} is for --check`, 'name a folder with --check');
  }
  if (!isFleet(options)) tuneForShortRun();
  const { hostAddresses: hosts, ...others } = options;
  const emptyResult = options.allowEmpty ? ('allowed' as const) : await whetherEmpty(options);
  const named = isHostFolder(hosts) || isFleet(options) ? others : options;
  const inputOptions = { ...named, emptyResult };
  const texts = await readInputs(inputOptions, terminal.readStdin);
  const read = loadTexts(texts, inputOptions);
  // With --check, the bundle names the mode.
  const loaded = options.check === undefined ? read : { ...read, modeNote: undefined };
  const mistaken = await describeMistakenInput(loaded, options, terminal);
  if (mistaken) {
    await reportDiagnostics([mistaken], loaded.files, terminal);
    return reportFailure(options.output, [mistaken], terminal);
  }
  if (!isFleet(options)) return runOne(loaded, options, terminal);
  return runFleet(loaded, texts, options, terminal);
}

/** A cluster may have an empty result, but it must not replace one that programs Services. */
async function whetherEmpty({ out, golden, check: checked }: CompileOptions): Promise<'refused' | 'of-a-cluster'> {
  const folder = out ?? golden ?? checked;
  if (folder === undefined) return 'of-a-cluster';
  const { holdsServices } = await import('../../sides/check-folder.ts');
  return holdsServices(folder) ? 'refused' : 'of-a-cluster';
}

/** If nothing could be compiled: whether the input is a bundle or a dump, which kpc compile does not take. */
async function describeMistakenInput(
  { diagnostics, prepared }: LoadedInputs,
  { file = [] }: CompileOptions,
  terminal: Terminal,
): Promise<Diagnostic | undefined> {
  const hasErrors = diagnostics.some(isError);
  if (prepared.services.length > 0 || (!hasErrors && prepared.nodes.size > 0)) return undefined;
  const { describeNoManifests } = await import('../../sides/read-side.ts');
  const stdin = file.includes('-') ? await terminal.readStdin() : undefined;
  return describeNoManifests(file, { stdin });
}

async function runFleet(
  loaded: LoadedInputs,
  texts: InputTexts,
  options: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { golden, check: checked } = options;
  const out = options.out ?? golden;
  if (options.print !== undefined || (out === undefined && checked === undefined)) {
    return refuse(terminal, 'several nodes need a folder', 'name one with -o, --golden or --check');
  }
  if (options.jobs > 1 && isBinary) {
    return refuse(terminal, '--jobs needs kpc as a program of Node', 'run this binary several times with --shard');
  }
  const chosen = chooseFleet(options, loaded.prepared, (nodes) => readHostFolder(options.hostAddresses, nodes));
  const refusals = await checkTarget(options, { kind: 'fleet', nodes: chosen.nodes.length });
  const fleet = { ...chosen, diagnostics: [...refusals, ...chosen.diagnostics] };
  const { nodes, diagnostics: found } = compileFleet(loaded, fleet, options.ipFamily);
  const diagnostics = makeStrict(found, options);
  await reportDiagnostics(diagnostics, loaded.files, terminal);
  if (!nodes || failsStrictly(found, options)) return reportFailure(options.output, diagnostics, terminal);
  const run = { texts, fleet, nodes, known: loaded.prepared.nodes, diagnostics, options, terminal };
  return out === undefined
    ? checkFleet(checked ?? '', run)
    : writeFleet(out, run, golden === undefined ? 'bundle' : 'golden');
}

async function runOne(loaded: LoadedInputs, options: CompileOptions, terminal: Terminal): Promise<ExitStatus> {
  const node = options.node?.[0];
  const host = readHostsOf(chooseNodeName(node, loaded.prepared), loaded, options);
  const refusals = [
    ...host.diagnostics,
    ...(options.node ?? []).flatMap((name) => checkNodeName(name) ?? []),
    ...(options.prune ? [diagnose('bad-prune', {})] : []),
    ...(await checkTarget(options, { kind: 'bundle' })),
  ];
  const request = { node, ipFamily: options.ipFamily };
  const { content, diagnostics: found } = compileLoaded(
    { ...loaded, hostAddresses: host.addresses },
    request,
    refusals,
  );
  const diagnostics = makeStrict(found, options);
  await reportDiagnostics(diagnostics, loaded.files, terminal);
  if (!content || failsStrictly(found, options)) return reportFailure(options.output, diagnostics, terminal);
  if (options.check !== undefined) return check(options.check, content, diagnostics, options, terminal);
  return output(content, diagnostics, options, terminal);
}

/** What is wrong with the folder that --check names. */
async function checkTarget({ check: folder }: CompileOptions, expected: Expected): Promise<readonly Diagnostic[]> {
  if (folder === undefined) return [];
  const { checkFolder } = await import('../../sides/check-folder.ts');
  const problem = checkFolder(folder, expected);
  return problem ? [problem] : [];
}

/** The node's own addresses, from its file if --host-addresses is a folder. */
function readHostsOf(
  nodeName: string,
  { hostAddresses }: LoadedInputs,
  { hostAddresses: path }: CompileOptions,
): { readonly addresses: LoadedInputs['hostAddresses']; readonly diagnostics: readonly Diagnostic[] } {
  if (!isHostFolder(path)) return { addresses: hostAddresses, diagnostics: [] };
  const { addresses, diagnostics } = readHostFolder(path, [nodeName]);
  return { addresses: addresses.get(nodeName), diagnostics };
}

async function output(
  content: BundleContent,
  diagnostics: readonly Diagnostic[],
  options: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (options.print !== undefined) return print(options.print, content, terminal);
  const bundle = makeLongBundle(content);
  const { golden, output: format } = options;
  const folder = options.out ?? golden;
  const form = golden === undefined ? 'bundle' : 'golden';
  const status = folder === undefined ? exitStatus.ok : await write(folder, form, content, bundle, options, terminal);
  if (format === 'json') {
    const { diagnosticsToJson } = await import('../../report/json.ts');
    // The folder has the files already.
    const files = folder === undefined ? { files: Object.fromEntries(joinFiles(bundle)) } : { folder };
    await terminal.out(
      formatJson({ diagnostics: diagnosticsToJson(diagnostics), manifest: bundle.manifest, ...files }),
    );
    return status;
  }
  if (folder !== undefined) return status;
  await terminal.out(formatAll(joinFiles(bundle)));
  await say(
    terminal,
    `${summarize(bundle.manifest)}\nTo write the files, add -o DIR; to see one, add --print ${mainFile(bundle.manifest)}.\n`,
  );
  return exitStatus.ok;
}

async function write(
  folder: string,
  form: 'bundle' | 'golden',
  content: BundleContent,
  { manifest, files }: Bundle<FileText>,
  { assume }: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (form === 'bundle' && assume && (await holdsReal(folder, manifest))) {
    return refuse(
      terminal,
      `${folder} is a bundle without assumptions, and --assume would replace it`,
      'name another folder with -o, or remove that bundle first',
    );
  }
  const problem =
    form === 'golden'
      ? await replaceFolder(folder, makeGolden(content, goldenContext), writeQuickly)
      : await replaceFolder(folder, files);
  if (problem) {
    return refuse(terminal, ...describeFolderProblem(problem));
  }
  await say(terminal, `${summarize(manifest)}\nWritten to ${folder}.\n`);
  return exitStatus.ok;
}

async function check(
  folder: string,
  content: BundleContent,
  diagnostics: readonly Diagnostic[],
  { output: format }: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { checkBundle } = await import('../../sides/check-folder.ts');
  const isGolden = await holdsGolden(folder);
  const result = await checkBundle(folder, isGolden ? makeGolden(content, goldenContext) : makeBundle(content).files);
  if (result.kind === 'unreadable') {
    return refuse(terminal, `cannot read ${folder}: ${result.reason}`);
  }
  const same = result.kind === 'same';
  if (same && format === 'text') return exitStatus.ok;
  const { formatCheck, reportCheck } = await import('../../report/check-report.ts');
  const report = await reportCheck(folder, same ? [] : result.files, content, isGolden ? 'golden' : 'bundle');
  const { printed, note } = formatCheck(report, result, format, diagnostics);
  await terminal.out(printed);
  await say(terminal, note);
  if (same) return exitStatus.ok;
  const first = result.strangers.length > 0 ? "remove the files that don't belong, and " : '';
  await say(
    terminal,
    `${folder} differs in ${nameSome(result.files.map(printable), 12)}: ${first}write it again with ${isGolden ? '--golden' : '-o'} ${folder}\n`,
  );
  return exitStatus.differs;
}

async function print(name: string, content: BundleContent, terminal: Terminal): Promise<ExitStatus> {
  const file = printNames.get(name) ?? 'manifest.json';
  const text = file === 'manifest.json' ? makeBundle(content).files.get(file) : formatFile(file, content);
  if (text === undefined) {
    return refuse(
      terminal,
      `there is no ${file} in mode ${content.settings.mode} for ${content.families.join(' and ')}`,
    );
  }
  await terminal.out(text);
  return exitStatus.ok;
}
