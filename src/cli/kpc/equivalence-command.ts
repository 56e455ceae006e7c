import { pathWord } from '../../base/printable.ts';
import { answerOutputs, type AnswerOutput } from '../../say/formats/answer.ts';
import { equivalenceAnswer, NodeComparison, type Scene } from '../../library/compare-nodes.ts';
import {
  calledSide,
  expectChange,
  isUnknownSide,
  nearestMode,
  openChange,
  openPair,
  readSide,
  recognisePair,
  refuseIdleOfSides,
  type ChangeOptions,
  type NamedSide,
} from '../../library/node/pair.ts';
import { checkValues } from '../../library/inputs.ts';
import { migrateFlags, nodeFlag } from '../../library/command-flags.ts';
import { flagRow, flagWords, openFlags } from '../../library/options.ts';
import { refuse } from '../../library/refusal.ts';
import { exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { defineCommand, type Call } from './call.ts';
import { outputFlag, traceSide, givenTraceWords, wordsOfCall, readRevisions } from './flags.ts';
import { messageFlags, showProgress } from './messages.ts';
import { expectManifests, expectNodes, useReading, type InputFlags } from './open-input.ts';

interface EquivalenceFlags extends InputFlags {
  readonly output: AnswerOutput;
}

export const addEquivalenceCommand = defineCommand<EquivalenceFlags>({
  name: 'equivalence',
  summary: 'Prove which packets two sides treat differently, and why.',
  description:
    'Trace packets through both sides, one of every class that either side distinguishes, and show by cause where the ' +
    'verdict, the endpoints or the source differ. Exit status 1 if any do. Each side is a mode (ipvs, iptables, nftables), a ' +
    "release (1.36) or a file with kube-proxy's configuration, for which the manifests of -f are compiled; or a bundle, " +
    'a dump of a node, or manifests.',
  arguments: [
    ['<from>', 'the old side'],
    ['<to>', 'the new side'],
  ],
  flags: [
    ...openFlags('looks'),
    nodeFlag(
      'the node (default: hostnameOverride, or else the only Node; all Nodes of both sides, if both are compiled)',
    ),
    flagRow('on', '--all-nodes', 'on every node in the input; nodes that are alike count as one'),
    outputFlag(answerOutputs),
    ...messageFlags,
  ],
  run: async (call) => {
    const [from = '', to = ''] = call.words;
    const { readStdin } = call.options;
    const [old, fresh] = [await readSide(from, readStdin), await readSide(to, readStdin)];
    await call.expectNone([old, fresh].flatMap(({ adds }) => checkValues(adds ?? {})));
    const found = await recognisePair([old, fresh], call.options);
    const wrong = found.filter(isUnknownSide);
    const [first] = wrong;
    if (first) {
      refuse({ problem: 'unknown-side', names: wrong.map(({ name }) => name), meant: nearestMode(first.name) });
    }
    await refuseIdleOfSides(call.given, found);
    const { optionsOf, commandOf } = readRevisions(call);
    const sides = await openPair(found, { ...call.options, compare: wordsOfCall(call.command) }, [], optionsOf);
    for (const side of sides) await expectNodes(call, side);
    const words = ({ side }: Scene, { name, adds }: NamedSide) =>
      traceSide(commandOf(name), side, adds ? (call.options.file ?? []) : [name], flagWords(adds ?? {}));
    const named = {
      from,
      to,
      traceOf: ([before, after]) => ({ old: words(before, old), new: words(after, fresh) }),
    } satisfies Parameters<NodeComparison['result']>[0];
    return reportComparison(call, new NodeComparison(...sides, [calledSide(old), calledSide(fresh)]), named);
  },
});

async function reportComparison(
  call: Call<EquivalenceFlags>,
  comparison: NodeComparison,
  words: Parameters<NodeComparison['result']>[0],
): Promise<ExitStatus> {
  const progress = showProgress(comparison.counts.standIns, call.terminal);
  for (const { readings, notes } of comparison.run()) {
    for (const reading of readings) await useReading(call, reading);
    await call.note(...notes);
    await progress.step();
  }
  await progress.end();
  const result = comparison.result(words) ?? call.end();
  const { report: found, placeOf } = result;
  await call.answerAs(call.options.output, equivalenceAnswer(found, call.terminal.colour.out, call.said, placeOf));
  return result.passed ? exitStatus.ok : exitStatus.negative;
}

type MigrateFlags = EquivalenceFlags & ChangeOptions;

export const addMigrateCommand = defineCommand<MigrateFlags>({
  name: 'migrate',
  summary: 'Show what a change of mode or an upgrade needs and breaks, on all nodes.',
  description:
    "Show what a cluster needs before kube-proxy's mode or release changes, and which packets are treated differently after it, on every " +
    'node in the input. Exit status 1 if something breaks, or has to be set first.',
  arguments: [['[input...]', 'manifests of the cluster, as with -f: Services, EndpointSlices and Nodes']],
  flags: [...migrateFlags, nodeFlag('on one node only'), outputFlag(answerOutputs), ...messageFlags],
  run: async (asked) => {
    expectChange(asked.options);
    const file = asked.inputs(asked.words, asked.options.file);
    if (file.length === 0) refuse({ problem: 'no-input', takes: 'cluster' });
    await expectManifests(asked, file);
    const { loaded, pair, allNodes, announced, modeFrom } = await openChange({ ...asked.options, file });
    const call = asked.with({ file, allNodes });
    const sides = await openPair(pair, { ...call.options, loaded });
    await expectNodes(call, sides[0]);
    const words = ({ adds = {} }: NamedSide) => givenTraceWords(call.command, file.map(pathWord), flagWords(adds));
    return reportComparison(call, new NodeComparison(...sides, [calledSide(pair[0]), calledSide(pair[1])], announced), {
      from: pair[0].name,
      to: pair[1].name,
      modeFrom,
      traceOf: () => ({ old: words(pair[0]), new: words(pair[1]) }),
    });
  },
});
