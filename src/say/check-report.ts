import type { FolderForm } from '../bundle/state-files.ts';
import { acceptHelp, nothingLacks } from './words/answers.ts';
import { wordsOf } from './words/words.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';
import { diagnose } from '../base/findings/finding.ts';
import { count, cutLines, nameSome, pathWord, printable, printableLines } from '../base/printable.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { CompiledSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import { noDifference, reportDiff } from './diff-report.ts';
import { unrecorded } from '../ask/diff/beyond-kernel.ts';
import { beyondWords } from './gaps.ts';
import { diffSides, areSidesSame, type SideDiff } from '../ask/diff/diff-sides.ts';
import type { Location } from '../kernel/place.ts';
import type { CheckResult } from '../snapshot/files/check-folder.ts';
import { readStoredSide } from '../snapshot/files/read-side.ts';
import { formatJson, type SaidByCommand } from './formats/json.ts';
import {
  differenceCases,
  differencesFound,
  firstLines,
  diffToJson,
  makeReview,
  formatReviewMarkdown,
} from './differences.ts';
import type { Answered, AnswerOutput } from './formats/answer.ts';
import { lacksOf } from './diff-review.ts';
import type { checked, checkedFleet } from './outputs/compile-and-compare.ts';
import type { SnapshotJson } from './outputs/envelope.ts';
import { groundsOf, snapshotsJson } from './snapshots.ts';
import { sayFinding, sayFindings, type SaidFinding } from './words/said.ts';
import { codeBlock, escapeMarkdown, foldCode, groundsMarkdown, listItems, takenMarkdown } from './formats/markdown.ts';
import { formatText } from './formats/text.ts';
import { formatFileDiffs } from './formats/unified.ts';

/** Words of the command line, for the commands that a report proposes. */
export interface CheckWords {
  /** The command that writes the folder again; undefined if it cannot be written. */
  readonly accept: string | undefined;
  /** The words of a `kpc trace` on the input, without the packet. */
  readonly trace: readonly string[];
  /** The flags that a kpc.yaml gave, in words. */
  readonly taken?: readonly string[] | undefined;
}

/** The result of comparing a folder with the compiled input, for reports. */
export interface CheckReport extends CheckWords {
  readonly folder: string;
  readonly form: FolderForm;
  readonly files: readonly string[];
  /** The result of compiling the input. */
  readonly to: CompiledSnapshot;
  /** Undefined if the folder holds no readable bundle: the differences are unknown then. */
  readonly comparison: { readonly from: Snapshot; readonly diff: SideDiff } | undefined;
  readonly problems: readonly string[];
  /** Every Service port that was compiled, with its place. */
  readonly compiled: readonly { readonly label: string; readonly place: Location | undefined }[];
}

const mostLines = 20;

export interface NodeChange {
  readonly node: string;
  readonly what: string;
}

export interface FleetReport extends Pick<CheckWords, 'accept' | 'taken'> {
  readonly folder: string;
  readonly nodes: readonly string[];
  /** The results of compiling the input for these nodes. */
  readonly snapshots: readonly SnapshotJson[];
  readonly changed: readonly NodeChange[];
  readonly stale: readonly NodeChange[];
  readonly example: CheckReport | undefined;
}

export async function reportCheck(
  folder: string,
  files: readonly string[],
  content: CompiledSnapshot,
  form: FolderForm,
  words: CheckWords,
): Promise<CheckReport> {
  const places = new Map(content.cluster.servicePorts.map(({ label, places: at }) => [label, at?.port]));
  const compiled = [...places].map(([label, place]) => ({ label, place: place?.locate() }));
  const to = content.with({ name: 'input' });
  const report = { folder, form, files, to, comparison: undefined, problems: [], compiled, ...words };
  if (files.length === 0) return report;
  const stored = await readStoredSide(folder);
  if (stored.kind !== 'bundle') {
    const problems = stored.diagnostics.map((each) => wordsOf(each).text);
    return { ...report, problems: problems.length > 0 ? problems : [`${folder} holds no bundle`] };
  }
  return { ...report, comparison: { from: stored.side, diff: diffSides(stored.side, to, { foreign: false }) } };
}

/** How the folder compares, for all formats. */
export function checkAnswer(report: CheckReport, result: CheckResult, said: SaidByCommand): Answered {
  const snapshots = () => snapshotsJson(report.comparison ? [report.comparison.from, report.to] : [report.to]);
  return {
    text: () => (result.kind === 'differs' ? formatFileDiffs(report.folder, result) : ''),
    json: async () =>
      formatJson<typeof checked>({ ...said, snapshots: snapshots(), result: await checkToJson(report) }),
    markdown: async () => (await checkToMarkdown(report, result)) + takenMarkdown(report.taken),
    findings: () => [...said.findings, ...findingsOf(report)],
    snapshots,
    lacks: () => lacksOfCheck(report),
    suite: `kpc compile --check ${report.folder}`,
    cases: (findings) => differenceCases(report.compiled, findings),
  };
}

/** Formats for CI leave out packets here. */
function lacksOfCheck({ comparison, to }: Pick<CheckReport, 'comparison' | 'to'>): ArgumentsOf<'answer-lacks'> {
  return comparison ? lacksOf(comparison.diff) : { ...nothingLacks, notCompared: unrecordedOf(to) };
}

function unrecordedOf(to: CompiledSnapshot): readonly string[] {
  return unrecorded(to).map(beyondWords);
}

/**
 * Text for people besides the answer: the differences in words, if the output is the files themselves, and how to accept the change; if
 * nothing differs, what the folder does not record.
 */
export function aboutCheck(report: CheckReport, result: CheckResult, output: AnswerOutput): string {
  const missed = output === 'text' && result.kind === 'same' ? unrecordedOf(report.to) : [];
  if (missed.length > 0) return `${printable(noDifference(missed))}\n`;
  return `${output === 'text' ? checkToText(report) : ''}${result.kind === 'differs' ? describeDifference(report, result) : ''}`;
}

/** `node`: the node of the report, if there are several. */
function findingsOf(
  { folder, files, comparison, problems, accept }: CheckReport,
  node?: string,
): readonly SaidFinding[] {
  if (files.length === 0) return [];
  const golden = { folder, node, accept };
  const found = comparison
    ? differencesFound(comparison.diff, golden)
    : [diagnose('state-differs', { golden, ...firstLines(problems) })];
  // For example after another version of kpc, or a setting that does not affect the kernel.
  const others =
    found.length > 0 ? found : [diagnose('state-differs', { golden, what: [`in ${files.join(', ')}`], more: 0 })];
  return sayFindings(others);
}

export async function checkToJson(report: CheckReport): Promise<Shaped<typeof checked>> {
  const { folder, files, accept, to } = report;
  const rest = await comparisonToJson(report);
  if (files.length > 0) return { folder, same: false, accept, ...rest };
  return { folder, same: true, notCompared: unrecordedOf(to), ...rest };
}

/** Names the files that differ, and how to accept that. */
function describeDifference(
  { folder, accept }: CheckReport,
  { files, strangers }: Extract<CheckResult, { readonly kind: 'differs' }>,
): string {
  const strays = strangers.length > 0 ? " Remove the files that don't belong." : '';
  const differs = `${folder} differs in ${nameSome(files.map(printable), 12)}.${strays}`;
  return accept === undefined ? `${differs}\n` : `${differs} To accept the change:\n  ${printable(accept)}\n`;
}

/** The change as a comment on a pull request, and the command that accepts it. */
async function checkToMarkdown(report: CheckReport, result?: CheckResult): Promise<string> {
  const { folder, files, comparison, problems, accept, to } = report;
  if (files.length === 0) return sameMarkdown(snapshotsJson([to]), unrecordedOf(to));
  const limits = { servicePorts: mostLines, lines: mostLines };
  const how = acceptMarkdown(`${folder} differs in ${nameSome(files.map(printable), 12)}`, accept);
  if (!comparison) return [listItems(problems.map(escapeMarkdown)), ...how].join('\n');
  const review = areSidesSame(comparison.diff) ? undefined : await reviewOf(report, comparison);
  const what = review
    ? [formatReviewMarkdown(review, limits)]
    : [`**${onlyFiles}**\n`, ...filesMarkdown(folder, result)];
  return [...what, ...how].join('\n');
}

/** What differs in the files, where nothing else does. */
function filesMarkdown(folder: string, result: CheckResult | undefined): readonly string[] {
  if (result?.kind !== 'differs') return [];
  const lines = formatFileDiffs(folder, result).trimEnd().split('\n');
  return [foldCode('In the files', 'diff', cutLines(lines, mostLines, String))];
}

function sameMarkdown(snapshots: readonly SnapshotJson[], notCompared: readonly string[] = []): string {
  return `**${escapeMarkdown(noDifference(notCompared))}**\n${groundsMarkdown(groundsOf(snapshots))}`;
}

function acceptMarkdown(differs: string, accept: string | undefined): readonly string[] {
  if (accept === undefined) return [];
  return [`${escapeMarkdown(differs)}. To accept it, run this and commit the result:\n`, codeBlock('sh', [accept])];
}

// Another version of kpc, say, or the name of the node.
const onlyFiles = 'Only the files differ: no Service changes, and nothing in the kernel.';

export async function fleetCheckToJson(report: FleetReport): Promise<Shaped<typeof checkedFleet>> {
  const { folder, nodes, changed, stale, example, accept } = report;
  const same = changed.length + stale.length === 0;
  const diff = example && { example: { folder: example.folder, ...(await comparisonToJson(example)) } };
  return { folder, same, accept: same ? undefined : accept, nodes: nodes.length, changed, stale, ...diff };
}

/** How the folders of many nodes compare, for all formats. */
export function fleetCheckAnswer(report: FleetReport, said: SaidByCommand): Answered {
  const { folder, nodes, changed, stale, example, accept, taken } = report;
  const differing = [...changed, ...stale];
  const lines = differing.map(({ node, what }) => `${node}: ${what}`);
  const summary = summarizeFleet(report);
  return {
    text: () => printableLines([...lines, ...(lines.length > 0 ? [summary] : [])].map((line) => `${line}\n`).join('')),
    json: async () =>
      formatJson<typeof checkedFleet>({
        ...said,
        snapshots: report.snapshots,
        result: await fleetCheckToJson(report),
      }),
    snapshots: () => report.snapshots,
    lacks: () => (example ? lacksOfCheck(example) : nothingLacks),
    findings: () => {
      if (differing.length === 0) return said.findings;
      const golden = { folder, accept };
      const all = diagnose('state-differs', { golden, ...firstLines([summary, ...lines]) });
      const ofNode = nodes.length > 1 ? example?.to.nodeName : undefined;
      const ofExample = example ? findingsOf({ ...example, folder, accept }, ofNode) : [];
      return [...said.findings, ...ofExample, sayFinding(all)];
    },
    markdown: async () => {
      if (differing.length === 0) return sameMarkdown(report.snapshots) + takenMarkdown(taken);
      const list = listItems(cutLines(lines, mostLines, String).map((text) => escapeMarkdown(text)));
      // One command accepts all.
      const of = example ? [`On one of them:\n`, await checkToMarkdown({ ...example, accept: undefined })] : [];
      const how = acceptMarkdown(`${folder} does not match the input`, accept);
      return [`**${escapeMarkdown(summary)}.**\n`, list, ...of, ...how].join('\n') + takenMarkdown(taken);
    },
    suite: `kpc compile --check ${folder}`,
    cases: () => {
      const help = acceptHelp({ accept }) ?? [];
      const failures = new Map(differing.map(({ node, what }) => [node, { title: what, lines: [what, help].flat() }]));
      const names = new Set([...nodes, ...failures.keys()]);
      return Array.from(names, (name) => ({ name, place: undefined, failure: failures.get(name) }));
    },
  };
}

/** "1 of 2 nodes changes, 1 node is gone". */
function summarizeFleet({ nodes, changed, stale }: FleetReport): string {
  const ofNodes = `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
  const gone = stale.length === 0 ? [] : [`${count(stale.length, 'node')} ${stale.length === 1 ? 'is' : 'are'} gone`];
  return [...(changed.length > 0 || stale.length === 0 ? [ofNodes] : []), ...gone].join(', ');
}

/** Describes the changes for readers who see the diff as well. */
function checkToText({ comparison, problems }: CheckReport): string {
  if (!comparison) return problems.map((problem) => `${printable(problem)}\n`).join('');
  if (areSidesSame(comparison.diff)) return `${onlyFiles}\n`;
  return formatText(reportDiff(comparison.diff, { servicePorts: mostLines, lines: mostLines }));
}

async function comparisonToJson(report: CheckReport) {
  const { files, to, comparison, problems } = report;
  if (!comparison) return { files, problems };
  const { from, diff } = comparison;
  return { files, problems, diff: diffToJson(from, to, diff, await reviewOf(report, comparison)) };
}

/** What happens to packets, with the commands that trace on both sides. */
function reviewOf({ folder, to, trace }: CheckReport, { from, diff }: NonNullable<CheckReport['comparison']>) {
  return makeReview(from, to, diff, { old: ['kpc', 'trace', pathWord(folder)], new: trace });
}
