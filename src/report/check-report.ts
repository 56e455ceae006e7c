import { formatCount } from '../base/format-count.ts';
import { printable, printableLines } from '../base/printable.ts';
import type { BundleContent } from '../bundle/make-bundle.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { describeKernelChange } from '../diff/changes/kernel-change.ts';
import type { Side } from '../diff/compared-side.ts';
import { reportDiff } from '../diff/diff-report.ts';
import { diffSides, isSame, type SideDiff } from '../diff/diff-sides.ts';
import type { Location } from '../kernel/place.ts';
import type { CheckResult } from '../sides/check-folder.ts';
import { readStoredSide } from '../sides/read-side.ts';
import { sideOfManifests } from '../sides/stored-side.ts';
import { formatJson } from './format-json.ts';
import { annotate, diagnosticsToGithub } from './github.ts';
import { diagnosticsToJson, diffToJson } from './json.ts';
import { formatTestSuite } from './junit.ts';
import { formatText } from './text-and-markdown.ts';
import { formatFileDiffs } from './unified.ts';

/** What kpc compile writes into a folder: by --golden, or by -o. */
export type FolderForm = 'bundle' | 'golden';

/** How a folder with a golden bundle compares with what the input compiles to, for reports. */
export interface CheckReport {
  readonly folder: string;
  /** What the folder holds. */
  readonly form: FolderForm;
  /** Files whose bytes differ; empty if nothing does. */
  readonly files: readonly string[];
  /** Undefined if the folder holds no bundle that can be read: it is not clear then what differs. */
  readonly comparison: { readonly from: Side; readonly to: Side; readonly diff: SideDiff } | undefined;
  /** Why there is no comparison. */
  readonly problems: readonly string[];
  /** Every Service port that was compiled, with its place. */
  readonly compiled: readonly { readonly label: string; readonly place: Location | undefined }[];
}

/** One thing that is not as in the golden bundle. */
interface Failure {
  readonly label?: string;
  readonly title: string;
  readonly lines: readonly string[];
  readonly place?: Location | undefined;
}

/** All that is not as in the golden bundle. */
function findFailures({ folder, files, comparison, problems }: CheckReport): readonly Failure[] {
  if (files.length === 0) return [];
  if (!comparison) return [{ title: `${folder} cannot be compared`, lines: problems }];
  const { servicePorts, base } = comparison.diff;
  const failures = servicePorts.map(({ label, change, reasons, kernel, place }): Failure => {
    const lines = reasons.length > 0 ? reasons.map(({ text }) => text) : kernel.map(describeKernelChange);
    return { label, title: `${label} ${change}`, lines: limit(lines), place: place?.locate() };
  });
  if (base.length > 0) {
    failures.push({ title: 'What belongs to no Service', lines: limit(base.map(describeKernelChange)) });
  }
  // Another version of kpc, say, or a setting that does not show in the kernel.
  return failures.length > 0 ? failures : [{ title: `${folder} differs`, lines: [`in ${files.join(', ')}`] }];
}

/** How many lines are printed about each thing. */
const mostLines = 20;

/** A single line that is too many takes no more room than the number of those that are hidden. */
function limit(lines: readonly string[]): readonly string[] {
  if (lines.length <= mostLines + 1) return lines;
  return [...lines.slice(0, mostLines), `and ${formatCount(lines.length - mostLines)} more`];
}

/** Two for people and programs, and two that report to a CI what --check found. */
export type OutputFormat = 'text' | 'json' | 'github' | 'junit';

/** A node whose folder differs, and how. */
export interface NodeChange {
  readonly node: string;
  readonly what: string;
}

/** How the folders of many nodes compare with what the input compiles to. */
interface FleetReport {
  readonly folder: string;
  /** All nodes that were compiled for. */
  readonly nodes: readonly string[];
  readonly changed: readonly NodeChange[];
  /** Folders of nodes that are not in the input. */
  readonly stale: readonly NodeChange[];
  /** One of the nodes that change, Service by Service. */
  readonly example: CheckReport | undefined;
}

/** Compares the bundle in a folder with what was compiled, Service by Service. */
export async function reportCheck(
  folder: string,
  files: readonly string[],
  content: BundleContent,
  form: FolderForm,
): Promise<CheckReport> {
  const places = new Map(content.cluster.servicePorts.map(({ label, places: at }) => [label, at?.port]));
  const compiled = [...places].map(([label, place]) => ({ label, place: place?.locate() }));
  const report = { folder, form, files, comparison: undefined, problems: [], compiled };
  if (files.length === 0) return report;
  const stored = await readStoredSide(folder);
  if (stored.kind !== 'bundle') {
    const problems = stored.diagnostics.map(({ text }) => text);
    return { ...report, problems: problems.length > 0 ? problems : [`${folder} holds no bundle`] };
  }
  const to = sideOfManifests('input', content);
  return { ...report, comparison: { from: stored.side, to, diff: diffSides(stored.side, to, { foreign: false }) } };
}

/** What `--check` prints of one node: the result, and a note for people. */
export function formatCheck(
  report: CheckReport,
  result: CheckResult,
  format: OutputFormat,
  diagnostics: readonly Diagnostic[],
): { readonly printed: string; readonly note: string } {
  const { folder, files } = report;
  switch (format) {
    case 'text':
      return { printed: result.kind === 'differs' ? formatFileDiffs(folder, result) : '', note: checkToText(report) };
    case 'json': {
      const same = files.length === 0;
      const told = { folder, same, ...comparisonToJson(report), diagnostics: diagnosticsToJson(diagnostics) };
      return { printed: formatJson(told), note: '' };
    }
    case 'github':
      return { printed: diagnosticsToGithub(diagnostics) + checkToGithub(report), note: '' };
    case 'junit':
      return { printed: checkToJunit(report), note: '' };
  }
}

/** What `--check` prints of many nodes; '' if there is nothing to say. */
export function formatFleetCheck(
  { folder, nodes, changed, stale, example }: FleetReport,
  format: OutputFormat,
): string {
  const differing = [...changed, ...stale];
  const lines = differing.map(({ node, what }) => `${node}: ${what}`);
  const summary = `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
  switch (format) {
    case 'text':
      return printableLines([...lines, ...(changed.length > 0 ? [summary] : [])].map((line) => `${line}\n`).join(''));
    case 'json': {
      const diff = example && { example: { folder: example.folder, ...comparisonToJson(example) } };
      return formatJson({ folder, same: differing.length === 0, nodes: nodes.length, changed, stale, ...diff });
    }
    case 'github':
      if (differing.length === 0) return '';
      return (
        (example ? checkToGithub({ ...example, folder }) : '') + annotate('error', summary, limit(lines).join('\n'))
      );
    case 'junit': {
      const failures = new Map(differing.map(({ node, what }) => [node, { title: what, lines: [] }]));
      const names = new Set([...nodes, ...failures.keys()]);
      const cases = Array.from(names, (name) => ({ name, place: undefined, failure: failures.get(name) }));
      return formatTestSuite(`kpc compile --check ${folder}`, cases);
    }
  }
}

/** What changed in words, for people who have the lines that differ before them already. */
function checkToText({ comparison, problems }: CheckReport): string {
  if (!comparison) return problems.map((problem) => `${printable(problem)}\n`).join('');
  // Another version of kpc, say, or the name of the node.
  if (isSame(comparison.diff)) return 'The Services and the kernel state are the same: only the files differ.\n';
  return formatText(reportDiff(comparison.diff, { servicePorts: 20, lines: 20 }), (_, text) => text);
}

function comparisonToJson({ files, comparison, problems }: CheckReport): object {
  const diff = comparison && { diff: diffToJson(comparison.from, comparison.to, comparison.diff) };
  return { files, problems, ...diff };
}

/** GitHub shows ten annotations of one kind of a step, and drops the others without a word. */
const mostAnnotations = 10;

/** Annotates each Service port that differs from the golden bundle. */
function checkToGithub(report: CheckReport): string {
  const { folder, form } = report;
  const advice = `If this is intended, write ${folder} again with kpc compile ${form === 'golden' ? '--golden' : '-o'} ${folder}`;
  const all = findFailures(report);
  const shown = all.length <= mostAnnotations ? all : all.slice(0, mostAnnotations - 1);
  const hidden = all.length - shown.length;
  return [
    ...shown.map(({ title, lines, place }) => annotate('error', title, [...lines, advice].join('\n'), place)),
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
