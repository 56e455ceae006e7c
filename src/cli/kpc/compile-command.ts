import { diagnose, isError, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { printable } from '../../base/printable.ts';
import { nameSome } from '../../base/join-words.ts';
import { holdsGolden, holdsReal, replaceFolder, writeQuickly } from '../../bundle/folder.ts';
import { makeGolden } from '../../bundle/golden.ts';
import { formatFile, joinFiles, makeBundle, makeLongBundle, type BundleContent } from '../../bundle/make-bundle.ts';
import type { OutputFormat } from '../../report/check-report.ts';
import { compileLoaded, chooseFleet, compileFleet, isFleet, type FleetOptions } from '../../compile/compile.ts';
import { compileState, chooseNodeName } from '../../compile/compile-node.ts';
import { checkNodeName } from '../../compile/chosen-nodes.ts';
import { loadTexts, type InputTexts, type LoadedInputs } from '../../compile/load-texts.ts';
import { isHostFolder, readHostFolder, readInputs, type FileOptions } from '../../compile/read-texts.ts';
import { formatAll, mainFile, printNames, summarize } from '../../report/bundle-text.ts';
import { formatJson } from '../../report/format-json.ts';
import { describeFolderProblem } from '../../report/render-diagnostics.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus, say } from '../shared/terminal.ts';
import { checkFleet, writeFleet } from './fleet-run.ts';
import { addInputOptions, append, namedInputs } from './input-options.ts';
import {
  addMessageOptions,
  makeStrict,
  quieten,
  type MessageOptions,
  reportFailure,
  reportInput,
  refuse,
} from './messages.ts';
import { tuneForShortRun } from './v8-flags.ts';
import { existsSync, readdirSync } from 'node:fs';
import { InvalidArgumentError, Option, type Command } from 'commander';

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
      done(await runCompile({ ...options, file }, quieten(terminal, options)));
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
  const { check: checked, output: format, hostAddresses } = options;
  const hasMany = isFleet(options);
  if (checked === undefined && (format === 'github' || format === 'junit')) {
    return refuse(terminal, `--output ${format} is for --check`, 'name a folder with --check');
  }
  if (!hasMany) tuneForShortRun();
  const inputOptions = {
    ...options,
    // With many nodes, addresses are read once the nodes are known.
    hostAddresses: isHostFolder(hostAddresses) || hasMany ? undefined : hostAddresses,
    emptyResult: options.allowEmpty ? 'allowed' : replacesFiles(options) ? 'refused' : 'of-a-cluster',
  } as const;
  const texts = await readInputs(inputOptions, terminal.readStdin);
  const read = loadTexts(texts, inputOptions);
  // With --check, the bundle names the mode.
  const loaded = checked === undefined ? read : { ...read, modeNote: undefined };
  const mistaken = isEmpty(loaded)
    ? await (await import('../../sides/read-side.ts')).describeNoManifests(options.file ?? [], terminal)
    : undefined;
  const failed = mistaken && (await reportAll([mistaken], loaded, options, terminal));
  if (failed !== undefined) return failed;
  const problem =
    checked === undefined ? undefined : (await import('../../sides/check-folder.ts')).checkFolder(checked, hasMany);
  const refusals = problem ? [problem] : [];
  return hasMany ? runFleet(loaded, texts, refusals, options, terminal) : runOne(loaded, refusals, options, terminal);
}

/** A cluster may have an empty result, but it must not replace a bundle or golden that may program Services. */
function replacesFiles({ out, golden, check: checked }: CompileOptions): boolean {
  const folder = out ?? golden ?? checked;
  try {
    return folder !== undefined && existsSync(folder) && readdirSync(folder).length > 0;
  } catch {
    // The problem is reported when the folder is written.
    return false;
  }
}

/** Whether nothing could be compiled: the input may be a bundle or a dump, which kpc compile does not take. */
function isEmpty({ diagnostics, prepared: { services, nodes } }: LoadedInputs): boolean {
  return services.length === 0 && (nodes.size === 0 || diagnostics.some(isError));
}

/** Reports all diagnostics of the input; returns the exit status if they stop the command. */
async function reportAll(
  diagnostics: readonly Diagnostic[],
  { files }: LoadedInputs,
  options: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus | undefined> {
  if (await reportInput({ diagnostics, files }, options, terminal)) return undefined;
  return reportFailure(options.output, makeStrict(diagnostics, options), terminal);
}

async function runFleet(
  loaded: LoadedInputs,
  texts: InputTexts,
  refusals: readonly Diagnostic[],
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
  const fleet = { ...chosen, diagnostics: [...refusals, ...chosen.diagnostics] };
  const { nodes, diagnostics: found } = compileFleet(loaded, fleet, options.ipFamily);
  const diagnostics = makeStrict(found, options);
  const failed = await reportAll(diagnostics, loaded, options, terminal);
  if (!nodes || failed !== undefined) return failed ?? exitStatus.badInput;
  const run = { texts, fleet, nodes, known: loaded.prepared.nodes, diagnostics, options, terminal };
  return out === undefined
    ? checkFleet(checked ?? '', run)
    : writeFleet(out, run, golden === undefined ? 'bundle' : 'golden');
}

async function runOne(
  loaded: LoadedInputs,
  refusals: readonly Diagnostic[],
  options: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { node: [node] = [], ipFamily, hostAddresses: path } = options;
  const nodeName = chooseNodeName(node, loaded.prepared);
  const host = isHostFolder(path) ? readHostFolder(path, [nodeName]) : undefined;
  const wrong = [
    ...(host?.diagnostics ?? []),
    ...(options.node ?? []).flatMap((name) => checkNodeName(name) ?? []),
    ...(options.prune ? [diagnose('bad-prune', {})] : []),
    ...refusals,
  ];
  const own = host ? { ...loaded, hostAddresses: host.addresses.get(nodeName) } : loaded;
  const { content, gaps, diagnostics: found } = compileLoaded(own, { node, ipFamily }, wrong);
  const diagnostics = makeStrict([...gaps, ...found], options);
  const failed = await reportAll(diagnostics, loaded, options, terminal);
  if (!content || failed !== undefined) return failed ?? exitStatus.badInput;
  if (options.check !== undefined) return check(options.check, content, diagnostics, options, terminal);
  return options.print === undefined
    ? output(content, diagnostics, options, terminal)
    : print(options.print, content, terminal);
}

async function output(
  content: BundleContent,
  diagnostics: readonly Diagnostic[],
  { out, golden, assume, output: format }: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const bundle = makeLongBundle(content);
  const { manifest } = bundle;
  const folder = out ?? golden;
  if (out !== undefined && assume && (await holdsReal(out, manifest))) {
    return refuse(
      terminal,
      `${out} is a bundle without assumptions, and --assume would replace it`,
      'name another folder with -o, or remove that bundle first',
    );
  }
  if (folder !== undefined) {
    const problem =
      out === undefined
        ? await replaceFolder(folder, makeGolden(content, compileState), writeQuickly)
        : await replaceFolder(folder, bundle.files);
    if (problem) return refuse(terminal, ...describeFolderProblem(problem));
    await say(terminal, `${summarize(manifest)}\nWritten to ${folder}.\n`);
  }
  if (format === 'json') {
    const { diagnosticsToJson } = await import('../../report/json.ts');
    // The files are already in the folder.
    const files = folder === undefined ? { files: Object.fromEntries(joinFiles(bundle)) } : { folder };
    await terminal.out(formatJson({ diagnostics: diagnosticsToJson(diagnostics), manifest, ...files }));
  } else if (folder === undefined) {
    await terminal.out(formatAll(joinFiles(bundle)));
    const advice = `To write the files, add -o DIR; to see one, add --print ${mainFile(manifest)}.`;
    await say(terminal, `${summarize(manifest)}\n${advice}\n`);
  }
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
  const result = await checkBundle(folder, isGolden ? makeGolden(content, compileState) : makeBundle(content).files);
  if (result.kind === 'unreadable') return refuse(terminal, `cannot read ${folder}: ${result.reason}`);
  const same = result.kind === 'same';
  if (same && format === 'text') return exitStatus.ok;
  const { formatCheck, reportCheck } = await import('../../report/check-report.ts');
  const report = await reportCheck(folder, same ? [] : result.files, content, isGolden ? 'golden' : 'bundle');
  const { printed, note } = formatCheck(report, result, format, diagnostics);
  await terminal.out(printed);
  await say(terminal, note);
  if (same) return exitStatus.ok;
  const first = result.strangers.length > 0 ? "remove the files that don't belong, and " : '';
  const again = `${first}write it again with ${isGolden ? '--golden' : '-o'} ${folder}`;
  await say(terminal, `${folder} differs in ${nameSome(result.files.map(printable), 12)}: ${again}\n`);
  return exitStatus.differs;
}

async function print(name: string, content: BundleContent, terminal: Terminal): Promise<ExitStatus> {
  const file = printNames.get(name) ?? 'manifest.json';
  const text = file === 'manifest.json' ? makeBundle(content).files.get(file) : formatFile(file, content);
  if (text === undefined) {
    const { settings, families } = content;
    return refuse(terminal, `there is no ${file} in mode ${settings.mode} for ${families.join(' and ')}`);
  }
  await terminal.out(text);
  return exitStatus.ok;
}
