import { wordsOf } from './words/words.ts';
import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import type { Shaped } from '../base/json/schema.ts';
import { pathWord, printable, printableLines } from '../base/printable.ts';
import { describeKernelChange } from '../ask/changes/kernel-change.ts';
import type { CompiledSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import { reportDiff } from '../ask/diff/diff-report.ts';
import { diffSides, isSame, type SideDiff } from '../ask/diff/diff-sides.ts';
import { reasonWords } from '../ask/diff/reason-words.ts';
import type { Location } from '../kernel/place.ts';
import type { CheckResult } from '../snapshot/files/check-folder.ts';
import { readStoredSide } from '../snapshot/files/read-side.ts';
import { formatJson, type Said } from './formats/json.ts';
import { annotate, formatGithub, inRepository, type PathOf } from './formats/github.ts';
import { diffToJson } from './json.ts';
import type { checked, checkedFleet } from './outputs/compile.ts';
import type { SnapshotJson } from './outputs/envelope.ts';
import { snapshotsJson } from './snapshots.ts';
import { formatTestSuite } from './formats/junit.ts';
import { makeReview } from './make-review.ts';
import { formatReviewMarkdown } from './review-markdown.ts';
import { codeBlock, escapeMarkdown, formatText, listItems, takenMarkdown } from './formats/markdown.ts';
import { formatFileDiffs } from './formats/unified.ts';

/** What kpc compile writes into a folder: by --golden, or by -o. */
export type FolderForm = 'bundle' | 'golden';

/** What the command line says, for the commands that a report proposes. */
export interface CheckWords {
  /** The command that writes the folder again; undefined if it cannot be written. */
  readonly accept: string | undefined;
  /** The words of a `kpc trace` on the input, without the packet. */
  readonly trace: readonly string[];
  /** The flags that a kpc.yaml gave, in words. */
  readonly taken?: readonly string[] | undefined;
  readonly pathOf: PathOf;
}

/** How a folder with a golden bundle compares with what the input compiles to, for reports. */
export interface CheckReport extends CheckWords {
  readonly folder: string;
  readonly form: FolderForm;
  readonly files: readonly string[];
  /** What the input compiles to. */
  readonly to: CompiledSnapshot;
  /** Undefined if the folder holds no readable bundle: the differences are unknown then. */
  readonly comparison: { readonly from: Snapshot; readonly diff: SideDiff } | undefined;
  readonly problems: readonly string[];
  /** Every Service port that was compiled, with its place. */
  readonly compiled: readonly { readonly label: string; readonly place: Location | undefined }[];
}

interface Failure {
  readonly label?: string;
  readonly title: string;
  readonly lines: readonly string[];
  readonly place?: Location | undefined;
}

function findFailures({ folder, files, comparison, problems }: CheckReport): readonly Failure[] {
  if (files.length === 0) return [];
  if (!comparison) return [{ title: `${folder} cannot be compared`, lines: problems }];
  const { servicePorts, base } = comparison.diff;
  const failures = servicePorts.map(({ label, change, reasons, kernel, place }): Failure => {
    const lines = reasons.length > 0 ? reasons.map((reason) => reasonWords(reason)) : kernel.map(describeKernelChange);
    return { label, title: `${label} ${change}`, lines: limit(lines), place: place?.locate() };
  });
  if (base.length > 0) {
    failures.push({ title: 'What belongs to no Service', lines: limit(base.map(describeKernelChange)) });
  }
  // Another version of kpc, say, or a setting that does not show in the kernel.
  return failures.length > 0 ? failures : [{ title: `${folder} differs`, lines: [`in ${files.join(', ')}`] }];
}

const mostLines = 20;

/** Cuts a list, but prints a single further line: the number of hidden lines would take a line too. */
function limit(lines: readonly string[]): readonly string[] {
  if (lines.length <= mostLines + 1) return lines;
  return [...lines.slice(0, mostLines), `and ${formatCount(lines.length - mostLines)} more`];
}

/** Two formats for people and programs, and three that report the result of --check to a CI. */
export type OutputFormat = 'text' | 'json' | 'github' | 'junit' | 'markdown';

export interface NodeChange {
  readonly node: string;
  readonly what: string;
}

export interface FleetReport extends Pick<CheckWords, 'taken'> {
  readonly folder: string;
  readonly nodes: readonly string[];
  /** What the input compiles to on these nodes. */
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

/** What is printed, and what is `said` to people beside it. */
export async function formatCheck(
  report: CheckReport,
  result: CheckResult,
  format: OutputFormat,
  beside: Said,
): Promise<{ readonly printed: string; readonly said: string }> {
  const said = result.kind === 'differs' ? describeDifference(report, result) : '';
  switch (format) {
    case 'text': {
      const printed = result.kind === 'differs' ? formatFileDiffs(report.folder, result) : '';
      return { printed, said: checkToText(report) + said };
    }
    case 'json':
      return { printed: formatJson<typeof checked>(checkAnswer(report, beside)), said };
    case 'github':
      return { printed: formatGithub(beside.findings, report.pathOf) + checkToGithub(report), said };
    case 'junit':
      return { printed: checkToJunit(report), said };
    case 'markdown':
      return { printed: (await checkToMarkdown(report)) + takenMarkdown(report.taken), said };
  }
}

function checkAnswer(report: CheckReport, said: Said) {
  const sides = report.comparison ? [report.comparison.from, report.to] : [report.to];
  return { ...said, snapshots: snapshotsJson(sides), result: checkToJson(report) };
}

export function checkToJson(report: CheckReport): Shaped<typeof checked> {
  const { folder, files } = report;
  return { folder, same: files.length === 0, ...comparisonToJson(report) };
}

/** In which files a folder differs, and how to accept that. */
function describeDifference(
  { folder, accept }: CheckReport,
  { files, strangers }: Extract<CheckResult, { readonly kind: 'differs' }>,
): string {
  const strays = strangers.length > 0 ? " Remove the files that don't belong." : '';
  const differs = `${folder} differs in ${nameSome(files.map(printable), 12)}.${strays}`;
  return accept === undefined ? `${differs}\n` : `${differs} To accept the change:\n  ${printable(accept)}\n`;
}

/** The change as a comment on a pull request, and the command that accepts it. */
async function checkToMarkdown(report: CheckReport): Promise<string> {
  const { folder, files, to, comparison, problems, accept, trace } = report;
  if (files.length === 0) return '**No difference.**\n';
  const limits = { servicePorts: mostLines, lines: mostLines };
  const differs = escapeMarkdown(`${folder} differs in ${nameSome(files.map(printable), 12)}`);
  const how =
    accept === undefined
      ? []
      : [`${differs}. To accept it, run this and commit the result:\n`, codeBlock('sh', [accept])];
  if (!comparison) return [listItems(problems.map(escapeMarkdown)), ...how].join('\n');
  const { from, diff } = comparison;
  const what = isSame(diff)
    ? `**${onlyFiles}**\n`
    : formatReviewMarkdown(
        await makeReview(from, to, diff, { old: ['kpc', 'trace', pathWord(folder)], new: trace }),
        limits,
      );
  return [what, ...how].join('\n');
}

// Another version of kpc, say, or the name of the node.
const onlyFiles = 'The Services and the kernel state are the same: only the files differ.';

export function fleetCheckToJson({ folder, nodes, changed, stale, example }: FleetReport): Shaped<typeof checkedFleet> {
  const same = changed.length + stale.length === 0;
  const diff = example && { example: { folder: example.folder, ...comparisonToJson(example) } };
  return { folder, same, nodes: nodes.length, changed, stale, ...diff };
}

/** What `--check` prints of many nodes; '' if there is nothing to say. */
export async function formatFleetCheck(report: FleetReport, format: OutputFormat, said: Said): Promise<string> {
  const { folder, nodes, changed, stale, example, taken } = report;
  const differing = [...changed, ...stale];
  const lines = differing.map(({ node, what }) => `${node}: ${what}`);
  const summary = `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
  switch (format) {
    case 'text':
      return printableLines([...lines, ...(changed.length > 0 ? [summary] : [])].map((line) => `${line}\n`).join(''));
    case 'json':
      return formatJson<typeof checkedFleet>({
        ...said,
        snapshots: report.snapshots,
        result: fleetCheckToJson(report),
      });
    case 'github':
      if (differing.length === 0) return '';
      return (
        (example ? checkToGithub({ ...example, folder }) : '') + annotate('error', summary, limit(lines).join('\n'))
      );
    case 'markdown': {
      if (differing.length === 0) return `**No difference.**\n${takenMarkdown(taken)}`;
      const of = example ? `\nOn one of them:\n\n${await checkToMarkdown(example)}` : '';
      return `**${summary}.**\n\n${listItems(limit(lines).map((text) => escapeMarkdown(text)))}${of}${takenMarkdown(taken)}`;
    }
    case 'junit': {
      const failures = new Map(differing.map(({ node, what }) => [node, { title: what, lines: [] }]));
      const names = new Set([...nodes, ...failures.keys()]);
      const cases = Array.from(names, (name) => ({ name, place: undefined, failure: failures.get(name) }));
      return formatTestSuite(`kpc compile --check ${folder}`, cases);
    }
  }
}

/** Describes the changes for readers who see the diff as well. */
function checkToText({ comparison, problems }: CheckReport): string {
  if (!comparison) return problems.map((problem) => `${printable(problem)}\n`).join('');
  if (isSame(comparison.diff)) return `${onlyFiles}\n`;
  return formatText(reportDiff(comparison.diff, { servicePorts: 20, lines: 20 }), (_, text) => text);
}

function comparisonToJson({ files, to, comparison, problems }: CheckReport) {
  const diff = comparison && { diff: diffToJson(comparison.from, to, comparison.diff) };
  return { files, problems, ...diff };
}

/** GitHub shows ten annotations of each kind per step, and drops the rest silently. */
const mostAnnotations = 10;

function checkToGithub(report: CheckReport): string {
  const { accept, pathOf } = report;
  const advice = accept === undefined ? [] : [`If this is intended: ${accept}`];
  const all = findFailures(report);
  const shown = all.length <= mostAnnotations ? all : all.slice(0, mostAnnotations - 1);
  const hidden = all.length - shown.length;
  return [
    ...shown.map(({ title, lines, place }) =>
      annotate('error', title, [...lines, ...advice].join('\n'), inRepository(place, pathOf)),
    ),
    ...(hidden > 0 ? [annotate('error', 'kpc', `and ${formatCount(hidden)} more`)] : []),
  ].join('');
}

/** A JUnit report: a test case for each Service port that is compiled, and for each thing that differs. */
function checkToJunit(report: CheckReport): string {
  const failed = new Map(findFailures(report).map((failure) => [failure.label ?? failure.title, failure]));
  const places = new Map(report.compiled.map(({ label, place }) => [label, place]));
  for (const [name, { place }] of failed) places.set(name, place);
  return formatTestSuite(
    `kpc compile --check ${report.folder}`,
    Array.from(places, ([name, place]) => ({ name, place, failure: failed.get(name) })),
  );
}
