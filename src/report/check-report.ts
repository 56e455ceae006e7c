import { formatCount } from '../base/format-count.ts';
import { printable } from '../base/printable.ts';
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
  return lines.length <= mostLines + 1 ? lines : cut(lines, mostLines);
}

function cut(lines: readonly string[], most: number): readonly string[] {
  return lines.length <= most ? lines : [...lines.slice(0, most), `and ${formatCount(lines.length - most)} more`];
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

/** "3 of 40 nodes change". */
function summarizeFleet({ changed, nodes }: FleetReport): string {
  return `${changed.length} of ${nodes.length} ${nodes.length === 1 ? 'node changes' : 'nodes change'}`;
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
  const print = {
    text: () => (result.kind === 'differs' ? formatFileDiffs(report.folder, result) : ''),
    json: () => checkToJson(report, diagnostics),
    github: () => checkToGithub(report, diagnostics),
    junit: () => checkToJunit(report),
  };
  return { printed: print[format](), note: format === 'text' ? checkToText(report) : '' };
}

/** What `--check` prints of many nodes; '' if there is nothing to say. */
export function formatFleetCheck(report: FleetReport, format: OutputFormat): string {
  const print = { text: fleetToText, json: fleetToJson, github: fleetToGithub, junit: fleetToJunit };
  return print[format](report);
}

/** What changed in words, for people who have the lines that differ before them already. */
function checkToText({ comparison, problems }: CheckReport): string {
  if (!comparison) return problems.map((problem) => `${printable(problem)}\n`).join('');
  const [from, to] = [comparison.from.services?.settings.release, comparison.to.services?.settings.release];
  const releases =
    from === undefined || to === undefined || from === to
      ? ''
      : `The folder follows the kube-proxy of Kubernetes ${from}; this compile follows ${to}.\n`;
  // Another version of kpc, say, or the name of the node.
  if (isSame(comparison.diff)) {
    return `The Services and the kernel state are the same: only the files differ.\n${releases}`;
  }
  return releases + formatText(reportDiff(comparison.diff, { servicePorts: 20, lines: 20 }), (_, text) => text);
}

/** The nodes whose folders are not as they should be, a line each. */
function fleetToText(report: FleetReport): string {
  const lines = [...report.changed, ...report.stale].map(({ node, what }) => `${node}: ${what}`);
  if (report.changed.length > 0) lines.push(summarizeFleet(report));
  return lines.map((line) => `${printable(line)}\n`).join('');
}

/** The comparison and what was said of the input, for programs. */
function checkToJson(report: CheckReport, diagnostics: readonly Diagnostic[]): string {
  const { folder, files } = report;
  const same = files.length === 0;
  return formatJson({ folder, same, ...comparisonToJson(report), diagnostics: diagnosticsToJson(diagnostics) });
}

function fleetToJson({ folder, nodes, changed, stale, example }: FleetReport): string {
  const same = changed.length + stale.length === 0;
  const diff = example && { example: { folder: example.folder, ...comparisonToJson(example) } };
  return formatJson({ folder, same, nodes: nodes.length, changed, stale, ...diff });
}

function comparisonToJson({ files, comparison, problems }: CheckReport): object {
  return {
    files,
    problems,
    ...(comparison ? { diff: diffToJson(comparison.from, comparison.to, comparison.diff) } : {}),
  };
}

/** GitHub shows ten annotations of one kind of a step, and drops the others without a word. */
const mostAnnotations = 10;

/** Annotations of the faults of the input, and of each Service port that is not as in the golden bundle. */
function checkToGithub(report: CheckReport, diagnostics: readonly Diagnostic[]): string {
  const { folder, form } = report;
  const advice = `If this is intended, write ${folder} again with kpc compile ${form === 'golden' ? '--golden' : '-o'} ${folder}`;
  const all = findFailures(report);
  const shown = all.length <= mostAnnotations ? all : all.slice(0, mostAnnotations - 1);
  const hidden = all.length - shown.length;
  return [
    diagnosticsToGithub(diagnostics),
    ...shown.map(({ title, lines, place }) => annotate('error', title, [...lines, advice].join('\n'), place)),
    ...(hidden > 0 ? [annotate('error', 'kpc', `and ${formatCount(hidden)} more`)] : []),
  ].join('');
}

/** An annotation that names the nodes whose folders differ, and those of the Services that do. */
function fleetToGithub(report: FleetReport): string {
  const all = [...report.changed, ...report.stale].map(({ node, what }) => `${node}: ${what}`);
  if (all.length === 0) return '';
  const services = report.example ? checkToGithub({ ...report.example, folder: report.folder }, []) : '';
  return services + annotate('error', summarizeFleet(report), cut(all, mostLines).join('\n'));
}

/** A JUnit report: a test case for each Service port that is compiled, and for each thing that differs. */
function checkToJunit(report: CheckReport): string {
  const failed = new Map(findFailures(report).map((failure) => [failure.label ?? failure.title, failure]));
  const places = new Map(report.compiled.map(({ label, place }) => [label, place]));
  for (const [name, { place }] of failed) places.set(name, place);
  return formatTestSuite(
    `kpc compile --check ${report.folder}`,
    [...places].map(([name, place]) => ({ name, place, failure: failed.get(name) })),
  );
}

/** A JUnit report: a test case for each node. */
function fleetToJunit({ folder, nodes, changed, stale }: FleetReport): string {
  const failures = new Map([...changed, ...stale].map(({ node, what }) => [node, what]));
  const cases = [...new Set([...nodes, ...failures.keys()])].map((name) => {
    const what = failures.get(name);
    return { name, place: undefined, failure: what === undefined ? undefined : { title: what, lines: [] } };
  });
  return formatTestSuite(`kpc compile --check ${folder}`, cases);
}
