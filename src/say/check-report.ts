// Reports how a bundle or golden compares with the compiled input.
import { acceptHelp, nothingLacks } from './words/answers.ts';
import { wordsOf } from './words/words.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';
import { diagnose } from '../base/findings/finding.ts';
import { count, joinPhrases, pathWord, printable } from '../base/printable.ts';
import { cutLines, nameSome } from './words/rows.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { CompiledSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import { noDifference, reportDiff, beyondWords, describeGaps } from './diff-report.ts';
import { lackingSources } from '../bundle/golden-sections.ts';
import { leftOut, otherNodesOf, unrecorded } from '../ask/diff/beyond-kernel.ts';
import { diffSides, areSidesSame, type SideDiff } from '../ask/diff/diff-sides.ts';
import type { CheckResult } from '../snapshot/files/check-folder.ts';
import { readStoredSide } from '../snapshot/files/read-side.ts';
import type { SaidByCommand } from './formats/json.ts';
import { differencesFound, firstLines, diffToJson, makeReview } from './differences.ts';
import { casesOf, type Answered, type AnswerOutput } from './formats/answer.ts';
import { formatReviewMarkdown, lacksOf } from './diff-review.ts';
import { lines, type Block } from './lines.ts';
import type { checked, checkedFleet } from './outputs/compile-and-compare.ts';
import type { SnapshotJson } from './outputs/envelope.ts';
import { groundsOf, snapshotsJson } from './snapshots.ts';
import { sayFinding, sayFindings, type SaidFinding } from './words/said.ts';
import { codeBlock, escapeMarkdown, foldCode, formatMarkdown } from './formats/markdown.ts';
import { formatText } from './formats/text.ts';
import { formatFileDiffs } from './formats/unified.ts';

/** Parts of the commands that a report proposes. */
export interface CheckWords {
  /** The command that writes the folder again. Undefined if the folder cannot be written. */
  readonly accept: string | undefined;
  /** A `kpc trace` command for the input. The packet's flags are still to be added. */
  readonly trace: readonly string[];
  /** The flags that come from kpc.yaml, in words. */
  readonly taken?: readonly string[] | undefined;
}

export interface CheckReport extends CheckWords {
  readonly folder: string;
  readonly files: readonly string[];
  /** The result of compiling the input. */
  readonly to: CompiledSnapshot;
  /** Facts in the input that the folder does not record, in words. */
  readonly unrecorded: readonly string[];
  /** Undefined if the folder has no readable bundle. The differences are then unknown. */
  readonly comparison: { readonly from: Snapshot; readonly diff: SideDiff } | undefined;
  readonly problems: readonly string[];
}

const mostLines = 20;
const limits = { servicePorts: mostLines, lines: mostLines };

export interface NodeChange {
  readonly node: string;
  readonly what: string;
}

export interface FleetReport extends Pick<CheckWords, 'accept' | 'taken'> {
  readonly folder: string;
  readonly nodes: readonly string[];
  /** The results of compiling the input for the nodes of the report. */
  readonly snapshots: readonly SnapshotJson[];
  readonly changed: readonly NodeChange[];
  readonly stale: readonly NodeChange[];
  /** Facts that the folder of a node without changes does not record, in words. */
  readonly unrecorded: readonly string[];
  readonly example: CheckReport | undefined;
}

type FolderComparison =
  | Extract<CheckResult, { readonly kind: 'same' }>
  | Pick<Extract<CheckResult, { readonly kind: 'differs' }>, 'kind' | 'files'>;

export async function reportCheck(
  folder: string,
  result: FolderComparison,
  content: CompiledSnapshot,
  words: CheckWords,
): Promise<CheckReport> {
  const to = content.with({ name: 'input' });
  const [files, present] = result.kind === 'same' ? [[], result.present] : [result.files, new Map<string, string>()];
  const beyond = [
    ...otherNodesOf(to, result.kind !== 'same'),
    ...unrecorded(to, lackingSources(present, content.cluster.services)),
    ...leftOut(to),
  ];
  const report = {
    folder,
    files,
    to,
    unrecorded: beyond.map(beyondWords),
    comparison: undefined,
    problems: [],
    ...words,
  };
  if (files.length === 0) return report;
  const stored = await readStoredSide(folder);
  if (stored.kind !== 'bundle') {
    const problems = stored.diagnostics.map((each) => wordsOf(each).text);
    return { ...report, problems: problems.length > 0 ? problems : [`${folder} holds no bundle`] };
  }
  return { ...report, comparison: { from: stored.side, diff: diffSides(stored.side, to, { foreign: false }) } };
}

export function checkAnswer(report: CheckReport, result: CheckResult, said: SaidByCommand): Answered {
  const { folder, comparison, to } = report;
  return {
    said,
    text: () => (result.kind === 'differs' ? formatFileDiffs(folder, result) : ''),
    result: () => checkToJson(report),
    markdown: () => checkToMarkdown(report, result),
    findings: () => [...said.findings, ...findingsOf(report)],
    snapshots: () => snapshotsJson(comparison ? [comparison.from, to] : [to]),
    lacks: () => lacksOfCheck(report),
    suite: `${said.command} --check ${folder}`,
    cases: (findings) => {
      const ports = to.cluster.servicePorts.map(({ label, places }) => ({ name: label, place: places?.port.locate() }));
      return casesOf(findings, ports);
    },
  };
}

/** Leaves out what is unknown about packets, because the formats for CI do not describe packets here. */
function lacksOfCheck({ comparison, to, unrecorded: notCompared }: CheckReport): ArgumentsOf<'answer-lacks'> {
  return comparison ? lacksOf({ ...comparison, to }) : { ...nothingLacks, notCompared };
}

/**
 * Returns text for people that is not part of the answer: how to accept the change and, if the output is the files themselves, the
 * differences in words. If nothing differs, names the facts that the folder does not record.
 */
export function aboutCheck(report: CheckReport, result: CheckResult, output: AnswerOutput): string {
  if (result.kind === 'same') return sameText(report.unrecorded, output);
  const accept = formatText([acceptLines(differsIn(report, result), report.accept)]);
  return output === 'text' ? formatText(changesInWords(report)) + accept : accept;
}

export function aboutFleetCheck(
  { folder, changed, stale, accept, unrecorded: missed }: FleetReport,
  output: AnswerOutput,
): string {
  if (changed.length + stale.length > 0) return formatText([acceptLines(`${folder} does not match the input`, accept)]);
  return sameText(missed, output);
}

function sameText(missed: readonly string[], output: AnswerOutput): string {
  return formatText([lines('plain', 0, output === 'text' && missed.length > 0 && noDifference(missed))]);
}

function acceptLines(differs: string, accept: string | undefined): Block {
  if (accept === undefined) return lines('plain', 0, `${differs}.`);
  return [...lines('plain', 0, `${differs}. To accept the change:`), ...lines('command', 1, accept)];
}

/** `node`: the node that the report is about. Set only if there are several nodes. */
function findingsOf(
  { folder, files, comparison, problems, accept }: CheckReport,
  node?: string,
): readonly SaidFinding[] {
  if (files.length === 0) return [];
  const golden = { folder, node, accept };
  const found = comparison
    ? differencesFound(comparison.diff, golden)
    : [diagnose('state-differs', { golden, ...firstLines(problems) })];
  // The files differ, for example, because another version of kpc wrote them, or a setting changed that does not affect the kernel.
  const others =
    found.length > 0 ? found : [diagnose('state-differs', { golden, what: [`in ${files.join(', ')}`], more: 0 })];
  return sayFindings(others);
}

export async function checkToJson(report: CheckReport): Promise<Shaped<typeof checked>> {
  const { folder, files, accept } = report;
  const rest = await comparisonToJson(report);
  if (files.length > 0) return { folder, same: false, accept, ...rest };
  return { folder, same: true, notCompared: report.unrecorded, ...rest };
}

function differsIn({ folder, files }: CheckReport, result?: CheckResult): string {
  const hasStrays = result?.kind === 'differs' && result.strangers.length > 0;
  const strays = hasStrays ? ". Remove the files that don't belong" : '';
  return `${folder} differs in ${nameSome(files.map(printable), 12)}${strays}`;
}

/** Formats the change, with the command that accepts it, as a comment on a pull request. */
async function checkToMarkdown(report: CheckReport, result?: CheckResult): Promise<string> {
  const { folder, files, comparison, taken, to } = report;
  const beside = besideLines(snapshotsJson(comparison ? [comparison.from, to] : [to]), taken);
  if (files.length === 0) return formatMarkdown([lines('summary', 0, noDifference(report.unrecorded)), beside]);
  const isReview = comparison && !areSidesSame(comparison.diff);
  const what = isReview
    ? formatReviewMarkdown(await reviewOf(report, comparison), limits, [beside])
    : formatMarkdown([...changesInWords(report), beside]);
  const diffs = !isReview && result?.kind === 'differs' ? formatFileDiffs(folder, result).trimEnd().split('\n') : [];
  const changedFiles = foldCode('In the files', 'diff', cutLines(diffs, mostLines, String));
  return [what, ...changedFiles, ...acceptMarkdown(differsIn(report), report)].join('\n');
}

/** Names what was compiled and assumed, and the flags that come from kpc.yaml. These may hide a difference from a reviewer. */
function besideLines(snapshots: readonly SnapshotJson[], taken: readonly string[] = []): Block {
  return lines('plain', 0, ...groundsOf(snapshots), ...taken.map((words) => `Flags ${words}`));
}

function acceptMarkdown(differs: string, { accept }: Pick<CheckWords, 'accept'>): readonly string[] {
  if (accept === undefined) return [];
  return [`${escapeMarkdown(differs)}. To accept it, run this and commit the result:\n`, codeBlock('sh', [accept])];
}

/** Used if, for example, only kpc's version or the node's name differs. */
function onlyFiles(notCompared: readonly string[]): string {
  if (notCompared.length === 0) return 'Only the files differ: no Service and nothing in the kernel changes.';
  return `Only the files differ in what could be compared; not compared: ${joinPhrases(notCompared)}.`;
}

export async function fleetCheckToJson(report: FleetReport): Promise<Shaped<typeof checkedFleet>> {
  const { folder, nodes, changed, stale, example, accept, unrecorded: notCompared } = report;
  const same = changed.length + stale.length === 0;
  const diff = example && { example: { folder: example.folder, ...(await comparisonToJson(example)) } };
  const rest = same ? { notCompared } : { accept };
  return { folder, same, ...rest, nodes: nodes.length, changed, stale, ...diff };
}

export function fleetCheckAnswer(report: FleetReport, said: SaidByCommand): Answered {
  const { folder, nodes, changed, stale, example, accept, taken } = report;
  const differing = [...changed, ...stale];
  const texts = differing.map(({ node, what }) => `${node}: ${what}`);
  const summary = differing.length === 0 ? '' : summarizeFleet(report);
  return {
    said,
    text: () => formatText([lines('plain', 0, ...texts, summary)]),
    result: () => fleetCheckToJson(report),
    snapshots: () => report.snapshots,
    lacks: () => (example ? lacksOfCheck(example) : { ...nothingLacks, notCompared: report.unrecorded }),
    findings: () => {
      if (differing.length === 0) return said.findings;
      const all = diagnose('state-differs', { golden: { folder, accept }, ...firstLines([summary, ...texts]) });
      const ofNode = nodes.length > 1 ? example?.to.nodeName : undefined;
      const ofExample = example ? findingsOf({ ...example, folder, accept }, ofNode) : [];
      return [...said.findings, ...ofExample, sayFinding(all)];
    },
    markdown: async () => {
      const beside = besideLines(report.snapshots, taken);
      if (differing.length === 0) return formatMarkdown([lines('summary', 0, noDifference(report.unrecorded)), beside]);
      const list = lines('plain', 0, ...cutLines(texts, mostLines, String));
      // One command accepts the changes on all nodes, so the example shows no command.
      const of = example ? [`On one of them:\n`, await checkToMarkdown({ ...example, accept: undefined })] : [];
      const nodesChanged = formatMarkdown([lines('summary', 0, `${summary}.`), list, beside]);
      return [nodesChanged, ...of, ...acceptMarkdown(`${folder} does not match the input`, report)].join('\n');
    },
    suite: `${said.command} --check ${folder}`,
    cases: () => {
      const help = acceptHelp({ accept }) ?? [];
      const failures = new Map(differing.map(({ node, what }) => [node, { title: what, lines: [what, help].flat() }]));
      const names = new Set([...nodes, ...failures.keys()]);
      return Array.from(names, (name) => ({ name, failure: failures.get(name) }));
    },
  };
}

/** Returns "1 of 2 nodes changes, 1 node is gone". */
function summarizeFleet({ nodes, changed, stale }: FleetReport): string {
  const ofNodes = `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
  const gone = stale.length === 0 ? [] : [`${count(stale.length, 'node')} ${stale.length === 1 ? 'is' : 'are'} gone`];
  return [...(changed.length > 0 || stale.length === 0 ? [ofNodes] : []), ...gone].join(', ');
}

/** Describes the changes in words, for readers who also see the diff. */
function changesInWords({ comparison, problems }: CheckReport): readonly Block[] {
  if (!comparison) return [lines('plain', 0, ...problems)];
  if (areSidesSame(comparison.diff)) return [lines('summary', 0, onlyFiles(describeGaps(comparison.diff.gaps)))];
  return reportDiff(comparison.diff, limits);
}

async function comparisonToJson(report: CheckReport) {
  const { files, to, comparison, problems } = report;
  if (!comparison) return { files, problems };
  const { from, diff } = comparison;
  return { files, problems, diff: diffToJson(from, to, diff, await reviewOf(report, comparison)) };
}

/** Finds out what happens to packets, and adds the commands that trace them on both sides. */
function reviewOf({ folder, to, trace }: CheckReport, { from, diff }: NonNullable<CheckReport['comparison']>) {
  return makeReview(from, to, diff, { old: ['kpc', 'trace', pathWord(folder)], new: trace });
}
