import { diagnose, isError, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { printable } from '../../base/printable.ts';
import { nameSome } from '../../base/join-words.ts';
import { holdsReal, replaceFolder, writeQuickly } from '../../bundle/folder.ts';
import { makeGolden } from '../../bundle/golden.ts';
import { formatFile, joinFiles, makeBundle, makeLongBundle } from '../../bundle/make-bundle.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import type { OutputFormat } from '../../report/check-report.ts';
import { compileLoaded, chooseFleet, compileFleet, isFleet, type FleetOptions } from '../../snapshot/open/compile.ts';
import { compileState, chooseNodeName } from '../../snapshot/open/compile-node.ts';
import { checkNodeName } from '../../snapshot/open/chosen-nodes.ts';
import { loadTexts, type InputTexts, type LoadedInputs } from '../../snapshot/open/load-texts.ts';
import { isHostFolder, readHostFolder, readInputs, type FileOptions } from '../../snapshot/files/read-texts.ts';
import { formatAll, mainFile, modeOfPrint, printNames, summarize } from '../../report/bundle-text.ts';
import { formatJson } from '../../report/format-json.ts';
import { compiled } from '../../report/outputs/compile.ts';
import { describeFolderProblem } from '../../report/render-diagnostics.ts';
import { openFlags } from '../../library/options.ts';
import { flagRow, type Flag } from '../../settings/flag.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus, say } from '../shared/terminal.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { openTrees } from '../../git/open-trees.ts';
import { acceptCommand } from './accept-command.ts';
import { checkFleet, writeFleet, type CompileWords } from './fleet-run.ts';
import { clusterFlags, withCluster } from './cluster-input.ts';
import { addFlags, outputFlag } from './flags.ts';
import { modeFromWords, namedInputs, traceWords, withoutDefaultMode } from './input-options.ts';
import {
  messageFlags,
  makeStrict,
  quieten,
  type MessageOptions,
  reportFailure,
  reportInput,
  refuse,
} from './messages.ts';
import { repositoryPaths } from './repository-paths.ts';
import { existsSync, readdirSync } from 'node:fs';
import { InvalidArgumentError, type Command } from 'commander';

interface CompileOptions extends FileOptions, MessageOptions, FleetOptions {
  readonly jobs: number;
  readonly node?: readonly string[];
  readonly out?: string;
  readonly golden?: string;
  readonly print?: string;
  readonly check?: string;
  readonly allowEmpty?: boolean;
  readonly output: OutputFormat;
  readonly words: CompileWords;
}

export function addCompileCommand(program: Command, terminal: Terminal, done: Done, argv: readonly string[]): void {
  const command = program
    .command('compile')
    .description('Compile Services and EndpointSlices to what kube-proxy would program on one node.')
    .argument('[input...]', 'manifests, as with -f');
  addFlags(command, [
    ...openFlags('programs'),
    ...clusterFlags,
    ...messageFlags,
    ...fleetFlags,
    flagRow(
      'list',
      '--node <name>',
      'the node to compile for (default: hostnameOverride, or else the only Node in the input); repeat to write a folder for each',
      { needs: 'nodes' },
    ),
    flagRow('on', '--allow-empty', 'compile even if that programs nothing, which removes all Services from a node', {
      group: 'input',
    }),
    flagRow('text', '-o, --out <folder>', 'write the files to a folder, replacing everything in it', {
      path: 'written',
      parse: parseOutFolder,
      rivals: ['print', 'check'],
    }),
    flagRow(
      'text',
      '--golden <folder>',
      'write a golden to keep in git: a file for each Service, so that branches merge',
      {
        path: 'written',
        parse: parseOutFolder,
        rivals: ['out', 'print', 'check'],
      },
    ),
    flagRow('text', '--print <file>', 'print one file', { choices: [...printNames.keys()], rivals: ['check'] }),
    flagRow(
      'text',
      '--check <folder>',
      'write nothing; print how this bundle or golden differs: exit status 1 if it does',
      {
        path: 'read',
      },
    ),
    outputFlag(['text', 'json', 'github', 'junit', 'markdown'] satisfies readonly OutputFormat[], {
      help: 'how to print; with --check, github annotates the Services of a pull request, and markdown is for its summary',
      group: 'output',
    }),
  ]).action(async (inputs: readonly string[], options: Omit<CompileOptions, 'words'>) => {
    const named = namedInputs(command, inputs, options.file);
    const asked = await withCluster(command, { file: named, terminal: quieten(terminal, options) }, 'rules');
    if (!asked) return done(exitStatus.badInput);
    const words = { argv, trace: traceWords(command, asked.words) };
    done(await runCompile({ ...options, ...asked.options, words }, asked.terminal));
  });
}

const fleetFlags: readonly Flag[] = [
  flagRow('on', '--all-nodes', 'compile for each Node in the input, into a folder each', {
    group: 'nodes',
    rivals: ['node'],
  }),
  flagRow('text', '--shard <i/n>', 'compile only part I of N of the nodes; I counts from 0', { group: 'nodes' }),
  flagRow('text', '--jobs <count>', 'write the folders of this many nodes at once; each needs its own memory', {
    group: 'nodes',
    parse: parseJobs,
    usual: 1,
    rivals: ['print', 'check'],
    idle: [{ without: '--all-nodes', what: '--jobs shares nodes out, and there is one', help: 'add --all-nodes' }],
  }),
  flagRow('on', '--prune', 'remove the folders of nodes that are no longer in the input', { group: 'nodes' }),
];

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
  if (checked === undefined && format !== 'text' && format !== 'json') {
    return refuse(terminal, `--output ${format} is for --check`, 'name a folder with --check');
  }
  const inputOptions = {
    ...options,
    // With many nodes, addresses are read once the nodes are known.
    hostAddresses: isHostFolder(hostAddresses) || hasMany ? undefined : hostAddresses,
    emptyResult: options.allowEmpty ? 'allowed' : replacesFiles(options) ? 'refused' : 'of-a-cluster',
  } as const;
  const texts = await readInputs(inputOptions, terminal.readStdin);
  const asked = loadTexts(texts, inputOptions);
  const implied = impliedMode(asked, options.print);
  const read = implied === undefined ? asked : loadTexts(texts, { ...inputOptions, proxyMode: implied });
  // With --check, the bundle names the mode.
  const loaded = checked === undefined ? read : { ...read, modeNote: undefined };
  const mistaken = isEmpty(loaded)
    ? await (await import('../../snapshot/files/read-side.ts')).describeNoManifests(options.file ?? [], terminal)
    : undefined;
  const failed = mistaken && (await reportAll([mistaken], loaded, options, terminal));
  if (failed !== undefined) return failed;
  const problem = checked === undefined ? undefined : await findCheckProblem(checked, hasMany);
  const refusals = problem ? [problem] : [];
  return hasMany ? runFleet(loaded, texts, refusals, options, terminal) : runOne(loaded, refusals, options, terminal);
}

/** The mode that --print names, if nothing else does. */
function impliedMode({ modeNote, prepared }: LoadedInputs, file: string | undefined): ProxyMode | undefined {
  if (file === undefined || modeNote?.code !== 'default-mode') return undefined;
  return modeOfPrint(file, prepared.settings.mode);
}

async function findCheckProblem(checked: string, hasMany: boolean): Promise<Diagnostic | undefined> {
  const { checkFolder } = await import('../../snapshot/files/check-folder.ts');
  const { trees, faults } = await openTrees([checked]);
  return faults.get(checked) ?? checkFolder(checked, hasMany, trees.get(checked));
}

/** A whole cluster may have an empty result, but it must not replace a bundle or golden that may program Services. */
function replacesFiles({ out, golden, check: checked }: CompileOptions): boolean {
  const folder = out ?? golden ?? checked;
  try {
    return folder !== undefined && existsSync(folder) && readdirSync(folder).length > 0;
  } catch {
    // The problem is reported when the folder is written.
    return false;
  }
}

/** True for a bundle or a dump, too, which kpc compile does not take. */
function isEmpty({ diagnostics, prepared: { services, nodes } }: LoadedInputs): boolean {
  return services.length === 0 && (nodes.size === 0 || diagnostics.some(isError));
}

/** Returns the exit status if a diagnostic stops the command. */
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
  // The summary says which mode it is.
  const hasSummary = options.print === undefined && options.output === 'text';
  const own = host ? { ...loaded, hostAddresses: host.addresses.get(nodeName) } : loaded;
  const made = compileLoaded(own, { node, ipFamily }, wrong);
  const { snapshot, gaps, diagnostics: found } = hasSummary ? withoutDefaultMode(made) : made;
  const diagnostics = makeStrict([...gaps(), ...found], options);
  const failed = await reportAll(diagnostics, loaded, options, terminal);
  if (!snapshot || failed !== undefined) return failed ?? exitStatus.badInput;
  if (options.check !== undefined) return check(options.check, snapshot, diagnostics, options, terminal);
  return options.print === undefined
    ? output(snapshot, diagnostics, { ...options, modeFrom: modeFromWords(loaded) }, terminal)
    : print(options.print, snapshot, terminal);
}

async function output(
  snapshot: CompiledSnapshot,
  diagnostics: readonly Diagnostic[],
  { out, golden, assume, output: format, modeFrom }: CompileOptions & { readonly modeFrom: string },
  terminal: Terminal,
): Promise<ExitStatus> {
  const bundle = makeLongBundle(snapshot);
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
        ? await replaceFolder(folder, makeGolden(snapshot, compileState), writeQuickly)
        : await replaceFolder(folder, bundle.files);
    if (problem) return refuse(terminal, ...describeFolderProblem(problem));
    await say(terminal, `${summarize(manifest, modeFrom)}\nWritten to ${folder}.\n`);
  }
  if (format === 'json') {
    const { diagnosticsToJson } = await import('../../report/json.ts');
    // The files are already in the folder.
    const files = folder === undefined ? { files: Object.fromEntries(joinFiles(bundle)) } : { folder };
    await terminal.out(formatJson(compiled, { diagnostics: diagnosticsToJson(diagnostics), manifest, ...files }));
  } else if (folder === undefined) {
    await terminal.out(formatAll(joinFiles(bundle)));
    const advice = `To write the files, add -o DIR; to see one, add --print ${mainFile(manifest)}.`;
    await say(terminal, `${summarize(manifest, modeFrom)}\n${advice}\n`);
  }
  return exitStatus.ok;
}

async function check(
  folder: string,
  snapshot: CompiledSnapshot,
  diagnostics: readonly Diagnostic[],
  { output: format, words, taken }: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const { checkBundle, lookInto } = await import('../../snapshot/files/check-folder.ts');
  const tree = (await openTrees([folder])).trees.get(folder);
  const form = lookInto(folder, tree).kind === 'golden' ? 'golden' : 'bundle';
  const fresh = form === 'golden' ? makeGolden(snapshot, compileState) : makeBundle(snapshot).files;
  const result = await checkBundle(folder, fresh, tree);
  if (result.kind === 'unreadable') return refuse(terminal, `cannot read ${folder}: ${result.reason}`);
  const same = result.kind === 'same';
  if (same && format === 'text') return exitStatus.ok;
  const { formatCheck, reportCheck } = await import('../../report/check-report.ts');
  // What a revision holds stays as it is.
  const accept = tree ? undefined : acceptCommand(words.argv, folder, form);
  const said = { accept, trace: words.trace, taken, pathOf: repositoryPaths() };
  const report = await reportCheck(folder, same ? [] : result.files, snapshot, form, said);
  const { printed, note } = await formatCheck(report, result, format, diagnostics);
  await terminal.out(printed);
  await say(terminal, note);
  if (same) return exitStatus.ok;
  const strays = result.strangers.length > 0 ? " Remove the files that don't belong." : '';
  const differs = `${folder} differs in ${nameSome(result.files.map(printable), 12)}.${strays}`;
  await say(
    terminal,
    accept === undefined ? `${differs}\n` : `${differs} To accept the change:\n  ${printable(accept)}\n`,
  );
  return exitStatus.negative;
}

async function print(name: string, snapshot: CompiledSnapshot, terminal: Terminal): Promise<ExitStatus> {
  const file = printNames.get(name) ?? 'manifest.json';
  const text = file === 'manifest.json' ? makeBundle(snapshot).files.get(file) : formatFile(file, snapshot);
  if (text === undefined) {
    const { settings, families } = snapshot;
    return refuse(terminal, `there is no ${file} in mode ${settings.mode} for ${families.join(' and ')}`);
  }
  await terminal.out(text);
  return exitStatus.ok;
}
