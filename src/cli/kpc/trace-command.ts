import { Option, type Command } from 'commander';
import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import { packetProtocols, type PacketProtocol } from '../../packet/packet.ts';
import { formatDescription } from '../../report/colours.ts';
import { formatJson } from '../../report/format-json.ts';
import { formatMatrix, matrixJson } from '../../report/trace-matrix.ts';
import { drawTraces } from '../../report/trace-svg.ts';
import type { SideOptions } from '../../sides/read-side.ts';
import {
  listTraceLines,
  describeTrace,
  traceJson,
  type TraceInWords,
  assumedIn,
} from '../../packet/trace/trace-words.ts';
import { followIngress } from '../../packet/trace/ingress.ts';
import { traceMatrix } from '../../packet/trace/matrix.ts';
import { ask, findPorts, readSender } from '../../packet/trace/question.ts';
import type { Scene } from '../../packet/trace/scene.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { addInputOptions, namedInputs } from './input-options.ts';
import { addMessageOptions, quieten, type MessageOptions, reportDiagnostics } from './messages.ts';
import { readScenes } from './read-scene.ts';

/** The options of kpc trace. */
interface TraceOptions extends SideOptions, MessageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly proto?: PacketProtocol;
  readonly inInterface?: string;
  readonly all?: string;
  readonly allNodes?: boolean;
  readonly output: 'text' | 'json' | 'svg';
}

const missingHelp = {
  sender: 'add --from, such as --from pod, or --from external for a client outside the cluster',
  destination: 'add --to, such as --to svc/NAME, or ask for a table with --all SERVICE',
  packet: 'write --from SOURCE --to DESTINATION, or --all SERVICE',
} as const;

export function addTraceCommand(program: Command, terminal: Terminal, done: Done): void {
  const command = program
    .command('trace')
    .summary('Show what a node does with a packet, rule by rule.')
    .description(
      'Show what a node does with the first packet of a connection: whether it is delivered, to which endpoints and with ' +
        'which source, refused, dropped or left alone, and by which rules. The rules of other programs in a dump take part. ' +
        'If the result depends on a rule that kpc does not understand, it says so, and does not guess. NetworkPolicies among ' +
        'the input are evaluated at the Pods, and an Ingress is followed to its Services.',
    )
    .argument('[input...]', 'where to look, as with -f: manifests, a bundle, or a dump of a node')
    .option('--from <source>', 'an address, a Pod by its name, pod, remote-pod, node or external')
    .option(
      '--to <destination>',
      'address:port, svc/name[:port], a DNS name as pods write it, ingress/name, or the host/path of an Ingress',
    )
    .addOption(new Option('--proto <protocol>', 'the protocol; icmp is a ping').choices(packetProtocols))
    .option('--in-interface <name>', "the node's interface where the packet arrives")
    .option('--all <service>', 'a table: from every kind of source, and that of --from, to every address of a Service')
    .option('--all-nodes', 'on each node of the input')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json', 'svg']).default('text'));
  addInputOptions(command, 'looks').option(
    '--node <name>',
    'the node (default: hostnameOverride, or else the only Node in the input)',
  );
  addMessageOptions(command).action(async (inputs: readonly string[], options: TraceOptions) => {
    const { from, to, all } = options;
    if (all === undefined && (from === undefined || to === undefined)) {
      const missing = from === undefined ? (to === undefined ? 'packet' : 'sender') : 'destination';
      command.error(`error: no ${missing} is named\n${missingHelp[missing]}`);
    }
    if (options.output === 'svg' && options.all !== undefined) {
      command.error('error: --output svg draws the way of a packet\nwrite --from and --to in place of --all');
    }
    const file = namedInputs(command, inputs, options.file);
    if (file.length === 0)
      command.error('error: no input is named\nadd manifests, a bundle or a dump, with - for stdin');
    done(await runTrace({ ...options, file }, quieten(terminal, options)));
  });
}

async function runTrace(options: TraceOptions, terminal: Terminal): Promise<ExitStatus> {
  const scenes = await readScenes(options, terminal);
  if (!scenes) return exitStatus.badInput;
  const answers: { readonly node: string; readonly answer: Answer }[] = [];
  for (const scene of scenes) {
    const answer = options.all === undefined ? answerOne(options, scene) : answerAll(options.all, options, scene);
    if (Array.isArray(answer)) {
      await reportDiagnostics(answer, new Map(), terminal);
      return exitStatus.badInput;
    }
    answers.push({ node: nameOf(scene), answer: answer as Answer });
  }
  if (options.output === 'json') {
    const byNode = answers.map(({ node, answer }) => ({ node, trace: answer.json }));
    await terminal.out(formatJson(options.allNodes ? byNode : byNode[0]?.trace));
  } else if (options.output === 'svg') await terminal.out(drawTraces(answers.flatMap(({ answer }) => answer.words)));
  else await terminal.out(answers.map(({ answer }) => answer.text(terminal.colour.out, terminal.width)).join('\n'));
  return exitStatus.ok;
}

function nameOf({ side }: Scene): string {
  return side.services?.node.name ?? '';
}

interface Answer {
  readonly json: unknown;
  readonly text: (isColoured: boolean, width: number | undefined) => string;
  readonly words: readonly TraceInWords[];
}

/** A table of all packets to a Service; or what is wrong with the question. */
function answerAll(service: string, options: TraceOptions, scene: Scene): Answer | readonly Diagnostic[] {
  const { from, inInterface, namespace } = options;
  const ports = findPorts(service, namespace, scene);
  if (ports.kind === 'wrong') return [ports.diagnostic];
  const named = from === undefined ? undefined : { from, inInterface, namespace };
  const senders = named ? ports.value.map(({ family }) => readSender(named, family, scene)) : [];
  const [wrong] = senders;
  if (wrong?.kind === 'wrong' && senders.every(({ kind }) => kind === 'wrong')) return [wrong.diagnostic];
  const matrix = traceMatrix(ports.value, scene, named);
  const text = (isColoured: boolean, width?: number): string => {
    const table = formatMatrix(matrix, nameOf(scene), { isColoured, width });
    const assumed = assumedIn([table], scene.side);
    return assumed.length === 0 ? table : `${table}\n${formatDescription([assumed], isColoured)}`;
  };
  return { json: matrixJson(matrix), text, words: [] };
}

/** The trace of one packet, or those of a request over an Ingress; or what is wrong with the question. */
function answerOne(options: TraceOptions, scene: Scene): Answer | readonly Diagnostic[] {
  const { from = '', to = '', proto: protocol, inInterface, namespace } = options;
  const question = { from, to, protocol, inInterface, namespace };
  const over = followIngress(question, scene);
  if (over?.kind === 'wrong') return [over.diagnostic];
  const found = over ?? ask(question, scene);
  if (found.kind === 'wrong') return found.faults.map(({ diagnostic }) => diagnostic);
  const traces = over ? over.value.traces : 'fate' in found.value ? [found.value] : [];
  const words = traces.map((trace) => describeTrace(trace, scene));
  const json = traces.map((trace) => traceJson(trace, scene));
  const blocks = [...(over ? [over.value.lines] : []), ...words.map(listTraceLines)].map((lines) => {
    const assumed = assumedIn(
      lines.map(({ text }) => text),
      scene.side,
    );
    return [...lines.slice(0, 1), ...assumed, ...lines.slice(1)];
  });
  return {
    json: over ? { ingress: over.value.name, routes: over.value.routes, traces: json } : json[0],
    text: (isColoured, width) => formatDescription(blocks, isColoured, width),
    words,
  };
}
