import type { Shaped } from '../base/json-shape.ts';
import type { Finding } from '../base/findings/finding.ts';
import { drawWays } from '../say/draw-way.ts';
import { formatJson } from '../say/formats/json.ts';
import type { SaidFinding } from '../say/words/said.ts';
import { traced } from '../say/outputs/trace.ts';
import { answerTrace, type TraceAnswer, type TraceQuestion } from '../say/trace-answer.ts';
import type { Scene } from '../trace/scene.ts';
import { checkPacketOptions, scenesOf, type PacketInput } from './open.ts';
import { diagnosticsOf } from './words.ts';

export { hasNoNames } from '../trace/question.ts';
export { packetProtocols } from '../packet/packet.ts';
export type { Scene, TraceQuestion };

/** The answers of nodes to one question. */
export interface TraceAnswers {
  readonly nodes: readonly { readonly node: string; readonly answer: TraceAnswer }[];
  /** Whether they are a list, also of one node. */
  readonly isList: boolean;
}

/** Asks each node; or what is wrong with the question, on the first of them that it makes no sense on. */
export function askNodes(
  question: TraceQuestion,
  scenes: readonly Scene[],
  isList: boolean,
): TraceAnswers | readonly Finding[] {
  const nodes: TraceAnswers['nodes'][number][] = [];
  for (const scene of scenes) {
    const answer = answerTrace(question, scene);
    if (!('json' in answer)) return answer;
    nodes.push({ node: scene.side.nodeName, answer });
  }
  return { nodes, isList };
}

function jsonOf({ nodes, isList }: TraceAnswers): Traced {
  const [only] = isList ? [] : nodes;
  return only ? only.answer.json : nodes.map(({ node, answer }) => ({ node, trace: answer.json }));
}

export const traceOutputs = ['text', 'json', 'svg'] as const;

export function formatTrace(
  answers: TraceAnswers,
  output: (typeof traceOutputs)[number],
  { isColoured, width }: { readonly isColoured: boolean; readonly width: number | undefined },
): string {
  const { nodes } = answers;
  switch (output) {
    case 'text':
      return nodes.map(({ answer }) => answer.text(isColoured, width)).join('\n');
    case 'svg':
      return drawWays(nodes.flatMap(({ answer }) => answer.ways));
    case 'json':
      return formatJson(traced, jsonOf(answers));
  }
}

/** Options of trace: the flags of `kpc trace`. It needs from and to, or all. */
export type TraceOptions = PacketInput & TraceQuestion;

/** What a node does with a packet, as `kpc trace --output json` prints it; with allNodes, a list of nodes. */
export type Traced = Shaped<typeof traced>;

/** The answer, or why there is none. */
export interface TraceResult {
  /** Undefined if a diagnostic is an error. */
  readonly trace: Traced | undefined;
  readonly diagnostics: readonly SaidFinding[];
}

const questionOptions = ['from', 'to', 'proto', 'inInterface', 'all', 'namespace'] as const;

/**
 * Traces the first packet of a connection through a node: who sends it, where to, and by which rules it ends how.
 *
 * ```ts
 * import { trace } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }' };
 * // Without the EndpointSlices of web, nobody knows its endpoints.
 * const { trace: found } = trace({ manifests, proxyMode: 'nftables', from: 'pod', to: 'svc/web' });
 * console.log(found && 'verdict' in found ? found.verdict : undefined); // unknown
 * ```
 */
export function trace(options: TraceOptions): TraceResult {
  checkPacketOptions(options, questionOptions);
  const { from, to, all } = options;
  if (all === undefined && (from === undefined || to === undefined)) throw new TypeError('name from and to, or all');
  const { scenes, diagnostics } = scenesOf(inputOf(options));
  const isList = 'allNodes' in options && options.allNodes === true;
  const found = askNodes(options, scenes ?? [], isList);
  const isAnswered = 'nodes' in found;
  return {
    trace: scenes && isAnswered ? jsonOf(found) : undefined,
    diagnostics: diagnosticsOf([...(isAnswered ? [] : found.slice(0, 1)), ...diagnostics]),
  };
}

/** The input without the question, which the pipeline does not know. */
function inputOf(options: TraceOptions): PacketInput {
  if ('side' in options) return { side: options.side };
  const { from: _from, to: _to, proto: _proto, inInterface: _in, all: _all, ...input } = options;
  return input;
}
