import { printable } from '../base/printable.ts';
import type { Command } from 'commander';
import { Option } from 'commander';
import { holdsGolden, replaceFolder, writeQuickly } from '../bundle/folder.ts';
import { makeGolden } from '../bundle/golden.ts';
import type { Bundle, BundleContent } from '../bundle/make-bundle.ts';
import { formatFile, makeBundle } from '../bundle/make-bundle.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { describeEmptyResult } from '../cluster/left-out.ts';
import { nameSome } from '../cluster/name-some.ts';
import { families as bothFamilies } from '../kernel/family.ts';
import { checkBundle } from './check-bundle.ts';
import type { Expected } from './check-folder.ts';
import { checkNodes } from './check-node.ts';
import type { OutputFormat } from './check-format.ts';
import { outputFormats } from './check-format.ts';
import { chooseNodeName, compileNode } from './compile-inputs.ts';
import type { PrintName } from './compile-output.ts';
import { formatAll, printNames, summarize } from './compile-output.ts';
import type { ExitStatus } from './exit-status.ts';
import { formatJson } from './format-json.ts';
import { exitStatus } from './exit-status.ts';
import type { FleetOptions } from './fleet-nodes.ts';
import { checkNodeName, chooseFleet, isFleet, isHostFolder, pruneWhat, readHostFolder } from './fleet-nodes.ts';
import { checkFleet, writeFleet } from './fleet-run.ts';
import { describeFolderProblem } from './folder-problem.ts';
import { goldenContext } from './golden-context.ts';
import type { InputOptions, LoadedInputs } from './input-options.ts';
import { addInputOptions, append, loadInputs } from './input-options.ts';
import { parseOutFolder } from './near-misses.ts';
import { diagnosticsToJson } from './render-diagnostics.ts';
import { reportDiagnostics } from './report-diagnostics.ts';
import { prepareForNodes, settleVersion } from './kubernetes-version.ts';
import { describeNodeGaps } from './node-gaps.ts';
import type { Terminal } from './terminal.ts';
import { tuneForShortRun } from './tune-compiler.ts';

interface CompileOptions extends InputOptions, Omit<FleetOptions, 'hostAddresses'> {
  readonly out?: string;
  readonly golden?: string;
  readonly print?: PrintName;
  readonly check?: string;
  readonly output: OutputFormat;
}

export function addCompileCommand(program: Command, terminal: Terminal, done: (status: ExitStatus) => void): void {
  const command = program
    .command('compile')
    .description('Compile Services and EndpointSlices to what kube-proxy would program on one node.');
  addInputOptions(command)
    .option(
      '--node <name>',
      'the node to compile for (default: hostnameOverride, or else the only Node in the input); repeat to write a folder for each',
      append,
    )
    .addOption(new Option('--all-nodes', 'compile for each Node in the input, into a folder each').conflicts('node'))
    .option('--shard <i/n>', 'compile only part I of N of the nodes; I counts from 0')
    .option('--allow-empty', 'compile even if that programs nothing, which removes all Services from a node')
    .option('--prune', 'remove the folders of nodes that are no longer in the input')
    .addOption(
      new Option('-o, --out <folder>', 'write the files to a folder, replacing everything in it')
        .argParser(parseOutFolder(true))
        .conflicts(['print', 'check']),
    )
    .addOption(
      new Option('--golden <folder>', 'write a golden to keep in git: a file for each Service, so that branches merge')
        .argParser(parseOutFolder(true))
        .conflicts(['out', 'print', 'check']),
    )
    .addOption(new Option('--print <file>', 'print one file').choices(Object.keys(printNames)).conflicts('check'))
    .option('--check <folder>', 'write nothing; print how the folder differs: exit status 1 if it does')
    .addOption(
      new Option('--output <format>', 'how to print; with --check, github annotates the Services of a pull request')
        .choices(outputFormats)
        .default('text'),
    )
    .action(async (options: CompileOptions) => done(await runCompile(options, terminal)));
}

async function runCompile(options: CompileOptions, terminal: Terminal): Promise<ExitStatus> {
  if (options.check === undefined && (options.output === 'github' || options.output === 'junit')) {
    await terminal.err(`kpc: error: --output ${options.output} is for --check: name a folder with --check\n`);
    return exitStatus.badInput;
  }
  if (!isFleet(options)) tuneForShortRun();
  const { hostAddresses: hosts, ...others } = options;
  const loaded = await loadInputs(isHostFolder(hosts) || isFleet(options) ? others : options, terminal);
  if (isFleet(options)) return compileFleet(loaded, options, terminal);
  const nodeName = chooseNodeName(options.node?.[0], loaded.prepared);
  const checked = addDiagnostics(settleVersion(loaded, nodeName), [
    ...checkRequest(options),
    ...(await checkTarget(options, { kind: 'bundle' })),
    ...checkCompiled([nodeName], options, loaded),
  ]);
  return compileOne(
    isHostFolder(hosts) ? addHostAddresses(checked, hosts, nodeName) : checked,
    nodeName,
    options,
    terminal,
  );
}

async function compileFleet(loaded: LoadedInputs, options: CompileOptions, terminal: Terminal): Promise<ExitStatus> {
  const { prepared } = loaded;
  const { golden, check: checked } = options;
  const out = options.out ?? golden;
  if (options.print !== undefined || (out === undefined && checked === undefined)) {
    await terminal.err('kpc: error: several nodes need a folder: name one with -o, --golden or --check\n');
    return exitStatus.badInput;
  }
  const fleet = chooseFleet(options, prepared);
  const { preparedFor, diagnostics: wrongVersions } = prepareForNodes(prepared, loaded.version, fleet.nodes);
  const target = await checkTarget(options, { kind: 'fleet', nodes: fleet.nodes.length });
  const diagnostics = [
    ...target,
    ...fleet.diagnostics,
    ...wrongVersions,
    ...checkCompiled(fleet.nodes, options, loaded),
    ...notesOf(loaded, options),
    ...loaded.diagnostics,
  ];
  await reportDiagnostics(diagnostics, loaded.files, terminal);
  if (hasErrors(diagnostics)) {
    await reportFailure(options, diagnostics, terminal);
    return exitStatus.badInput;
  }
  const run = { prepared, preparedFor, fleet, diagnostics, options, terminal };
  return out === undefined
    ? checkFleet(checked ?? '', run)
    : writeFleet(out, run, golden === undefined ? 'bundle' : 'golden');
}

/** What is wrong with what is compiled, for these nodes. */
function checkCompiled(
  nodeNames: readonly string[],
  options: CompileOptions,
  { prepared, diagnostics }: LoadedInputs,
): readonly Diagnostic[] {
  // An object that is wrong is not there.
  if (hasErrors(diagnostics)) return [];
  const { node, allowEmpty, ipFamily } = options;
  const chosen = ipFamily === 'ipv4' || ipFamily === 'ipv6' ? [ipFamily] : bothFamilies;
  return [
    ...checkNodes(nodeNames, isFleet(options) ? (node ?? []) : node, prepared),
    ...(allowEmpty ? [] : describeEmptyResult(prepared.services, prepared.cluster, chosen)),
  ];
}

function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(({ severity }) => severity === 'error');
}

/**
 * Which mode was taken, where nothing names one. Where nothing is compiled there is no need; and --check compares with a
 * bundle that says its own.
 */
function notesOf({ modeNote, diagnostics }: LoadedInputs, { check: folder }: CompileOptions): readonly Diagnostic[] {
  return modeNote && folder === undefined && !hasErrors(diagnostics) ? [modeNote] : [];
}

/** What is wrong with what is asked of one node. */
function checkRequest({ node, prune }: CompileOptions): readonly Diagnostic[] {
  return [...(node ?? []).flatMap((name) => checkNodeName(name) ?? []), ...(prune ? [pruneWhat] : [])];
}

/** What is wrong with the folder that --check names. */
async function checkTarget({ check: folder }: CompileOptions, expected: Expected): Promise<readonly Diagnostic[]> {
  if (folder === undefined) return [];
  const { checkFolder } = await import('./check-folder.ts');
  const problem = checkFolder(folder, expected);
  return problem ? [problem] : [];
}

function addDiagnostics(loaded: LoadedInputs, more: readonly Diagnostic[]): LoadedInputs {
  return more.length === 0 ? loaded : { ...loaded, diagnostics: [...more, ...loaded.diagnostics] };
}

/** Takes the node's own file from a folder with the addresses of many. */
function addHostAddresses(loaded: LoadedInputs, folder: string, nodeName: string): LoadedInputs {
  const { addresses, diagnostics } = readHostFolder(folder, [nodeName]);
  return { ...addDiagnostics(loaded, diagnostics), hostAddresses: addresses.get(nodeName) };
}

async function compileOne(
  loaded: LoadedInputs,
  nodeName: string,
  options: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const failed = hasErrors(loaded.diagnostics);
  // What nothing is compiled for needs no word on what its bundle would lack.
  const missing = failed ? [] : describeNodeGaps(nodeName, loaded.prepared, loaded.hostAddresses);
  const diagnostics = [...missing, ...notesOf(loaded, options), ...loaded.diagnostics];
  await reportDiagnostics(diagnostics, loaded.files, terminal);
  if (failed) {
    await reportFailure(options, diagnostics, terminal);
    return exitStatus.badInput;
  }
  const { hostAddresses } = loaded;
  const content = compileNode(loaded.prepared, { nodeName, hostAddresses, ipFamily: options.ipFamily });
  if (options.check !== undefined) return check(options.check, content, diagnostics, options, terminal);
  return output(content, diagnostics, options, terminal);
}

async function output(
  content: BundleContent,
  diagnostics: readonly Diagnostic[],
  options: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (options.print !== undefined) return print(options.print, content, terminal);
  const bundle = makeBundle(content);
  const { golden, output: format } = options;
  const folder = options.out ?? golden;
  const form = golden === undefined ? 'bundle' : 'golden';
  const status = folder === undefined ? exitStatus.ok : await write(folder, form, content, bundle, terminal);
  if (format === 'json') {
    // What is in a folder need not be told again.
    const files = folder === undefined ? { files: Object.fromEntries(bundle.files) } : { folder };
    await terminal.out(
      formatJson({ diagnostics: diagnosticsToJson(diagnostics), manifest: bundle.manifest, ...files }),
    );
    return status;
  }
  if (folder !== undefined) return status;
  await terminal.out(formatAll(bundle.files));
  await terminal.err(
    `${summarize(bundle.manifest)}\nWrite them to a folder with -o, or see one with --print ${mainFile(bundle.manifest)}.\n`,
  );
  return exitStatus.ok;
}

/** The name after --print of the file that tells most of a bundle. */
function mainFile({ mode, families }: Manifest): PrintName {
  switch (mode) {
    case 'ipvs':
      return 'ipvsadm';
    case 'iptables':
      return families.includes('ipv4') ? 'iptables' : 'ip6tables';
  }
}

async function write(
  folder: string,
  form: 'bundle' | 'golden',
  content: BundleContent,
  { manifest, files }: Bundle,
  terminal: Terminal,
): Promise<ExitStatus> {
  const problem =
    form === 'golden'
      ? await replaceFolder(folder, makeGolden(content, goldenContext), writeQuickly)
      : await replaceFolder(folder, files);
  if (problem) {
    await terminal.err(`kpc: error: ${describeFolderProblem(problem)}\n`);
    return exitStatus.badInput;
  }
  await terminal.err(`${summarize(manifest)}\nWritten to ${folder}.\n`);
  return exitStatus.ok;
}

async function check(
  folder: string,
  content: BundleContent,
  diagnostics: readonly Diagnostic[],
  { output: format }: CompileOptions,
  terminal: Terminal,
): Promise<ExitStatus> {
  const isGolden = await holdsGolden(folder);
  const result = await checkBundle(folder, isGolden ? makeGolden(content, goldenContext) : makeBundle(content).files);
  if (result.kind === 'unreadable') {
    await terminal.err(`kpc: error: cannot read ${folder}: ${result.reason}\n`);
    return exitStatus.badInput;
  }
  const same = result.kind === 'same';
  if (same && format === 'text') return exitStatus.ok;
  const { reportCheck, checkToText, checkToJson, checkToGithub, checkToJunit } = await import('./check-report.ts');
  const report = await reportCheck(folder, same ? [] : result.files, content);
  switch (format) {
    case 'text':
      await terminal.out(same ? '' : result.diff);
      await terminal.err(checkToText(report));
      break;
    case 'json':
      await terminal.out(checkToJson(report, diagnostics));
      break;
    case 'github':
      await terminal.out(checkToGithub(report, diagnostics));
      break;
    case 'junit':
      await terminal.out(checkToJunit(report));
      break;
  }
  if (same) return exitStatus.ok;
  const first = result.strangers.length > 0 ? "remove the files that don't belong, and " : '';
  await terminal.err(
    `${folder} differs in ${nameSome(result.files.map(printable), 12)}: ${first}write it again with ${isGolden ? '--golden' : '-o'} ${folder}\n`,
  );
  return exitStatus.differs;
}

/** Where input does not compile, programs and GitHub are told why in their own words too. */
async function reportFailure(
  { output: format }: CompileOptions,
  diagnostics: readonly Diagnostic[],
  terminal: Terminal,
): Promise<void> {
  if (format === 'json') await terminal.out(formatJson({ diagnostics: diagnosticsToJson(diagnostics) }));
  if (format !== 'github') return;
  const { checkToGithub } = await import('./check-report.ts');
  await terminal.out(checkToGithub(undefined, diagnostics));
}

async function print(name: PrintName, content: BundleContent, terminal: Terminal): Promise<ExitStatus> {
  const file = printNames[name];
  const text = file === 'manifest.json' ? makeBundle(content).files.get(file) : formatFile(file, content);
  if (text === undefined) {
    await terminal.err(
      `kpc: error: there is no ${file} in mode ${content.settings.mode} for ${content.families.join(' and ')}\n`,
    );
    return exitStatus.badInput;
  }
  await terminal.out(text);
  return exitStatus.ok;
}
