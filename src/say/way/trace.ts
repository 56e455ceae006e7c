import { joinWays, percent } from '../../base/printable.ts';
import { joinHostPort } from '../../kernel/address.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/ports-and-marks.ts';
import { unnamedMode } from '../grounds.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import {
  failingShare,
  isArrival,
  isOpen,
  isPart,
  otherwiseShare,
  shareOf,
  sourceText,
  isUnknownOwn,
  type KnownFate,
  type ReachedEndpoint,
} from '../../packet/packet.ts';
import type { Step } from '../../packet/step.ts';
import { lines, type Block } from '../lines.ts';
import { assumedLine, assumedValues, valuesOfTrace } from './assumed-values.ts';
import { otherEnds, otherEndWords } from './ends.ts';
import { listNotes, findExistingFlows } from './notes.ts';
import { nodeClause, stepInWords, type RouteStep, type TraceInWords } from './step.ts';
import { senderName } from './sender.ts';
import { verdictWords, causeOfStop } from './stop.ts';
import { connectionWords, connectionDoes, type ConnectionInWords } from './connection.ts';
import { judgePolicies } from '../../ask/trace/network-policies.ts';
import type { Sender, Trace } from '../../ask/trace/question.ts';
import { conditionWords, reasonSentence, reasonWords } from './reason.ts';
import { otherServiceOf, servicePortAt } from '../../ask/trace/service-ends.ts';
import { isLocalEndpoint, type Scene } from '../../ask/trace/scene.ts';

/** Describes a trace in words. Leaves out steps that have no effect. */
export function describeTrace(trace: Trace, scene: Scene): TraceInWords {
  const { sender, target, fate } = trace;
  const { side } = scene;
  const { mode } = side;
  const name = side.nodeName;
  const ofNone = side.kind === 'dump' ? side.name : 'an unspecified node';
  const node = name === '' ? ofNone : `node ${name}`;
  const isPing = target.protocol === 'icmp';
  const where = isPing ? `ping to ${target.address.text}` : `${target.protocol} to ${socketWords(target)}`;
  const label = labelOfTarget(trace, scene);
  const to = label === undefined ? '' : ` (${label})`;
  const connection = connectionWords(trace, scene);
  const [verdict = '', ...doubts] =
    fate.verdict === 'unknown'
      ? unknownReasons(trace, scene)
      : [`${verdictWords(fate, trace, scene)}${withConnection(fate, connection)}`];
  const { endpoints, steps: met } = fate.otherwise ?? fate;
  const steps = met.filter((_, i) => leadsOn(met, i, fate.verdict === 'unknown' && !fate.otherwise));
  return {
    heading: `${where}${to} from ${senderWords(sender)}, on ${node}${mode ? ` in ${modeFacts[mode].title}` : ''}${side.assumed?.mode ? ` ${unnamedMode}` : ''}`,
    verdict,
    doubts,
    isGood:
      isArrival(fate.verdict) &&
      !otherServiceOf(fate, target, side) &&
      !failingShare(fate) &&
      !otherwiseShare(fate) &&
      !connection.isUndecided,
    endpoints: [
      ...endpoints.map((endpoint) => endpointWords(endpoint, sender, scene, connection)),
      ...otherEnds(trace, scene).map(otherEndWords),
    ],
    notes: listNotes(trace, scene),
    steps: steps.filter((_, i) => !isRepeated(steps, i)).map((step) => stepInWords(step, trace, scene)),
    assumed: assumedLine(valuesOfTrace(trace, scene), side),
  };
}

/** Returns the Service port that a packet is sent to. The question names it, or it is found by its address. */
function labelOfTarget({ target }: Trace, { side }: Scene): string | undefined {
  return target.label ?? (isUnknownOwn(target.address) ? undefined : servicePortAt(target, side)?.label);
}

function senderWords({ who, address, isExample }: Sender): string {
  if (address === undefined) return senderName(who);
  return `${senderName(who)} (${isExample ? 'such as ' : ''}${address.text})`;
}

/** Returns a colon if a list of endpoints follows the verdict. */
function colonIfDelivered({ verdict }: Pick<KnownFate, 'verdict'>): string {
  return verdict === 'delivered' ? ':' : '';
}

/** If the first packet arrives but the connection may still fail, adds what happens to the connection. */
function withConnection(fate: KnownFate, connection: ConnectionInWords): string {
  const { kind, reason, failure, doubt, isUndecided, byEndpoint } = connection;
  if (!isArrival(fate.verdict) || reason === undefined) return colonIfDelivered(fate);
  const open = shareOf(fate, (verdict, outcome) => verdict === fate.verdict && isOpen(outcome));
  // The verdict already says how many connections fail, and each other end has its own line.
  if (isPart(failingShare(fate)) || otherwiseShare(fate) > 0 || isPart(open)) {
    const why = failure === undefined ? '' : `: ${failure}`;
    const rest = doubt === undefined ? '' : `; whether ${percent(open)} of connections work is unknown: ${doubt}`;
    return `${why}${rest}` || colonIfDelivered(fate);
  }
  switch (kind) {
    case 'works':
      return colonIfDelivered(fate);
    case 'unknown': {
      if (!isUndecided) return colonIfDelivered(fate);
      const what = byEndpoint.size > 0 ? 'all connections work' : 'the connection works';
      return `, but it is not known whether ${what}: ${reason}`;
    }
    case 'fails':
      return `, but the connection fails: ${reason}`;
    case 'partial':
      return `, but some connections fail: ${reason}`;
    case 'depends':
      return `, but whether the connection works depends on more than the rules: ${reason}`;
  }
}

/** Returns an address and port. For an unknown address of the node, returns "the node, port 30080". */
function socketWords({ address, port }: SocketAddress): string {
  return isUnknownOwn(address) ? `the node, port ${port}` : joinHostPort(address.text, port);
}

export function listTraceLines(trace: TraceInWords): Block {
  return [
    ...lines('heading', 0, trace.heading),
    ...trace.assumed,
    ...lines(trace.isGood ? 'good' : 'bad', 1, trace.verdict),
    ...lines('bad', 1, ...trace.doubts),
    ...lines('plain', 2, ...trace.endpoints),
    ...lines('plain', 1, ...trace.notes),
    ...lines('heading', 1, trace.steps.length > 0 && 'how'),
    ...trace.steps.flatMap(({ hook, where, what, rule, servicePort, place }, i) => {
      const owner = servicePort === undefined ? '' : ` [${servicePort}]`;
      const from = place ? `  (${place.file}:${place.line}:${place.column})` : '';
      const at = hook === undefined ? '' : `${hook}: `;
      return [
        ...lines('plain', 2, `${String(i + 1).padStart(2)}. ${at}${what}${owner}${from}`),
        ...lines('dim', 4, rule === undefined ? where : `${where}: ${rule}`),
      ];
    }),
  ];
}

/** Reports whether a later routing step makes the same decision. The kernel may route a packet again after a hook that changed nothing. */
function isRepeated(steps: readonly Step[], index: number): boolean {
  const step = steps[index];
  if (step?.kind !== 'route') return false;
  const next = steps.find((each, i) => i > index && each.kind === 'route');
  return next?.kind === 'route' && decisionKey(next) === decisionKey(step);
}

function decisionKey({ decision, destination }: RouteStep): string {
  return JSON.stringify([decision, destination.text]);
}

/** Reports whether a jump leads to a rule that matches. The last step before an unknown end counts too. */
function leadsOn(steps: readonly Step[], index: number, endsInDoubt: boolean): boolean {
  const [step, next] = [steps[index], steps[index + 1]];
  if (step?.kind !== 'rule' || (step.action.kind !== 'jump' && step.action.kind !== 'goto')) return true;
  if (!next) return endsInDoubt;
  return next.kind === 'rule' && next.chain === step.action.chain && leadsOn(steps, index + 1, endsInDoubt);
}

/** Says why a verdict is unknown, with one reason on each line. Also gives the outcome if these reasons did not apply. */
function unknownReasons(trace: Trace, scene: Scene): readonly string[] {
  const { fate, target } = trace;
  const reasons = fate.reasons.map((reason) => reasonWords(reason, target.address.family, scene));
  const unknown = reasons.map((each) => `unknown: ${reasonSentence(each)}`);
  return fate.otherwise
    ? [
        ...unknown,
        `${conditionWords(fate)}: ${verdictWords(fate.otherwise, trace, scene)}${colonIfDelivered(fate.otherwise)}`,
      ]
    : unknown;
}

function endpointWords(
  endpoint: ReachedEndpoint,
  { address }: Sender,
  scene: Scene,
  { byEndpoint }: ConnectionInWords,
): string {
  const { source, masqueradedAs, probability } = endpoint;
  const where = nodeClause(isLocalEndpoint(scene, endpoint));
  const isNode = source === 'masqueraded' || isUnknownOwn(source);
  const own = masqueradedAs ? `${masqueradedAs.text}, the node's address,` : "the node's address";
  const client = isNode ? own : source.text === address?.text ? undefined : source.text;
  const sees = client === undefined ? "sees the client's own address" : `sees ${client} as the client`;
  const outcome = byEndpoint.get(formatSocketAddress(endpoint));
  const answer = outcome === undefined ? '' : `; the connection ${connectionDoes[outcome]}`;
  return `${percent(probability).padStart(6)}  ${formatSocketAddress(endpoint)}${where}; ${sees}${answer}`;
}

export function traceJson(trace: Trace, scene: Scene) {
  const { sender, target, fate } = trace;
  const connection = connectionWords(trace, scene);
  const notes = listNotes(trace, scene);
  const policies = judgePolicies(trace, scene).map(({ policies: own, endpoints, ...finding }) => ({
    ...finding,
    names: own.map(({ name }) => name),
    endpoints: [...endpoints.values()].map(({ address, port }) => ({ address: address.text, port })),
  }));
  const others = otherEndsJson(trace, scene);
  const { side } = scene;
  const assumed = assumedValues(valuesOfTrace(trace, scene), side).map(({ value }) => value);
  return {
    verdict: fate.verdict,
    cause: causeOfStop(trace, scene),
    from: { sender: senderName(sender.who), address: sender.address?.text, example: sender.isExample || undefined },
    to: {
      address: isUnknownOwn(target.address) ? 'node' : target.address.text,
      port: target.port,
      protocol: target.protocol,
      servicePort: labelOfTarget(trace, scene),
    },
    node: side.nodeName === '' ? undefined : side.nodeName,
    mode: side.mode,
    assumed: assumed.length === 0 ? undefined : assumed,
    endpoints: endpointsJson(fate, connection),
    sourceAfter: fate.masqueradedAs?.text ?? sourceText(fate.source),
    redirectedTo: fate.redirectedTo,
    otherEnds: others.length === 0 ? undefined : others,
    connection: connection.kind,
    connectionReason: connection.reason,
    failing: fate.verdict === 'unknown' ? undefined : roundShare(failingShare(fate)),
    ...unknownJson(trace, scene),
    otherService: otherServiceOf(fate.otherwise ?? fate, target, side),
    notes: notes.length === 0 ? undefined : notes,
    policies: policies.length === 0 ? undefined : policies,
    existingFlows: findExistingFlows(trace, scene)?.ends.map(({ end, flows }) => {
      return { address: end.address.text, port: end.port, flows };
    }),
    steps: fate.steps.map((each) => stepInWords(each, trace, scene)),
  };
}

/** Returns, for programs, why a verdict is unknown, and the outcome if the reasons did not apply. Empty if the verdict is known. */
function unknownJson({ fate, target }: Trace, scene: Scene) {
  if (fate.verdict !== 'unknown') return {};
  const { otherwise } = fate;
  return {
    reasons: fate.reasons.map((reason) => {
      const said = reasonWords(reason, target.address.family, scene);
      return { ...said, settle: joinWays(said.settle) };
    }),
    otherwise: otherwise && {
      condition: conditionWords(fate),
      verdict: otherwise.verdict,
      endpoints: endpointsJson(otherwise),
      sourceAfter: sourceText(otherwise.source),
      redirectedTo: otherwise.redirectedTo,
    },
  };
}

function otherEndsJson(trace: Trace, scene: Scene) {
  return otherEnds(trace, scene).map(({ verdict, probability, endpoint, connection, reason }) => ({
    verdict,
    probability: roundShare(probability),
    address: endpoint?.address.text,
    port: endpoint?.port,
    connection,
    reason: reason || undefined,
  }));
}

function roundShare(share: number): number {
  return Number(share.toFixed(6));
}

/** Formats endpoints with the source that each sees. Sources may differ: a pod that reaches itself sees the node's address. */
function endpointsJson({ endpoints }: KnownFate, connection?: ConnectionInWords) {
  return endpoints.map(({ address, port, probability, source, masqueradedAs }) => ({
    address: address.text,
    port,
    probability: roundShare(probability),
    sourceAfter: masqueradedAs?.text ?? sourceText(source),
    connection: connection?.byEndpoint.get(joinHostPort(address.text, port)),
  }));
}
