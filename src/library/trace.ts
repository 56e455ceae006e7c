import type { Shaped } from '../base/json/schema.ts';
import type { Finding } from '../base/findings/finding.ts';
import { drawWays } from '../say/draw-way.ts';
import { formatJson, unlessEmpty, type SaidByCommand } from '../say/formats/json.ts';
import type { SnapshotJson } from '../say/outputs/envelope.ts';
import type { SaidFinding } from '../say/words/said.ts';
import type { traced } from '../say/outputs/trace.ts';
import { snapshotsJson } from '../say/snapshots.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { answerTrace, type TraceAnswer, type TraceQuestion } from '../say/trace-answer.ts';
import { sceneOfSender } from '../ask/trace/read-sender.ts';
import { faultsOfWords, hasNoNames, isPassedBy } from '../ask/trace/question.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { checkPacketOptions, scenesOf, withoutUnnamedNode, type PacketInput, type Scenes } from './open.ts';
import { answerInOptions, diagnosticsOf, misuse } from './words.ts';

export { packetProtocols } from '../packet/packet.ts';
export type { Scene, TraceQuestion };

export interface TraceAnswers {
  readonly sides: readonly Snapshot[];
  readonly answers: readonly TraceAnswer[];
}

function sceneFor({ from = '', namespace, node, allNodes }: TraceQuestion, scene: Scene): Scene {
  return node !== undefined || allNodes ? scene : sceneOfSender({ from, namespace }, scene);
}

export function sideOfSender(question: TraceQuestion, scene: Scene): Snapshot {
  return sceneFor(question, scene).side;
}

/** Asks the question on each node. If the question makes no sense on a node, returns the faults for the first such node. */
export function askNodes(
  question: TraceQuestion,
  scenes: readonly Scene[],
): TraceAnswers | (Pick<TraceAnswers, 'sides'> & { readonly faults: readonly Finding[] }) {
  const { allNodes } = question;
  const asked = scenes.map((scene) => sceneFor(question, scene));
  const sides = asked.map(({ side }) => side);
  const answers: (TraceAnswer & { readonly side: Snapshot })[] = [];
  for (const scene of asked) {
    const answer = answerTrace(question, scene);
    if (!('json' in answer)) {
      // With --all-nodes, a node is skipped if another of these nodes is the sender's own.
      if (
        allNodes &&
        answer.every((each) =>
          isPassedBy(
            each,
            sides.map(({ nodeName }) => nodeName),
          ),
        )
      )
        continue;
      return { sides, faults: answer };
    }
    answers.push({ ...answer, side: scene.side });
  }
  return { sides: answers.map(({ side }) => side), answers };
}

export function lackOfQuestion({ from, to, all }: Pick<TraceQuestion, 'from' | 'to' | 'all'>) {
  const isNamed = (words: string | undefined): boolean => words !== undefined && words.trim() !== '';
  const hasSender = isNamed(from) || (from === undefined && all !== undefined);
  if (isNamed(all ?? to)) return hasSender ? undefined : 'sender';
  return isNamed(from) ? 'destination' : 'packet';
}

/** Checks the words of a question, before any input is read. */
export function checkQuestion({ from, to, all }: Pick<TraceQuestion, 'from' | 'to' | 'all'>): readonly Finding[] {
  return faultsOfWords({ from: from ?? '', to: all ?? to ?? '' }).map(({ diagnostic }) => diagnostic);
}

/** Reports whether the input is a bundle or dump without Services or Pods beside it, and the question contains no name to look up. */
export function readsNoNames(
  { from, to, all }: Pick<TraceQuestion, 'from' | 'to' | 'all'>,
  { side }: Pick<Scene, 'side'>,
): boolean {
  const { services, pods } = side.objects;
  if (side.kind === 'manifests' || services.length + pods.length > 0) return false;
  return all === undefined && from !== undefined && to !== undefined && hasNoNames({ from, to });
}

function jsonOf({ answers }: TraceAnswers): Traced {
  return {
    traces: answers.flatMap(({ json }) => json.traces),
    requests: unlessEmpty(answers.flatMap(({ json }) => json.requests ?? [])),
  };
}

export const traceOutputs = ['text', 'json', 'svg'] as const;

interface TraceStyle {
  readonly isColoured: boolean;
  readonly width: number | undefined;
  readonly said: SaidByCommand;
}

export function formatTrace(
  found: TraceAnswers,
  output: (typeof traceOutputs)[number],
  { isColoured, width, said }: TraceStyle,
): string {
  const { sides, answers } = found;
  switch (output) {
    case 'text':
      return answers.map((answer) => answer.text(isColoured, width)).join('\n');
    case 'svg':
      return drawWays(answers.flatMap(({ ways }) => ways));
    case 'json':
      return formatJson<typeof traced>({ ...said, snapshots: snapshotsJson(sides), result: jsonOf(found) });
  }
}

/** The flags of `kpc trace`: either from and to, or all. */
export type TraceOptions = PacketInput & TraceQuestion;

/** The result of `kpc trace --output json`. */
export type Traced = Shaped<typeof traced>;

export interface TraceResult {
  /** Undefined if a diagnostic is an error. */
  readonly trace: Traced | undefined;
  readonly snapshots: readonly SnapshotJson[];
  readonly diagnostics: readonly SaidFinding[];
}

const questionOptions = ['from', 'to', 'proto', 'inInterface', 'all', 'namespace'] as const;

/**
 * Traces the first packet of a connection through a node. Returns its sender, its destination, and the rules that decide its end.
 *
 * ```ts
 * import { trace } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }' };
 * // Without the EndpointSlices of web, nobody knows its endpoints.
 * const { trace: found } = trace({ manifests, proxyMode: 'nftables', from: 'pod', to: 'svc/web' });
 * console.log(found?.traces[0]?.verdict); // unknown
 * ```
 */
export function trace(options: TraceOptions): TraceResult {
  checkPacketOptions(options, questionOptions);
  const lacks = lackOfQuestion(options);
  if (lacks) misuse({ problem: 'no-packet', lacks });
  return traceIn(scenesOf(inputOf(options)), options);
}

export function traceIn({ scenes, diagnostics }: Scenes, question: TraceQuestion): TraceResult {
  const found = askNodes(question, scenes ?? []);
  const snapshots = snapshotsJson(found.sides);
  if ('faults' in found) {
    const said = diagnosticsOf([...found.faults.slice(0, 1), ...withoutUnnamedNode(diagnostics, found.sides)]);
    return { trace: undefined, snapshots, diagnostics: said };
  }
  const told = withoutUnnamedNode(diagnostics, found.sides);
  return { trace: scenes && answerInOptions(jsonOf(found)), snapshots, diagnostics: diagnosticsOf(told) };
}

function inputOf(options: TraceOptions): PacketInput {
  if ('side' in options) return { side: options.side };
  const { from: _from, to: _to, proto: _proto, inInterface: _in, all: _all, ...input } = options;
  return input;
}
