import type { Command } from 'commander';
import { Option } from 'commander';
import { oneLine } from '../../diff/one-line.ts';
import type { Side } from '../../diff/side.ts';
import type { PacketProtocol } from '../../packet/packet.ts';
import { packetProtocols } from '../../packet/packet.ts';
import { formatDescription } from '../../report/description-text.ts';
import { formatJson } from '../../report/format-json.ts';
import { formatMatrix, matrixJson } from '../../report/trace-matrix.ts';
import type { SideOptions } from '../../sides/read-side.ts';
import { explainTrace, traceJson } from '../../trace/explain.ts';
import { traceMatrix } from '../../trace/matrix.ts';
import type { Read } from '../../trace/question.ts';
import { findPorts, packetOf, readEnds } from '../../trace/question.ts';
import type { Scene } from '../../trace/scene.ts';
import type { ExitStatus } from '../shared/exit-status.ts';
import { exitStatus } from '../shared/exit-status.ts';
import type { Terminal } from '../shared/terminal.ts';
import { addInputOptions } from './input-options.ts';
import type { MessageOptions } from './message-options.ts';
import { addMessageOptions, quieten } from './message-options.ts';
import { readScenes } from './read-scene.ts';

/** The options of kpc trace. */
interface TraceOptions extends SideOptions, MessageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly proto?: PacketProtocol;
  readonly inInterface?: string;
  readonly all?: string;
  readonly allNodes?: boolean;
  readonly output: 'text' | 'json';
}

export function addTraceCommand(program: Command, terminal: Terminal, done: (status: ExitStatus) => void): void {
  const command = program
    .command('trace')
    .summary('Show what a node does with a packet, rule by rule.')
    .description(
      'Show what a node does with the first packet of a connection: whether it is delivered, to which endpoints and with ' +
        'which source, refused, dropped or left alone, and by which rules. The rules of other programs in a dump take part. ' +
        'If the result depends on a rule that kpc does not understand, it says so, and does not guess.',
    )
    .argument('[input...]', 'where to look, as with -f: manifests, a bundle, or a dump of a node')
    .option('--from <source>', 'an address, a Pod by its name, pod, remote-pod, node or external')
    .option('--to <destination>', 'address:port, svc/name[:port], or a DNS name as pods write it')
    .addOption(new Option('--proto <protocol>', 'the protocol; icmp is a ping').choices(packetProtocols))
    .option('--in-interface <name>', 'the interface of the node that the packet comes in by')
    .option('--all <service>', 'a table: from every kind of source to every address of a Service')
    .option('--all-nodes', 'on each node of the input')
    .addOption(new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text'));
  addInputOptions(command).option(
    '--node <name>',
    'the node (default: hostnameOverride, or else the only Node in the input)',
  );
  addMessageOptions(command).action(async (inputs: readonly string[], options: TraceOptions) => {
    const isWhole = options.from !== undefined && options.to !== undefined;
    if (options.all === undefined && !isWhole) {
      command.error('error: which packet? Write --from SOURCE --to DESTINATION, or --all SERVICE');
    }
    const file = inputs.length > 0 ? inputs : (options.file ?? []);
    if (file.length === 0)
      command.error('error: no input is named: add manifests, a bundle or a dump, with - for stdin');
    done(await runTrace({ ...options, file }, quieten(terminal, options)));
  });
}

async function runTrace(options: TraceOptions, terminal: Terminal): Promise<ExitStatus> {
  const scenes = await readScenes(options, options.allNodes === true, terminal);
  if (!scenes) return exitStatus.badInput;
  const answers = scenes.map((scene) => answer(options, scene));
  const wrong = answers.find((each) => each.kind === 'wrong');
  if (wrong?.kind === 'wrong') {
    await terminal.err(`kpc: error: ${oneLine(wrong.text)}\n`);
    return exitStatus.badInput;
  }
  const values = answers.flatMap((each) => (each.kind === 'read' ? [each.value] : []));
  if (options.output === 'json') {
    const byNode = values.map(({ json }, i) => ({ node: nameOf(scenes[i]?.side), trace: json }));
    await terminal.out(formatJson(options.allNodes ? byNode : values[0]?.json));
  } else await terminal.out(values.map(({ text }) => text(terminal.colour.out)).join('\n'));
  return exitStatus.ok;
}

function nameOf(side: Side | undefined): string {
  return side?.services?.node.name ?? '';
}

interface Answer {
  readonly json: unknown;
  readonly text: (colour: boolean) => string;
}

function answer(options: TraceOptions, scene: Scene): Read<Answer> {
  if (options.all !== undefined) {
    const ports = findPorts(options.all, options.namespace, scene);
    if (ports.kind === 'wrong') return ports;
    const matrix = traceMatrix(ports.value, scene);
    return {
      kind: 'read',
      value: { json: matrixJson(matrix), text: (colour) => formatMatrix(matrix, nameOf(scene.side), colour) },
    };
  }
  const { from = '', to = '', proto: protocol, inInterface, namespace } = options;
  const ends = readEnds({ from, to, protocol, inInterface, namespace }, scene);
  if (ends.kind === 'wrong') return ends;
  const { sender, target } = ends.value;
  const trace = { sender, target, fate: scene.evaluate(packetOf(sender, target)) };
  return {
    kind: 'read',
    value: {
      json: traceJson(trace, scene),
      text: (colour) => formatDescription([explainTrace(trace, scene)], colour),
    },
  };
}
