import { refuse } from '../../library/refusal.ts';
import { dirname, isAbsolute, join } from 'node:path';
import { readTestFiles } from '../../library/node/open.ts';
import { answerOutputs, type AnswerOutput } from '../../say/formats/answer.ts';
import { testAnswer, TestRun, writeHoldingTests, type SceneSettings } from '../../library/test.ts';
import { nodeFlag } from '../../library/command-flags.ts';
import { flagRow, openFlags } from '../../library/options.ts';
import { exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { defineCommand, type Call } from './call.ts';
import { outputFlag } from './flags.ts';
import { messageFlags } from './messages.ts';
import { openScenes, type InputFlags } from './open-input.ts';

interface TestFlags extends InputFlags {
  readonly init?: boolean;
  readonly output: AnswerOutput;
}

const sceneSettings = [
  'file',
  'hostAddresses',
  'proxyMode',
  'kubernetesVersion',
  'node',
  'allNodes',
  'namespace',
] as const satisfies readonly (keyof SceneSettings)[];

export const addTestCommand = defineCommand<TestFlags>({
  name: 'test',
  summary: 'Check what happens to packets against expectations.',
  description:
    'Check what happens to packets against files of expectations: who sends what, and which endpoints get it, or that it ' +
    'is refused or dropped. If a packet fares differently, kpc test shows its trace, and the exit status is 1.',
  arguments: [['[file...]', 'files of expectations; with --init, manifests, a bundle or a dump']],
  flags: [
    flagRow('on', '--init', 'print a file of expectations that hold now: from every kind of sender to every address'),
    flagRow('on', '--all-nodes', 'on each node of the input, where a test names no node'),
    outputFlag(answerOutputs, {
      idle: [{ beside: '--init', why: 'prints-tests' }],
    }),
    ...openFlags('looks'),
    nodeFlag('the node, where a test names none (default: hostnameOverride, or else the only Node in the input)'),
    ...messageFlags,
  ],
  run: async (call) => {
    if (!call.options.init) return runTests(call);
    const file = call.inputs(call.words, call.options.file);
    if (file.length === 0) refuse({ problem: 'no-input', takes: 'any' });
    const scenes = await openScenes(call.with({ file }), call.given);
    const { text, leftOut } = writeHoldingTests({ ...call.options, file }, scenes);
    if (leftOut.length > 0) await call.note({ problem: 'untested', leftOut });
    await call.out(text ?? refuse({ problem: 'nothing-to-test' }));
    return exitStatus.ok;
  },
});

async function runTests(call: Call<TestFlags>): Promise<ExitStatus> {
  if (call.words.length === 0) refuse({ problem: 'no-tests' });
  const { options, terminal } = call;
  const given = Object.fromEntries(sceneSettings.filter((key) => call.isGiven(key)).map((key) => [key, options[key]]));
  const stdin = call.words.includes('-') ? await options.readStdin?.() : undefined;
  const { run, files } = readTestFiles(
    call.words,
    stdin,
    (read) => new TestRun(read, { given, file: options.file, locate: pathFromTest }),
  );
  // Tests may name these themselves: findMisfit compares them with the input.
  const flags = call.given.filter(({ key }) => key !== 'proxyMode' && key !== 'kubernetesVersion');
  const quiet = call.once();
  let isUsable = true;
  for (const settings of run.settings) {
    if (isUsable)
      isUsable = await quiet.tries(async () => run.open(settings, await openScenes(quiet.with(settings), flags)));
  }
  const results = run.send();
  if (run.diagnostics.length > 0 || !isUsable) {
    await call.print(run.diagnostics, files);
    return call.fail(exitStatus.badInput);
  }
  await call.answerAs(options.output, testAnswer(results, terminal.colour.out, call.said));
  return results.every(({ faults }) => faults.length === 0) ? exitStatus.ok : exitStatus.negative;
}

/** Paths in a file of tests are relative to its folder. */
function pathFromTest(testFile: string, path: string): string {
  return path === '-' || isAbsolute(path) ? path : join(dirname(testFile), path);
}
