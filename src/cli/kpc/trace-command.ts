import { shellWord } from '../../base/printable.ts';
import {
  askNodes,
  checkQuestion,
  formatTrace,
  lackOfQuestion,
  readsNoNames,
  sideOfSender,
  traceOutputs,
  type TraceQuestion,
} from '../../library/trace.ts';
import { nodeFlag, traceFlags } from '../../library/command-flags.ts';
import { flagRow, openFlags } from '../../library/options.ts';
import { refuse, refuseFlag } from '../../library/refusal.ts';
import { exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { defineCommand, type Call } from './call.ts';
import { outputFlag } from './flags.ts';
import { messageFlags } from './messages.ts';
import { clusterFlags, nameInputs, openScenes, type InputFlags } from './open-input.ts';
import { dirname, isAbsolute, join } from 'node:path';
import { readTestFiles } from '../../library/node/open.ts';
import { answerOutputs, type AnswerOutput } from '../../say/formats/answer.ts';
import { testAnswer, TestRun, writeHoldingTests, type SceneSettings } from '../../library/test.ts';

interface TraceFlags extends InputFlags, Omit<TraceQuestion, 'namespace' | 'node' | 'allNodes'> {
  readonly output: (typeof traceOutputs)[number];
}

export const addTraceCommand = defineCommand<TraceFlags>({
  name: 'trace',
  summary: 'Show what a node does with a packet, rule by rule.',
  description:
    'Show what a node does with the first packet of a connection: whether it is delivered (to which endpoints, with which source), ' +
    "refused, dropped or left alone, and by which rules; and, if the input shows the node's routes, whether the connection works. " +
    'The rules of other programs in a dump count too. ' +
    'If the result depends on something unknown, kpc says what would settle it instead of guessing. Network policies ' +
    'in the input are evaluated at the Pods, and an Ingress or a route of the Gateway API is followed to its Services.',
  arguments: [['[input...]', 'where to look, as with -f: manifests, a bundle, or a dump of a node']],
  flags: [
    ...traceFlags,
    flagRow('on', '--all-nodes', 'on each node in the input'),
    outputFlag(traceOutputs, {
      idle: [{ value: 'svg', beside: '--all', why: 'table' }],
    }),
    ...openFlags('looks'),
    ...clusterFlags,
    nodeFlag('the node (default: hostnameOverride, or else the only Node in the input)'),
    ...messageFlags,
  ],
  run: async (asked) => {
    const lacks = lackOfQuestion(asked.options);
    if (lacks) refuse({ problem: 'no-packet', lacks });
    await asked.expectNone(checkQuestion(asked.options));
    const { call } = await nameInputs(asked, asked.words, 'traffic');
    const { options, terminal } = call;
    if (options.file.length === 0) refuse({ problem: 'no-input', takes: 'any' });
    const scenes = await openScenes(call, call.given, (scene) => [sideOfSender(options, scene)]);
    if (call.isGiven('namespace') && scenes.every((scene) => readsNoNames(options, scene)))
      refuseFlag('--namespace', 'no-names');
    const answers = askNodes(options, scenes);
    if ('faults' in answers) {
      await call.print(answers.faults, new Map());
      const areAbsent = answers.faults.every(({ code }) => code === 'not-found');
      return call.fail(areAbsent ? exitStatus.negative : exitStatus.badInput, answers.sides);
    }
    await call.out(
      formatTrace(answers, options.output, { isColoured: terminal.colour.out, width: terminal.width, said: call.said }),
    );
    return answers.answers.some(({ lacksTarget }) => lacksTarget) ? exitStatus.negative : exitStatus.ok;
  },
});

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
    'Check what happens to packets against files of expectations: who sends what, and which endpoints get the packet, or that it ' +
    'is refused or dropped. If a packet is treated differently, kpc test shows its trace, and the exit status is 1.',
  arguments: [['[file...]', 'files of expectations; with --init, manifests, a bundle or a dump']],
  flags: [
    flagRow('on', '--init', 'print a file of expectations that hold now: from every kind of sender to every address'),
    flagRow('on', '--all-nodes', 'on each node in the input, where a test names no node'),
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
    const { text, untested, skipped } = writeHoldingTests({ ...call.options, file }, scenes, unheldFlags(call));
    const { leftOut, listings } = untested;
    if (text !== undefined && leftOut.length > 0) await call.note({ problem: 'untested', ...untested });
    await call.out(text ?? refuse({ problem: 'nothing-to-test', skipped, listings }));
    return exitStatus.ok;
  },
});

/** Returns, in words, the flags that affect the answers but cannot be written in a test file. */
function unheldFlags({ given, command }: Call<TestFlags>): readonly string[] {
  const held = new Set<string>([...sceneSettings, 'config']);
  return given
    .filter(({ key, needs }) => needs !== undefined && !held.has(key))
    .map(({ name, key, kind }) => {
      const value: unknown = command.getOptionValue(key);
      return kind === 'off' || value === true ? name : `${name} ${shellWord([value].flat().join(','))}`;
    });
}

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
  // These flags are left out, because tests may state them, and findMisfit compares them with the input.
  const flags = call.given.filter(({ key }) => key !== 'proxyMode' && key !== 'kubernetesVersion');
  const quiet = call.once();
  let isUsable = true;
  for (const settings of run.settings) {
    const flagPlaces = new Map([...(options.flagPlaces ?? []), ...run.flagPlaces(settings)]);
    const own = quiet.with({ ...settings, flagPlaces });
    isUsable =
      (await quiet.tries(async () =>
        run.open(settings, await openScenes(own, flags, (scene) => run.sidesFor(settings, scene))),
      )) && isUsable;
  }
  const results = run.send();
  const isWrong = run.diagnostics.length > 0;
  if (isWrong) await call.print(run.diagnostics, files);
  if (run.isRefused || !isUsable || results.length === 0) return call.fail(exitStatus.badInput);
  await call.answerAs(options.output, testAnswer(results, terminal.colour.out, call.said));
  if (isWrong) return exitStatus.badInput;
  return results.every(({ faults }) => faults.length === 0) ? exitStatus.ok : exitStatus.negative;
}

function pathFromTest(testFile: string, path: string): string {
  return path === '-' || isAbsolute(path) ? path : join(dirname(testFile), path);
}
