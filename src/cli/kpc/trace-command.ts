import {
  askNodes,
  checkQuestion,
  formatTrace,
  readsNoNames,
  traceOutputs,
  type TraceQuestion,
} from '../../library/trace.ts';
import { nodeFlag, traceFlags } from '../../library/command-flags.ts';
import { flagRow, openFlags } from '../../library/options.ts';
import { refuse, refuseFlag } from '../../library/refusal.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';
import { outputFlag } from './flags.ts';
import { messageFlags } from './messages.ts';
import { clusterFlags, nameInputs, openScenes, type InputFlags } from './open-input.ts';

interface TraceFlags extends InputFlags, Omit<TraceQuestion, 'namespace' | 'node' | 'allNodes'> {
  readonly output: (typeof traceOutputs)[number];
}

export const addTraceCommand = defineCommand<TraceFlags>({
  name: 'trace',
  summary: 'Show what a node does with a packet, rule by rule.',
  description:
    'Show what a node does with the first packet of a connection: whether it is delivered (to which endpoints, with which source), ' +
    "refused, dropped or left alone, and by which rules; and, if the input shows the node's routes, whether the connection works. " +
    'The rules of other programs in a dump count, too. ' +
    'If the result depends on something that kpc does not know, it says what would settle it instead of guessing. Network policies ' +
    'in the input are evaluated at the Pods, and an Ingress or a route of the Gateway API is followed to its Services.',
  arguments: [['[input...]', 'where to look, as with -f: manifests, a bundle, or a dump of a node']],
  flags: [
    ...traceFlags,
    flagRow('on', '--all-nodes', 'on each node of the input'),
    outputFlag(traceOutputs, {
      idle: [{ value: 'svg', beside: '--all', why: 'table' }],
    }),
    ...openFlags('looks'),
    ...clusterFlags,
    nodeFlag('the node (default: hostnameOverride, or else the only Node in the input)'),
    ...messageFlags,
  ],
  run: async (asked) => {
    const { from, to, all } = asked.options;
    if (all === undefined && (from === undefined || to === undefined)) {
      const missing = from === undefined ? (to === undefined ? 'packet' : 'sender') : 'destination';
      refuse({ problem: 'no-packet', lacks: missing });
    }
    await asked.expectNone(checkQuestion(asked.options));
    const { call } = await nameInputs(asked, asked.words, 'traffic');
    const { options, terminal } = call;
    if (options.file.length === 0) refuse({ problem: 'no-input', takes: 'any' });
    const scenes = await openScenes(call, call.given);
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
