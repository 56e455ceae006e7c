import type { Command } from 'commander';
import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import { packetProtocols } from '../../packet/packet.ts';
import { formatJson } from '../../report/format-json.ts';
import { answer as answerShape, tracedNodes } from '../../report/outputs/trace.ts';
import { answerTrace, type TraceAnswer, type TraceQuestion } from '../../report/trace-answer.ts';
import { drawWays } from '../../report/draw-way.ts';
import { openFlags } from '../../library/options.ts';
import { flagRow, type Flag } from '../../settings/flag.ts';
import { hasNoNames } from '../../trace/question.ts';
import type { Scene } from '../../trace/scene.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { clusterFlags, withCluster } from './cluster-input.ts';
import { addFlags, givenFlags, nodeFlag, outputFlag } from './flags.ts';
import { namedInputs } from './input-options.ts';
import { messageFlags, quieten, refuse, reportDiagnostics } from './messages.ts';
import { readScenes, type SceneOptions } from './read-scene.ts';

interface TraceOptions extends SceneOptions, Omit<TraceQuestion, 'namespace'> {
  readonly allNodes?: boolean;
  readonly output: 'text' | 'json' | 'svg';
}

const missingHelp = {
  sender: 'add --from, such as --from pod, or --from external for a client outside the cluster',
  destination: 'add --to, such as --to svc/NAME, or ask for a table with --all SERVICE',
  packet: 'write --from SOURCE --to DESTINATION, or --all SERVICE',
} as const;

const asTable = 'write --from and --to in place of --all';

const questionFlags: readonly Flag[] = [
  flagRow('text', '--from <source>', 'an address, a Pod by its name, pod, remote-pod, node or external'),
  flagRow(
    'text',
    '--to <destination>',
    'address:port, svc/name[:port], a DNS name as pods write it, ingress/name, gateway/name, httproute/name, or the host/path of one',
    { idle: [{ beside: '--all', what: '--to names one packet, and --all asks for a table', help: asTable }] },
  ),
  flagRow('text', '--proto <protocol>', 'the protocol; icmp is a ping', {
    choices: packetProtocols,
    idle: [{ beside: '--all', what: '--all asks each port by its own protocol, and --proto names one', help: asTable }],
  }),
  flagRow('text', '--in-interface <name>', "the node's interface where the packet arrives", {
    idle: [
      { without: '--from', what: '--in-interface is where the packets of --from arrive', help: 'add --from' },
      {
        beside: '--from node',
        what: "--in-interface: the node's own packets arrive by no interface",
        help: 'leave it out, or name the sender whose packets arrive there',
      },
    ],
  }),
  flagRow(
    'text',
    '--all <service>',
    'print a table: from every kind of source, and from --from, to every address of a Service',
  ),
];

export function addTraceCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('trace')
    .summary('Show what a node does with a packet, rule by rule.')
    .description(
      'Show what a node does with the first packet of a connection: whether it is delivered, to which endpoints and with ' +
        'which source, refused, dropped or left alone, and by which rules. The rules of other programs in a dump take part. ' +
        'If the result depends on something that kpc does not know, it says what would settle it, and does not guess. Network policies ' +
        'among the input are evaluated at the Pods, and an Ingress or a route of the Gateway API is followed to its Services.',
    )
    .argument('[input...]', 'where to look, as with -f: manifests, a bundle, or a dump of a node');
  addFlags(command, [
    ...questionFlags,
    flagRow('on', '--all-nodes', 'on each node of the input'),
    outputFlag(['text', 'json', 'svg'], {
      idle: [{ value: 'svg', beside: '--all', what: '--output svg draws the way of a packet', help: asTable }],
    }),
    ...openFlags('looks'),
    ...clusterFlags,
    nodeFlag('the node (default: hostnameOverride, or else the only Node in the input)'),
    ...messageFlags,
  ]).action(async (inputs: readonly string[], options: TraceOptions) => {
    const { from, to, all } = options;
    if (all === undefined && (from === undefined || to === undefined)) {
      const missing = from === undefined ? (to === undefined ? 'packet' : 'sender') : 'destination';
      command.error(`error: no ${missing} is named\n${missingHelp[missing]}`);
    }
    const named = namedInputs(command, inputs, options.file);
    const asked = await withCluster(command, { file: named, terminal: quieten(terminal, options) }, 'traffic');
    if (!asked) return done(exitStatus.badInput);
    if (asked.options.file.length === 0)
      command.error('error: no input is named\nadd manifests, a bundle or a dump, with - for stdin');
    const own = { ...options, ...asked.options, given: givenFlags(command) };
    done(await runTrace(own, asked.terminal));
  });
}

async function runTrace(options: TraceOptions, terminal: Terminal): Promise<ExitStatus> {
  const scenes = await readScenes(options, terminal);
  if (!scenes) return exitStatus.badInput;
  const idle = scenes.every((scene) => readsNoNames(options, scene));
  if (idle && (options.given ?? []).some(({ key }) => key === 'namespace'))
    return refuse(terminal, '--namespace: nothing in the question or the input has a name', 'leave it out');
  const answers: { readonly node: string; readonly answer: TraceAnswer }[] = [];
  for (const scene of scenes) {
    const answer = answerTrace(options, scene);
    if (!('json' in answer)) {
      await reportDiagnostics(answer, new Map(), terminal);
      return answer.every(isAbsence) ? exitStatus.negative : exitStatus.badInput;
    }
    answers.push({ node: scene.side.nodeName, answer });
  }
  if (options.output === 'json') {
    const byNode = answers.map(({ node, answer }) => ({ node, trace: answer.json }));
    const [first] = byNode;
    await terminal.out(
      options.allNodes || !first ? formatJson(tracedNodes, byNode) : formatJson(answerShape, first.trace),
    );
  } else if (options.output === 'svg') await terminal.out(drawWays(answers.flatMap(({ answer }) => answer.ways)));
  else await terminal.out(answers.map(({ answer }) => answer.text(terminal.colour.out, terminal.width)).join('\n'));
  return exitStatus.ok;
}

/** Whether no name is looked up: neither of the question, nor of objects beside a bundle or dump. */
function readsNoNames({ from, to, all }: TraceOptions, { side }: Scene): boolean {
  const { services, pods } = side.objects;
  if (side.kind === 'manifests' || services.length + pods.length > 0) return false;
  return all === undefined && from !== undefined && to !== undefined && hasNoNames({ from, to });
}

/** Whether nothing has the name that was asked for: the question is understood, and its answer is no. */
function isAbsence(diagnostic: Diagnostic): boolean {
  return diagnostic.code === 'bad-packet' && absences.has(diagnostic.arguments.problem);
}

const absences: ReadonlySet<ArgumentsOf<'bad-packet'>['problem']> = new Set([
  'no-sender',
  'no-such',
  'no-such-port',
  'no-port',
  'no-ingress-of-host',
] as const);
