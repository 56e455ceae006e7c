// Answers a trace. The answer is about one packet, or is a table of all senders and addresses.
import type { Shaped } from '../base/json/schema.ts';
import type { Finding } from '../base/findings/finding.ts';
import { unnamedMode } from './grounds.ts';
import {
  failingShare,
  isArrival,
  isUndecided,
  otherwiseShare,
  isUnknownOwn,
  type PacketProtocol,
  type Fate,
  type KnownFate,
} from '../packet/packet.ts';
import { followIngress } from '../ask/trace/ingress.ts';
import { assumedOfIngress, ingressJson, ingressLines } from './ingress.ts';
import { traceMatrix, type Matrix } from '../ask/trace/matrix.ts';
import { ask } from '../ask/trace/ask.ts';
import { findNamedPorts } from '../ask/trace/read-destination.ts';
import { conditionOf } from '../ask/trace/obstacles.ts';
import { readSender } from '../ask/trace/read-sender.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { addressWords } from './port-facts.ts';
import { assumedLine } from './way/assumed-values.ts';
import { connectionWords } from './way/connection.ts';
import { healthCheckWords, policyLines } from './way/notes.ts';
import { reasonSentence, reasonWords } from './way/reason.ts';
import { lackNote, lostWayWords, placeWithout } from './way/stop.ts';
import { describeTrace, listTraceLines, traceJson } from './way/trace.ts';
import { describeWay, type WayInWords } from './way/step.ts';
import { inOneLine } from './words/words.ts';
import { formatText, painter } from './formats/text.ts';
import type { traced } from './outputs/trace.ts';
import { unlessEmpty } from './formats/json.ts';
import { lines, type Line } from './lines.ts';
import { fitRows, joinCells } from '../base/printable.ts';
import { groupBy } from '../cluster/grouping.ts';
import { serviceName } from '../cluster/model.ts';
import { type Address, familyNames, joinHostPort } from '../kernel/address.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { formatSocketAddress } from '../kernel/ports-and-marks.ts';

/** A question about packets, in the form of the flags of `kpc trace`. */
export interface TraceQuestion {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly proto?: PacketProtocol | undefined;
  readonly inInterface?: string | undefined;
  /** The Service to trace completely: every kind of sender sends a packet to each of its addresses. */
  readonly all?: string | undefined;
  readonly namespace?: string | undefined;
  /** `node` and `allNodes`: which nodes are named. If none is, a packet from a named Pod is traced on the Pod's own node. */
  readonly node?: string | undefined;
  readonly allNodes?: boolean | undefined;
}

/** The answer for one node. */
export interface TraceAnswer {
  readonly json: Shaped<typeof traced>;
  readonly text: (isColoured: boolean, width: number | undefined) => string;
  /** Whether an Ingress or route names a Service that does not exist. */
  readonly lacksTarget: boolean;
  /** The paths to draw. Empty for a table. */
  readonly ways: readonly WayInWords[];
}

/**
 * Traces one packet, the packets of a request to an Ingress, or all packets to a Service. If there is a problem with the question, returns
 * the problem. `say` rewords texts that name flags, for callers without flags.
 */
export function answerTrace(
  question: TraceQuestion,
  scene: Scene,
  say: (words: string) => string = (words) => words,
): TraceAnswer | readonly Finding[] {
  return question.all === undefined ? answerOne(question, scene, say) : answerAll(question.all, question, scene);
}

/** Returns a table of all packets to a Service. If there is a problem with the question, returns the problem. */
function answerAll(service: string, question: TraceQuestion, scene: Scene): TraceAnswer | readonly Finding[] {
  const { from, inInterface, namespace } = question;
  const ports = findNamedPorts(service, namespace, scene);
  if (ports.kind === 'wrong') return [ports.diagnostic];
  const named = from === undefined ? undefined : { from, inInterface, namespace };
  const senders = named ? ports.value.map(({ family }) => readSender(named, family, scene)) : [];
  const [wrong] = senders;
  if (wrong?.kind === 'wrong' && senders.every(({ kind }) => kind === 'wrong')) return [wrong.diagnostic];
  const matrix = traceMatrix(ports.value, scene, named);
  const text = (isColoured: boolean, width?: number): string => {
    const table = formatMatrix(matrix, scene, { isColoured, width });
    const { side } = scene;
    const mode = side.assumed?.mode === true && `mode ${side.mode} ${unnamedMode}`;
    const assumed = [...assumedOfMatrix(matrix, side), ...lines('dim', 1, mode)];
    return assumed.length === 0 ? table : `${table}\n${formatText([assumed], isColoured)}`;
  };
  return { json: { traces: matrixJson(matrix, scene) }, text, lacksTarget: false, ways: [] };
}

/** Returns the trace of one packet or of the packets of a request to an Ingress, or the problem with the question. */
function answerOne(
  question: TraceQuestion,
  scene: Scene,
  say: (words: string) => string,
): TraceAnswer | readonly Finding[] {
  const { from = '', to = '', proto: protocol, inInterface, namespace } = question;
  const asked = { from, to, protocol, inInterface, namespace };
  const over = followIngress(asked, scene);
  if (over?.kind === 'wrong') return [over.diagnostic];
  const found = over ?? ask(asked, scene);
  if (found.kind === 'wrong') return found.faults.map(({ diagnostic }) => diagnostic);
  const traces = over ? over.value.traces : 'fate' in found.value ? [found.value] : [];
  const words = traces.map((trace) => {
    const { verdict, doubts, notes, ...others } = describeTrace(trace, scene);
    return { ...others, verdict: say(verdict), doubts: doubts.map(say), notes: notes.map(say) };
  });
  const json = traces.map((trace) => traceJson(trace, scene));
  const blocks = [...(over ? [ingressLines(over.value)] : []), ...words.map(listTraceLines)];
  return {
    json: { traces: json, requests: over ? [ingressJson(over.value, scene)] : undefined },
    lacksTarget: over?.value.faults.some(({ code }) => code === 'not-found') === true,
    text: (isColoured) => formatText(blocks, isColoured),
    ways: traces.flatMap((trace, i) =>
      words[i] ? [describeWay(trace, words[i], scene, over && assumedOfIngress(over.value))] : [],
    ),
  };
}

/** Formats a table of a Service's addresses and senders. Cuts the table to the width of the terminal, if the width is known. */
export function formatMatrix(
  matrix: Matrix,
  scene: Scene,
  { isColoured, width = Infinity }: { readonly isColoured: boolean; readonly width?: number | undefined },
): string {
  const { senders, cells, open } = matrix;
  const { nodeName: node } = scene.side;
  const paint = painter(isColoured);
  const rowOf = ({ kind, target: { address, port, protocol } }: Matrix['open'][number] | Matrix['cells'][number]) =>
    `${addressWords[kind]} ${joinHostPort(ownText(address), port)}/${protocol}`;
  const rows = groupBy(cells, rowOf);
  const unaddressed = groupBy(open, rowOf);
  const fates = [...rows].map(([row, own]) =>
    senders.map((_, at) => {
      if (unaddressed.get(row)?.some(({ column }) => column === at))
        return { role: 'bad', text: 'no address' } as const;
      return fateInShort(own.find(({ column }) => column === at)?.fate);
    }),
  );
  const table = [
    [node === '' ? 'to' : `on ${node}, to`, ...senders],
    ...[...rows.keys()].map((address, at) => [address, ...(fates[at] ?? []).map(({ text }) => text)]),
  ];
  const [head = [], ...others] = fitRows(table, { width, weights: { 0: 2 }, names: 0 });
  const painted = others.map((row, at) =>
    row.map((cell, i) => (i === 0 ? cell : paint(fates[at]?.[i - 1]?.role ?? 'plain', cell))),
  );
  const told = legendOf([...senders, ...fates.flat().map(({ text }) => text)]).map((text) => paint('dim', text));
  return `${[paint('heading', joinCells(head)), ...painted.map(joinCells), ...linesUnder(matrix, scene), ...told].join('\n')}\n`;
}

/** Returns sentences to print below a table: on health checks, assumptions, and network policies that may refuse delivered packets. */
export function linesUnder(matrix: Matrix, scene: Scene): readonly string[] {
  const { cells, open } = matrix;
  const doubts = cells.flatMap((cell) => {
    const { fate, target } = cell;
    const connection = connectionWords(cell, scene);
    return [
      ...fate.reasons.map((each) => `unknown: ${reasonSentence(reasonWords(each, target.address.family, scene))}`),
      ...(connection.isUndecided ? [`unsure: ${connection.reason}`] : []),
    ];
  });
  const lost = cells.flatMap((cell) => lostWayWords(cell, scene) ?? []);
  const places = cells.flatMap(({ fate, target }) => {
    const { placed } = conditionOf(target, fate, scene);
    return placed === undefined ? [] : [`${fate.verdict} ${placeWithout(placed)}; no Pod is assumed on this node`];
  });
  const lacks = cells.flatMap((cell) => lackNote(cell, scene) ?? []);
  return [
    ...healthCheckLines(matrix, scene),
    ...policyLines(cells, scene),
    ...new Set([...doubts, ...open.map(({ why }) => `unknown: ${inOneLine(why)}`), ...lost, ...places, ...lacks]),
  ];
}

/** Returns a line for each Service. If kube-proxy's answers differ between families, returns a line for each family. */
function healthCheckLines({ healthChecks }: Matrix, { side }: Scene): readonly string[] {
  const said = healthChecks.map((check) => ({ ...check, words: healthCheckWords(check, side) }));
  return [...groupBy(said, serviceName).values()].flatMap((own) => {
    const [words, ...others] = new Set(own.map((each) => each.words));
    if (words !== undefined && others.length === 0) return [words];
    return own.map((each) => `${each.words} (${familyNames[each.family]})`);
  });
}

function assumedOfMatrix({ senders, cells, healthChecks }: Matrix, side: Snapshot) {
  const values = [
    side.nodeName,
    ...(side.assumed?.clusterCIDRs ?? []),
    ...senders,
    ...cells.flatMap(({ target: { address, port } }) => [address.text, String(port)]),
    ...cells.flatMap(({ fate }) => fate.endpoints.map(({ address }) => address.text)),
    ...healthChecks.map(({ port }) => String(port)),
  ];
  return assumedLine(values, side);
}

function legendOf(shown: readonly string[]): readonly string[] {
  const rows = [
    [/^itself$/, 'itself: an endpoint of the Service'],
    [/^\d+ /, 'number: endpoints reached'],
    [/ kept/, 'kept: endpoints see the client'],
    [/ masq/, 'masq: endpoints see the node'],
    [/ mixed/, 'mixed: some see the client, some the node'],
    [/^local/, 'local: reaches the node itself'],
    [/^forwarded/, 'forwarded: leaves the node unchanged'],
    [/ unsure\??$/, 'unsure: packets arrive, but it is not known whether the connection works'],
    [/fails?\??$/, 'fails: connections do not work, though packets arrive'],
    [/\?$/, '?: assuming that what is not shown lets packets pass unchanged'],
    [/^-$/, '-: no such packets arrive here'],
  ] as const;
  return rows.flatMap(([pattern, words]) => (shown.some((text) => pattern.test(text)) ? [`  ${words}`] : []));
}

/** Returns an address, or "node" for an unknown address of the node. */
function ownText(address: Address): string {
  return isUnknownOwn(address) ? 'node' : address.text;
}

const roles: { readonly [V in Fate['verdict']]: Line['role'] } = {
  delivered: 'good',
  refused: 'bad',
  dropped: 'bad',
  unknown: 'bad',
  local: 'plain',
  forwarded: 'plain',
};

/** Formats a cell: where packets end, and whether endpoints see the client. */
function fateInShort(fate: Fate | undefined): Pick<Line, 'role' | 'text'> {
  if (!fate) return { role: 'dim', text: '-' };
  if (fate.verdict === 'unknown' && fate.otherwise)
    return { role: 'bad', text: `${knownInShort(fate.otherwise).text}?` };
  return knownInShort(fate);
}

function knownInShort(fate: KnownFate): Pick<Line, 'role' | 'text'> {
  const failing = isArrival(fate.verdict) ? failingShare(fate) : 0;
  if (failing === 1) return { role: 'bad', text: 'fails' };
  const isUnsure = fate.verdict !== 'unknown' && fate.connection().ways.some(({ outcome }) => isUndecided(outcome));
  const differs = isArrival(fate.verdict) && otherwiseShare(fate) > 0;
  const role = failing > 0 || differs || isUnsure ? 'bad' : roles[fate.verdict];
  const rest = `${failing > 0 ? ', some fail' : ''}${differs ? ', some end differently' : ''}${isUnsure ? ', unsure' : ''}`;
  if (fate.verdict !== 'delivered') return { role, text: `${fate.verdict}${rest}` };
  const count = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const isMasqueraded = new Set(fate.endpoints.map(({ source }) => source === 'masqueraded'));
  return {
    role,
    text: `${count} ${isMasqueraded.size > 1 ? 'mixed' : isMasqueraded.has(true) ? 'masq' : 'kept'}${rest}`,
  };
}

/** Formats the cells as traces without steps. Adds health checks, because load balancers check a node before they send packets to it. */
function matrixJson(matrix: Matrix, scene: Scene) {
  const healthChecks = healthCheckLines(matrix, scene);
  return matrix.cells.map((cell) => {
    const { kind, from: column } = cell;
    const { steps: _, notes = [], ...answer } = traceJson(cell, scene);
    const told = kind === 'cluster-ip' ? notes : [...notes, ...healthChecks];
    return { ...answer, from: { ...answer.from, column }, notes: unlessEmpty(told) };
  });
}
