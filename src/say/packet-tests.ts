// Prints the results of kpc test. Also writes tests that pass in the present state.
import type { SkipReason } from '../kube-proxy/skipped.ts';
import { fullName } from '../cluster/objects.ts';
import { diagnose } from '../base/findings/finding.ts';
import { printable, count, joinWords, percent } from '../base/printable.ts';
import { nameSome } from './words/rows.ts';
import { groupBy } from '../cluster/grouping.ts';
import { lines, type Block } from './lines.ts';
import { addressWords } from './port-facts.ts';
import { describeSkippedListings } from './way/lack.ts';
import { formatSocketAddress } from '../kernel/ports-and-marks.ts';
import { unnamedMode } from './grounds.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { Location } from '../kernel/place.ts';
import type { PacketResult } from '../ask/trace/packet-tests.ts';
import { connectionDoes, connectionWords } from './way/connection.ts';
import { policyNotes } from './way/notes.ts';
import { reasonWords } from './way/reason.ts';
import { listTraceLines, describeTrace, traceJson } from './way/trace.ts';
import type { Scene } from '../ask/trace/scene.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { conditionOf } from '../ask/trace/obstacles.ts';
import { otherServiceNote, stopConditionWords } from './way/stop.ts';
import { findingsMarkdown, type Answered } from './formats/answer.ts';
import { nothingLacks } from './words/answers.ts';
import { formatText } from './formats/text.ts';
import type { SaidByCommand } from './formats/json.ts';
import type { tested } from './outputs/trace.ts';
import { assumedSummary, snapshotsJson } from './snapshots.ts';
import type { TestCase } from './formats/junit.ts';
import { foldCode, formatMarkdown } from './formats/markdown.ts';
import { sayFindings, type SaidFinding } from './words/said.ts';
import { joinHostPort } from '../kernel/address.ts';
import { isUnknownOwn, isArrival, sourceText, type Fate } from '../packet/packet.ts';
import { seenSource, sharesOf, type Unexpected } from '../ask/trace/expectation.ts';
import { traceMatrix } from '../ask/trace/matrix.ts';
import { nodeSocketText } from '../ask/trace/read-destination.ts';
import type { Sender } from '../ask/trace/question.ts';

export function testAnswer(results: readonly PacketResult[], isColoured: boolean, said: SaidByCommand): Answered {
  return {
    said,
    text: () => resultsToText(results, isColoured),
    result: (): Shaped<typeof tested> => ({ tests: results.map(resultJson) }),
    markdown: () => resultsToMarkdown(results),
    findings: () => failuresOf(results),
    snapshots: () => snapshotsJson(results.map(({ scene }) => scene.side)),
    lacks: () => ({ ...nothingLacks, beside: allBeside(results) }),
    cases: () => results.map(caseOf),
  };
}

/** Returns a sentence for each way in which a packet's fate differs from the expectation. */
function faultsInWords(result: PacketResult): readonly string[] {
  return result.faults.map((fault) => faultWords(fault, result));
}

function faultWords(fault: Unexpected, { trace, scene }: Pick<PacketResult, 'trace' | 'scene'>): string {
  const { fate, target } = trace;
  const connection = connectionWords(trace, scene);
  const why = connection.reason === undefined ? '' : `: ${connection.reason}`;
  switch (fault.kind) {
    case 'works':
      return `expected that the connection fails, but it ${connectionDoes[connection.kind]}`;
    case 'fails':
      return `the packet is ${fate.verdict}, but the connection fails${why}`;
    case 'other-service':
      return otherServiceNote(trace, scene) ?? '';
    case 'verdict': {
      const reached = fate.verdict === 'delivered' ? ` to ${[...sharesOf(fate).keys()].join(', ')}` : '';
      return `expected ${fault.expected}, but the packet is ${fate.verdict}${reached}${stopConditionWords(conditionOf(target, fate, scene))}`;
    }
    case 'lost':
      return `${percent(fault.share)} of connections are not ${fate.verdict}`;
    case 'failing':
      return `${percent(fault.share)} of connections fail${why}`;
    case 'endpoints': {
      const [reached, missed] = [nameSome(fault.reached), nameSome(fault.missed)];
      if (reached === '') return `did not go to ${missed}`;
      return missed === '' ? `also went to ${reached}` : `went to ${reached}, expected ${missed}`;
    }
    case 'share':
      return `${fault.endpoint} got ${percent(fault.share)} of the connections that work, expected ${percent(fault.wanted)}`;
    case 'source': {
      const changed = fault.seen === 'changed' ? ` (${sourceText(fate.source)})` : '';
      return `expected the source ${fault.expected}, but it is ${fault.seen}${changed}`;
    }
  }
}

/** Returns "NAME: tcp from pod to svc/web (node-1, ipvs)". */
function titleOf({ name, from, to, trace, scene: { side } }: PacketResult): string {
  const where = [side.node?.name, side.mode].filter(Boolean).join(', ');
  const packet = `${name === undefined ? '' : `${name}: `}${trace.target.protocol} from ${from} to ${to}`;
  return printable(`${packet}${where === '' ? '' : ` (${where})`}`);
}

const hasFailed = ({ faults }: PacketResult): boolean => faults.length > 0;

function assumedIn(results: readonly PacketResult[]): string | undefined {
  return assumedSummary(snapshotsJson(results.map(({ scene }) => scene.side)));
}

function resultsToText(results: readonly PacketResult[], isColoured: boolean): string {
  const failed = results.filter(hasFailed);
  const role = failed.length === 0 ? 'good' : 'bad';
  const blocks = [...groupBy(failed, failureKey).values()].map((alike) => [
    ...lines('bad', 0, ...alike.map((each) => `${placeText(each.place)}: ${titleOf(each)}`)),
    ...alike.slice(0, 1).flatMap(explainResult),
  ]);
  const end = [
    ...lines(role, 0, summarizeTests(results)),
    ...lines('dim', 0, assumedIn(results)),
    ...lines('plain', 0, ...allBeside(results)),
  ];
  return formatText([...blocks, end], isColoured);
}

/** Returns "1 failed, 10 as expected, on node-1, ipvs, 1.37". */
function summarizeTests(results: readonly PacketResult[]): string {
  const failed = results.filter(hasFailed).length;
  const passed = results.length - failed;
  const counts = failed === 0 ? `${count(passed, 'packet')} as expected` : `${failed} failed, ${passed} as expected`;
  return [counts, ...describeScenes(results.map(({ scene }) => scene))].join(', ');
}

/** Formats the failures, each with a folded trace, and the assumptions. */
function resultsToMarkdown(results: readonly PacketResult[]): string {
  const alike = [...groupBy(results.filter(hasFailed), failureKey).values()];
  const beside = [...allBeside(results), assumedIn(results)].flatMap((each) => each ?? []);
  return [
    findingsMarkdown(summarizeTests(results), failuresOf(results)),
    ...alike.flatMap(([first]) => foldCode(`Trace: ${titleOf(first)}`, '', explainLines(first))),
    ...(beside.length > 0 ? [formatMarkdown([lines('plain', 0, ...beside)])] : []),
  ].join('\n');
}

function failuresOf(results: readonly PacketResult[]): readonly SaidFinding[] {
  const failed = results.filter(hasFailed).map((result) => {
    const { place } = result;
    const details = { packet: titleOf(result), faults: faultsInWords(result) };
    return diagnose('unexpected-packet', details, { file: place.file, locate: () => place });
  });
  return sayFindings(failed);
}

/** Returns a key that packets of one test share if they fail alike on one node. One trace then explains all of them. */
function failureKey(result: PacketResult): string {
  const {
    place,
    trace: { target },
    scene: { side },
  } = result;
  return JSON.stringify([
    placeText(place),
    faultsInWords(result),
    formatSocketAddress(target),
    target.protocol,
    side.nodeName,
    side.mode,
  ]);
}

/**
 * Returns remarks about a result: network policies, whether the connection is unknown, and outputs that were skipped. After a failed test,
 * only the last of these remains, because the trace shows the rest.
 */
function besideOf(result: PacketResult): readonly string[] {
  const { trace, scene, faults } = result;
  const { isUndecided, reason } = connectionWords(trace, scene);
  const open = isUndecided ? [`it is not known whether the connection works: ${reason}`] : [];
  const notes =
    faults.length > 0 ? [] : [...open, ...policyNotes(trace, scene)].map((note) => `${titleOf(result)}: ${note}`);
  return [...notes, ...describeSkippedListings(scene.side.doubts)];
}

function allBeside(results: readonly PacketResult[]): readonly string[] {
  return [...new Set(results.flatMap(besideOf))];
}

/** Names the nodes, modes and releases of the scenes in which packets were sent, as far as the inputs show them. */
function describeScenes(scenes: readonly Scene[]): readonly string[] {
  const each = (read: (side: Snapshot) => string | undefined): readonly string[] => [
    ...new Set(scenes.flatMap(({ side }) => read(side) || [])),
  ];
  const nodes = each(({ node }) => node?.name);
  const modes = each(({ mode, assumed }) => mode && `${mode}${assumed?.mode ? ` ${unnamedMode}` : ''}`);
  const releases = each(({ settings }) => settings?.release);
  return [nodes.length === 0 ? '' : `on ${nameSome(nodes)}`, joinWords(modes), joinWords(releases)].filter(
    (part) => part !== '',
  );
}

function explainResult(result: PacketResult): Block {
  const steps = listTraceLines(describeTrace(result.trace, result.scene));
  return [...lines('plain', 1, ...faultsInWords(result)), ...steps.map((each) => ({ ...each, depth: each.depth + 1 }))];
}

function explainLines(result: PacketResult): readonly string[] {
  return formatText([explainResult(result)], false)
    .split('\n')
    .filter((text) => text !== '');
}

function placeText({ file, line: row, column }: Location): string {
  return `${file}:${row}:${column}`;
}

function caseOf(result: PacketResult): TestCase {
  const failure = hasFailed(result)
    ? { title: faultsInWords(result).join('; '), lines: explainLines(result) }
    : undefined;
  return { name: titleOf(result), place: result.place, output: besideOf(result), failure };
}

export function resultJson(result: PacketResult): Shaped<typeof tested>['tests'][number] {
  const { place, trace, scene } = result;
  return {
    name: titleOf(result),
    passed: !hasFailed(result),
    place,
    faults: faultsInWords(result),
    trace: traceJson(trace, scene),
  };
}

/** The head of a file for kpc test. It has everything except the tests, and no undefined fields. */
export interface TestFileHead {
  readonly inputs: readonly string[];
  readonly hostAddresses: string | undefined;
  readonly namespace: string | undefined;
  /** Undefined for inputs that are already compiled. */
  readonly mode: string | undefined;
  readonly release: string | undefined;
  /** "all", or the name of the only node. Undefined if that node has no name. */
  readonly node: string | undefined;
}

interface HoldingTest {
  readonly name: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly proto: string | undefined;
  readonly node: readonly string[];
  readonly expect: string | readonly string[] | Readonly<Record<string, number>>;
  readonly source?: string;
}

/**
 * Makes a file for kpc test that expects the present outcome, for every kind of sender and every address of the Services. Also returns the
 * addresses that were left out because their outcome is unknown, with the commands whose output would settle it. If kube-proxy programs
 * none of the Services, also returns the Services that it skips.
 */
export function holdingTests(head: TestFileHead, scenes: readonly Scene[]) {
  const cells = scenes.flatMap(cellsOnNode);
  const isKnown = ({ fate }: (typeof cells)[number]): boolean => fate.verdict !== 'unknown';
  const known = cells.filter(isKnown).map(testOf);
  const merged = (['from', 'to', 'node'] as const).reduce<readonly HoldingTest[]>(merge, known);
  const tests = merged.map((test) => ({
    ...test,
    from: oneOrMany(test.from),
    to: oneOrMany(test.to),
    node: test.node.length === scenes.length ? undefined : oneOrMany(test.node),
  }));
  const unknown = cells.filter((cell) => !isKnown(cell));
  return {
    file: { ...head, inputs: oneOrMany(head.inputs), tests },
    untested: {
      leftOut: [...new Set(unknown.map(({ name }) => name))],
      listings: missingListings(unknown),
    },
    skipped: scenes.slice(0, 1).flatMap(skippedServices),
  };
}

/** Returns all Services, each with the reason why kube-proxy skips it. Empty if kube-proxy programs any Service. */
function skippedServices({ side }: Scene): readonly { readonly service: string; readonly why: SkipReason }[] {
  if (side.kind === 'dump' || side.ports.length > 0) return [];
  return side.cluster.services.flatMap((info) =>
    info.skipped === undefined ? [] : [{ service: fullName(info), why: info.skipped }],
  );
}

/** Lists the commands whose output is missing from what decides the unknown outcomes. */
function missingListings(unknown: ReturnType<typeof cellsOnNode>): readonly string[] {
  const commands = unknown.flatMap(({ fate, target, scene }) =>
    fate.reasons.map((reason) => {
      const { kind, command } = reasonWords(reason, target.address.family, scene);
      return kind === 'missing-listing' ? command : undefined;
    }),
  );
  return [...new Set(commands)].filter((command) => command !== undefined);
}

function oneOrMany(values: readonly string[]): string | readonly string[] {
  return values.length === 1 ? (values[0] ?? '') : values;
}

function cellsOnNode(scene: Scene) {
  return scene.side.ports.flatMap((port) =>
    traceMatrix([port], scene).cells.map((cell) => ({
      ...cell,
      name: printable(`${port.label} ${addressWords[cell.kind]}`),
      node: scene.side.nodeName,
      scene,
    })),
  );
}

function testOf({ name, node, from, sender, target, fate }: ReturnType<typeof cellsOnNode>[number]): HoldingTest {
  const { address, port, protocol } = target;
  return {
    name,
    from: [from === 'itself' ? (sender.address?.text ?? from) : from],
    to: [isUnknownOwn(address) ? nodeSocketText({ port, protocol }, address.family) : joinHostPort(address.text, port)],
    proto: protocol === 'tcp' ? undefined : protocol,
    node: [node],
    ...expectOutcome(fate, sender),
  };
}

function expectOutcome(fate: Fate, sender: Sender): Pick<HoldingTest, 'expect' | 'source'> {
  if (isArrival(fate.verdict) && fate.connection().kind === 'fails') return { expect: 'fails' };
  if (fate.verdict !== 'delivered') return { expect: fate.verdict };
  const shares = [...sharesOf(fate)];
  const [, first = 1] = shares[0] ?? [];
  const isEven = shares.every(([, share]) => Math.abs(share - first) < evenness);
  const isWhole = shares.reduce((sum, [, share]) => sum + share, 0) > 1 - evenness;
  const seen = seenSource(fate, sender);
  return {
    expect:
      isEven && isWhole
        ? shares.map(([at]) => at)
        : Object.fromEntries(shares.map(([at, share]) => [at, Number(share.toFixed(4))])),
    source: seen === 'changed' && fate.source !== 'masqueraded' ? fate.source.text : seen,
  };
}

/** Shares that differ by at most this much count as equal, because kube-proxy rounds the shares that it writes. */
const evenness = 1e-4;

/** Merges tests that differ in only one field. Keeps the order of first appearance. */
function merge(tests: readonly HoldingTest[], field: 'from' | 'to' | 'node'): readonly HoldingTest[] {
  const merged = new Map<string, HoldingTest>();
  for (const test of tests) {
    const key = JSON.stringify({ ...test, [field]: [] });
    const known = merged.get(key);
    merged.set(key, known ? { ...known, [field]: [...known[field], ...test[field]] } : test);
  }
  return [...merged.values()];
}

/** Returns a comment for a file of expectations. The comment names the flags that the file cannot hold. */
export function testComments(flags: readonly string[], isModeAssumed: boolean, leftOut: readonly string[]): string {
  const texts = [
    'Written by kpc test --init: what holds now.',
    flags.length > 0 &&
      `Made with ${flags.map(printable).join(' ')}: run kpc test with ${flags.length === 1 ? 'it' : 'them'}.`,
    isModeAssumed && 'Nothing names a mode, and kpc takes this one: write that of your nodes.',
    leftOut.length > 0 &&
      `Left out, as the input does not show what becomes of all packets to them: ${nameSome(leftOut)}.`,
  ];
  return texts.map((text) => (text === false ? '' : `# ${text}\n`)).join('');
}
