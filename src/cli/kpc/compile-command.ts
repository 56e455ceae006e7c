import { InvalidArgumentError } from 'commander';
import { formatCount } from '../../base/format-count.ts';
import { nameSome } from '../../base/join-words.ts';
import { printable } from '../../base/printable.ts';
import { isError, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import {
  checkSnapshot,
  compileOne,
  findMistake,
  formatOne,
  isFleet,
  openToCompile,
  printNames,
  writeSnapshot,
  type CompileOptions,
  type OpenedToCompile,
} from '../../library/node/compile.ts';
import { openFlags } from '../../library/options.ts';
import { refuse } from '../../library/refusal.ts';
import { formatAll, mainFile, summarize } from '../../report/bundle-text.ts';
import type { FolderForm, OutputFormat } from '../../report/check-report.ts';
import { formatJson } from '../../report/format-json.ts';
import { compiled, compiledFleet } from '../../report/outputs/compile.ts';
import { describeFolderProblem, formatError } from '../../report/render-diagnostics.ts';
import { flagRow, type Flag } from '../../settings/flag.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import { exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { acceptCommand } from './accept-command.ts';
import { defineCommand, type Call } from './call.ts';
import { clusterFlags, nameInputs, type ClusterOptions } from './cluster-input.ts';
import { outputFlag } from './flags.ts';
import { modeFromWords, traceWords, withoutDefaultMode } from './input-options.ts';
import { formatFailure, makeStrict, messageFlags, showProgress, type MessageOptions } from './messages.ts';
import { repositoryPaths } from '../../git/repository-paths.ts';

interface CommandOptions extends CompileOptions, MessageOptions, ClusterOptions {
  readonly jobs: number;
  readonly output: OutputFormat;
}

/** A call whose inputs are named; `trace` are the words of a `kpc trace` on them, without the packet. */
interface Asked {
  readonly call: Call<CommandOptions>;
  readonly trace: readonly string[];
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

const mostJobs = 64;

function parseJobs(text: string): number {
  const jobs = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (jobs < 1 || jobs > mostJobs) throw new InvalidArgumentError(`Write a number from 1 to ${mostJobs}.`);
  return jobs;
}

export const addCompileCommand = defineCommand<CommandOptions>({
  name: 'compile',
  description: 'Compile Services and EndpointSlices to what kube-proxy would program on one node.',
  arguments: [['[input...]', 'manifests, as with -f']],
  flags: [
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
  ],
  run: async (asked) => {
    const { call, words } = await nameInputs(asked, asked.words, 'rules');
    const { options } = call;
    const { check, print, output } = options;
    if (check === undefined && output !== 'text' && output !== 'json')
      refuse(`--output ${output} is for --check`, 'name a folder with --check');
    const opened = await openToCompile(options);
    const mistake = await findMistake(opened, options);
    if (mistake) await report(call, [mistake], opened);
    const trace = traceWords(call.command, words);
    if (isFleet(options)) return compileMany({ call, trace }, opened);
    const made = compileOne(opened, options);
    // The summary says which mode it is.
    const {
      snapshot,
      gaps,
      diagnostics: found,
    } = print === undefined && output === 'text' ? withoutDefaultMode(made) : made;
    const diagnostics = await report(call, [...gaps(), ...found], opened);
    const side = snapshot ?? call.end();
    if (check !== undefined) return checkOne({ call, trace }, check, side, diagnostics);
    if (print !== undefined) await call.out(formatOne(print, side));
    else await write(call, side, diagnostics, modeFromWords(opened.loaded));
    return exitStatus.ok;
  },
});

/** Says what there is to say of the input. Ends the call, in the format of --output too, if that holds an error. */
async function report(
  call: Call<CommandOptions>,
  found: readonly Diagnostic[],
  { loaded: { files } }: OpenedToCompile,
): Promise<readonly Diagnostic[]> {
  const diagnostics = makeStrict(found, call.options);
  await call.print(diagnostics, files);
  if (!diagnostics.some(isError)) return diagnostics;
  await call.out(await formatFailure(call.options.output, diagnostics));
  return call.end();
}

async function write(
  call: Call<CommandOptions>,
  snapshot: Parameters<typeof writeSnapshot>[0],
  diagnostics: readonly Diagnostic[],
  modeFrom: string,
): Promise<void> {
  const { manifest, folder, files } = await writeSnapshot(snapshot, call.options);
  const summary = summarize(manifest, modeFrom);
  if (folder !== undefined) await call.say(`${summary}\nWritten to ${folder}.\n`);
  if (call.options.output === 'json') {
    const { diagnosticsToJson } = await import('../../report/json.ts');
    // The files are already in the folder.
    const content = folder === undefined ? { files: Object.fromEntries(files()) } : { folder };
    await call.out(formatJson(compiled, { diagnostics: diagnosticsToJson(diagnostics), manifest, ...content }));
  } else if (folder === undefined) {
    await call.out(formatAll(files()));
    await call.say(`${summary}\nTo write the files, add -o DIR; to see one, add --print ${mainFile(manifest)}.\n`);
  }
}

async function checkOne(
  { call, trace }: Asked,
  folder: string,
  snapshot: Parameters<typeof writeSnapshot>[0],
  diagnostics: readonly Diagnostic[],
): Promise<ExitStatus> {
  const { output, taken } = call.options;
  const wordsFor = (form: FolderForm, isOfRevision: boolean) => {
    // What a revision holds stays as it is.
    const accept = isOfRevision ? undefined : acceptCommand(call.argv, folder, form);
    return { accept, trace, taken, pathOf: repositoryPaths() };
  };
  const { result, printed, note, accept } = await checkSnapshot(folder, snapshot, output, diagnostics, wordsFor);
  if (printed !== '') await call.out(printed);
  if (note !== '') await call.say(note);
  if (result.kind === 'same') return exitStatus.ok;
  const strays = result.strangers.length > 0 ? " Remove the files that don't belong." : '';
  const differs = `${folder} differs in ${nameSome(result.files.map(printable), 12)}.${strays}`;
  await call.say(accept === undefined ? `${differs}\n` : `${differs} To accept the change:\n  ${printable(accept)}\n`);
  return exitStatus.negative;
}

/** Replaced by scripts/build-binary.mjs: whether Node and the program are one file, which no thread can load. */
declare const KPC_IS_BINARY: boolean | undefined;
const isBinary = typeof KPC_IS_BINARY !== 'undefined' && KPC_IS_BINARY;

async function compileMany({ call, trace }: Asked, opened: OpenedToCompile): Promise<ExitStatus> {
  const { options, argv, terminal } = call;
  const { golden, check = '', print, output, taken } = options;
  const out = options.out ?? golden;
  if (print !== undefined || (out === undefined && options.check === undefined))
    refuse('several nodes need a folder', 'name one with -o, --golden or --check');
  if (options.jobs > 1 && isBinary)
    refuse('--jobs needs kpc as a program of Node', 'run this binary several times with --shard');
  const { checkFleet, describeNodes, openFleet, writeFleet } = await import('../../library/node/fleet.ts');
  const { run, diagnostics: found } = openFleet(opened, options);
  const diagnostics = await report(call, found, opened);
  const { nodes } = run.fleet;
  const progress = showProgress(nodes.length, terminal);
  if (out !== undefined) {
    const { counts, problem, stale } = await writeFleet(out, run, golden === undefined ? 'bundle' : 'golden', progress);
    if (problem) {
      const done = counts.written + counts.unchanged;
      const before = done === 0 ? '' : `The folders of ${formatCount(done)} nodes before this one are done.\n`;
      await terminal.err(`${formatError(...describeFolderProblem(problem))}${before}`);
      return exitStatus.badInput;
    }
    if (output === 'json') {
      const { diagnosticsToJson } = await import('../../report/json.ts');
      const said = { diagnostics: diagnosticsToJson(diagnostics), folder: out, nodes: nodes.length, ...counts };
      await call.out(formatJson(compiledFleet, said));
    }
    const { written, unchanged } = counts;
    await call.say(`${describeNodes(run.fleet)}: ${written} written, ${unchanged} unchanged, in ${out}\n${stale}`);
    return exitStatus.ok;
  }
  const { formatFleetCheck, reportCheck } = await import('../../report/check-report.ts');
  const { form, report: checked } = await checkFleet(
    check,
    run,
    output === 'text'
      ? undefined
      : (folder, snapshot, own, files) => {
          const accept = acceptCommand(argv, check, own);
          return reportCheck(folder, files, snapshot, own, { accept, trace, pathOf: repositoryPaths() });
        },
    progress,
  );
  await call.out(await formatFleetCheck({ ...checked, taken }, output));
  if (checked.changed.length + checked.stale.length === 0) return exitStatus.ok;
  const prune = checked.stale.length > 0 && !options.prune ? ['--prune'] : [];
  const accept = acceptCommand(argv, check, form, prune);
  await call.say(`${check} does not match the input. To accept the change:\n  ${printable(accept)}\n`);
  return exitStatus.negative;
}
