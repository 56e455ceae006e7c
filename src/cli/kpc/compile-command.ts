import { InvalidArgumentError } from 'commander';
import { formatCount, shellWord } from '../../base/printable.ts';
import { endLast, isError, type Finding } from '../../base/findings/finding.ts';
import {
  checkSnapshot,
  expectTarget,
  compileOne,
  findEmptyInput,
  formatOne,
  isFleet,
  openToCompile,
  printNames,
  writeSnapshot,
  type CompileRequest,
  type FolderForm,
  type OpenedToCompile,
  type WordsOfForm,
} from '../../library/node/compile.ts';
import { withoutDefaultMode } from '../../library/open.ts';
import { allowEmptyFlag } from '../../library/command-flags.ts';
import { type Flag, flagRow, openFlags } from '../../library/options.ts';
import { refuse } from '../../library/refusal.ts';
import { modeSourceOf } from '../../library/words.ts';
import { formatCompiled } from '../../say/bundle-text.ts';
import { answerOutputs, type AnswerOutput } from '../../say/formats/answer.ts';
import { formatJson } from '../../say/formats/json.ts';
import type { compiledFleet } from '../../say/outputs/compile-and-compare.ts';
import { countBeforeEnd, parseOutFolder } from '../shared/path-words.ts';
import { exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { defineCommand, type Call } from './call.ts';
import { clusterFlags, nameInputs, type ClusterOptions } from './open-input.ts';
import { outputFlag, givenTraceWords } from './flags.ts';
import { makeStrict, messageFlags, showProgress, type MessageOptions } from './messages.ts';
interface CommandOptions extends CompileRequest, MessageOptions, ClusterOptions {
  readonly jobs: number;
  readonly output: AnswerOutput;
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
    idle: [{ without: '--all-nodes' }],
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
    allowEmptyFlag,
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
    flagRow('text', '--print <file>', 'print one file', {
      choices: [...printNames.keys()],
      rivals: ['check'],
    }),
    flagRow(
      'text',
      '--check <folder>',
      'write nothing; print how this bundle or golden differs: exit status 1 if it does',
      {
        path: 'read',
      },
    ),
    outputFlag(answerOutputs, {
      help: 'how to print; with --check, github annotates the Services of a pull request, and markdown is for its summary',
      group: 'output',
      idle: [{ value: 'json', beside: '--print', why: 'prints-file' }],
    }),
  ],
  run: async (asked) => {
    const { call, words } = await nameInputs(asked, asked.words, 'rules');
    const { options } = call;
    const { check, print, output } = options;
    if (check === undefined && output !== 'text' && output !== 'json') refuse({ problem: 'output-of-check', output });
    expectTarget(options);
    const opened = await openToCompile(options);
    const mistake = await findEmptyInput(opened, options);
    if (mistake) await reportCompiled(call, [mistake], opened);
    const { nodeOfFolder } = opened;
    const trace = givenTraceWords(call.command, words);
    const wordsFor: WordsOfForm = (form, adds) => {
      const node = nodeOfFolder === undefined ? [] : ['--node', nodeOfFolder];
      const accept = acceptCommand(call.argv, check ?? '', form, [...node, ...adds]);
      return { accept, trace, taken: options.taken };
    };
    if (isFleet(options)) return compileMany(call, opened, wordsFor);
    const made = compileOne(opened, options);
    // The note on the mode is dropped, because the summary or the answer names the mode.
    const isSaid = check !== undefined || (print === undefined && output === 'text');
    const { snapshot, gaps, diagnostics: found } = isSaid ? withoutDefaultMode(made) : made;
    await reportCompiled(call, [...gaps(), ...found], opened);
    const side = snapshot ?? call.end();
    if (check !== undefined) {
      const { isSame, report: checked, result } = await checkSnapshot(check, side, wordsFor);
      const { aboutCheck, checkAnswer } = await import('../../say/check-report.ts');
      await call.answerAs(output, checkAnswer(checked, result, call.said));
      await call.say(aboutCheck(checked, result, output));
      return isSame ? exitStatus.ok : exitStatus.negative;
    }
    const modeFrom = modeSourceOf(opened.loaded);
    const form = output === 'json' ? 'json' : 'text';
    if (print !== undefined) await call.out(formatOne(print, side));
    else
      await call.answer(formatCompiled(side, await writeSnapshot(side, options), form, { said: call.said, modeFrom }));
    return exitStatus.ok;
  },
});

async function reportCompiled(
  call: Call<CommandOptions>,
  found: readonly Finding[],
  { loaded: { files } }: OpenedToCompile,
): Promise<void> {
  const diagnostics = makeStrict(found, call.options);
  await call.print(endLast(diagnostics), files);
  if (diagnostics.some(isError)) call.end();
}

export const addThreadCommand = defineCommand({
  name: 'fleet-thread',
  isHidden: true,
  run: async () => {
    const { runThread } = await import('../../library/node/fleet.ts');
    await runThread();
    return exitStatus.ok;
  },
});

/** scripts/build-binary.mjs sets this. True if Node and the program are one file. Threads cannot load such a file. */
declare const KPC_IS_BINARY: boolean | undefined;
const isBinary = typeof KPC_IS_BINARY !== 'undefined' && KPC_IS_BINARY;

async function compileMany(
  call: Call<CommandOptions>,
  opened: OpenedToCompile,
  wordsFor: WordsOfForm,
): Promise<ExitStatus> {
  const { options, terminal } = call;
  const { golden, check = '', output } = options;
  const out = options.out ?? golden;
  if (options.jobs > 1 && isBinary) refuse({ problem: 'jobs-of-binary' });
  const { checkFleetFolder, openFleet, writeFleetFolder } = await import('../../library/node/fleet.ts');
  const { run, diagnostics: found } = openFleet(opened, options);
  await reportCompiled(
    call,
    options.check === undefined ? found : withoutDefaultMode({ diagnostics: found }).diagnostics,
    opened,
  );
  const progress = showProgress(run.fleet.nodes.length, terminal);
  if (out === undefined) {
    const checked = await checkFleetFolder(check, run, output !== 'text', wordsFor, progress);
    const { aboutFleetCheck, fleetCheckAnswer } = await import('../../say/check-report.ts');
    await call.answerAs(output, fleetCheckAnswer(checked.report, call.said));
    await call.say(aboutFleetCheck(checked.report, output));
    return checked.isSame ? exitStatus.ok : exitStatus.negative;
  }
  const {
    failure,
    done,
    counts,
    snapshots = [],
    said,
  } = await writeFleetFolder(out, run, golden === undefined ? 'bundle' : 'golden', progress);
  if (failure) {
    if (done > 0) await terminal.err(`The folders of ${formatCount(done)} nodes are done.\n`);
    refuse({ problem: 'folder', wrong: failure });
  }
  if (output === 'json') {
    const result = { folder: out, ...counts };
    await call.out(formatJson<typeof compiledFleet>({ ...call.said, snapshots, result }));
  }
  await call.say(said);
  return exitStatus.ok;
}

/** The flags that matter for a check but not for writing the folder. The value says whether the flag has a value. */
const left: ReadonlyMap<string, boolean> = new Map([
  ['--check', true],
  ['--output', true],
  ['-q', false],
  ['--quiet', false],
]);

/** Returns the command that writes the folder of --check again: the same command, but with --golden or -o instead of --check. */
export function acceptCommand(
  argv: readonly string[],
  folder: string,
  form: FolderForm,
  adds: readonly string[] = [],
): string {
  const writes = [form === 'golden' ? '--golden' : '-o', folder, ...adds];
  const end = countBeforeEnd(argv);
  const kept: string[] = [];
  let isWritten = false;
  for (let i = 0; i < end; i++) {
    const word = argv[i] ?? '';
    const [flag = ''] = word.split('=');
    const hasValue = left.get(flag);
    if (hasValue === undefined) {
      kept.push(word);
      continue;
    }
    if (hasValue && flag === word) i++;
    if (flag !== '--check') continue;
    kept.push(...writes);
    isWritten = true;
  }
  const words = isWritten ? kept : [...kept, ...writes];
  return ['kpc', ...words, ...argv.slice(end)].map(shellWord).join(' ');
}
