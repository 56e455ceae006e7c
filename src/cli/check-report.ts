import { printable, printableLines } from '../base/printable.ts';
import { formatJson } from './format-json.ts';
import type { BundleContent } from '../bundle/make-bundle.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import { reportDiff } from '../diff/diff-report.ts';
import type { ServicePortDiff, SideDiff } from '../diff/diff-sides.ts';
import { diffSides, isSame } from '../diff/diff-sides.ts';
import { formatText, toJson } from '../diff/format-diff.ts';
import type { Side } from '../diff/side.ts';
import { coverAll } from '../diff/side.ts';
import { describeKernelChange, describeReason } from '../diff/words.ts';
import type { Location } from '../kernel/origin.ts';
import { readStoredSide } from './diff-side.ts';
import { diagnosticsToJson } from './render-diagnostics.ts';

/** How a folder with a golden bundle stands to what the input makes, for reports. */
export interface CheckReport {
  readonly folder: string;
  /** Files whose bytes differ; empty where nothing does. */
  readonly files: readonly string[];
  /** Undefined where the folder holds no bundle that can be read: it is not clear then what differs. */
  readonly comparison: Comparison | undefined;
  /** Why there is no comparison. */
  readonly problems: readonly string[];
  /** Every Service port that was compiled, with its place. */
  readonly compiled: readonly { readonly label: string; readonly place: Location | undefined }[];
}

interface Comparison {
  readonly from: Side;
  readonly to: Side;
  readonly diff: SideDiff;
}

/** Compares the bundle in a folder with what was compiled, Service by Service. */
export async function reportCheck(
  folder: string,
  files: readonly string[],
  content: BundleContent,
): Promise<CheckReport> {
  const { cluster, node, settings, families, state } = content;
  const places = new Map(cluster.servicePorts.map(({ label, places: at }) => [label, at?.port]));
  const compiled = [...places].map(([label, place]) => ({ label, place: place?.locate() }));
  if (files.length === 0) return { folder, files, comparison: undefined, problems: [], compiled };
  const stored = await readStoredSide(folder);
  const reading = stored.kind === 'bundle' || stored.kind === 'unreadable' ? stored.reading : undefined;
  if (!reading?.side) {
    const problems = reading?.diagnostics.map(({ text }) => text) ?? [`${folder} holds no bundle`];
    return { folder, files, comparison: undefined, problems, compiled };
  }
  const to: Side = {
    kind: 'manifests',
    name: 'input',
    state,
    labels: undefined,
    coverage: coverAll(),
    families,
    doubts: [],
    services: { cluster, node, settings },
  };
  const diff = diffSides(reading.side, to, { foreign: false });
  return { folder, files, comparison: { from: reading.side, to, diff }, problems: [], compiled };
}

/** What changed in words, for people who have the lines that differ before them already. */
export function checkToText({ comparison, problems }: CheckReport): string {
  if (!comparison) return problems.map((problem) => `${printable(problem)}\n`).join('');
  const releases = describeReleases(comparison.from, comparison.to);
  // Another version of kpc, say, or the name of the node.
  if (isSame(comparison.diff)) {
    return `The same Services, and the same in the kernel: only the files differ.\n${releases}`;
  }
  return releases + formatText(reportDiff(comparison.diff, { servicePorts: 20, lines: 20 }), (_, text) => text);
}

/** A line that names the releases, where the bundle is of another one than what was compiled. */
function describeReleases({ services: from }: Side, { services: to }: Side): string {
  if (!from || !to || from.settings.release === to.settings.release) return '';
  return `The folder is by the kube-proxy of Kubernetes ${from.settings.release}, and what was compiled by that of ${to.settings.release}.\n`;
}

/** The comparison and what was said of the input, for programs. */
export function checkToJson(report: CheckReport, diagnostics: readonly Diagnostic[]): string {
  const { folder, files } = report;
  const same = files.length === 0;
  const result = { folder, same, ...comparisonToJson(report), diagnostics: diagnosticsToJson(diagnostics) };
  return formatJson(result);
}

/** What differs, as an object to be written as JSON. */
export function comparisonToJson({ files, comparison, problems }: CheckReport): object {
  return { files, problems, ...(comparison ? { diff: toJson(comparison.from, comparison.to, comparison.diff) } : {}) };
}

/** GitHub shows ten annotations of one kind of a step, and drops the others without a word. */
const mostAnnotations = 10;

/**
 * Workflow commands that make GitHub annotate the lines of the pull request: faults of the input, and each Service port
 * that is not as in the golden bundle.
 */
export function checkToGithub(report: CheckReport | undefined, diagnostics: readonly Diagnostic[]): string {
  const faults = diagnostics.map(({ severity, code, text, place }) =>
    annotation(severity === 'note' ? 'notice' : severity, code, text, place?.locate()),
  );
  const differences = report ? differenceAnnotations(report) : [];
  const shown = differences.length <= mostAnnotations ? differences : differences.slice(0, mostAnnotations - 1);
  const hidden = differences.length - shown.length;
  const more = hidden > 0 ? [annotation('error', 'kpc', `and ${hidden.toLocaleString('en')} more`, undefined)] : [];
  return [...faults, ...shown, ...more].map((line) => `${line}\n`).join('');
}

function differenceAnnotations(report: CheckReport): readonly string[] {
  return findFailures(report).map(({ title, lines, place }) =>
    annotation('error', title, [...lines, advice(report.folder)].join('\n'), place),
  );
}

function advice(folder: string): string {
  return `If this is meant, write ${folder} again with kpc compile -o ${folder}`;
}

/** One workflow command. */
export function annotation(
  level: 'error' | 'warning' | 'notice',
  title: string,
  text: string,
  place: Location | undefined,
): string {
  const at = place ? [`file=${escapeProperty(place.file)}`, `line=${place.line}`, `col=${place.column}`] : [];
  return `::${level} ${[...at, `title=${escapeProperty(title)}`].join(',')}::${escapeData(text)}`;
}

/** Workflow commands end with the line, and %XX stands for what would end them sooner. */
function escapeData(text: string): string {
  return printableLines(text).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

/** One thing that is not as in the golden bundle. */
interface Failure {
  readonly label: string | undefined;
  readonly title: string;
  readonly lines: readonly string[];
  readonly place: Location | undefined;
}

function findFailures({ folder, files, comparison, problems }: CheckReport): readonly Failure[] {
  if (files.length === 0) return [];
  const whole = (title: string, lines: readonly string[]): Failure => ({
    label: undefined,
    title,
    lines,
    place: undefined,
  });
  if (!comparison) return [whole(`${folder} cannot be compared`, problems)];
  const { servicePorts, base } = comparison.diff;
  const failures = [
    ...servicePorts.map(failureOf),
    ...(base.length > 0 ? [whole('What belongs to no Service', limit(base.map(describeKernelChange)))] : []),
  ];
  // Another version of kpc, say, or a setting that does not show in the kernel.
  return failures.length > 0 ? failures : [whole(`${folder} differs`, [`in ${files.join(', ')}`])];
}

function failureOf({ label, change, reasons, kernel, place }: ServicePortDiff): Failure {
  const lines = reasons.length > 0 ? reasons.map(describeReason) : kernel.map(describeKernelChange);
  return { label, title: `${label} ${change}`, lines: limit(lines), place: place?.locate() };
}

function limit(lines: readonly string[]): readonly string[] {
  const most = 20;
  if (lines.length <= most + 1) return lines;
  return [...lines.slice(0, most), `and ${(lines.length - most).toLocaleString('en')} more`];
}

/** A JUnit report: a test case for each Service port that is compiled, and for each thing that differs. */
export function checkToJunit(report: CheckReport): string {
  const failed = new Map(findFailures(report).map((failure) => [failure.label ?? failure.title, failure]));
  const places = new Map(report.compiled.map(({ label, place }) => [label, place]));
  for (const [name, { place }] of failed) places.set(name, place);
  return formatTestSuite(
    `kpc compile --check ${report.folder}`,
    [...places].map(([name, place]) => ({ name, place, failure: failed.get(name) })),
  );
}

/** One test case of a JUnit report. */
export interface TestCase {
  readonly name: string;
  readonly place: Location | undefined;
  readonly failure: { readonly title: string; readonly lines: readonly string[] } | undefined;
}

/** A JUnit report with one suite. */
export function formatTestSuite(name: string, cases: readonly TestCase[]): string {
  const failures = cases.filter(({ failure }) => failure !== undefined).length;
  const attributes = `name=${quoteXml(name)} tests="${cases.length}" failures="${failures}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${attributes}>`,
    `  <testsuite ${attributes}>`,
    ...cases.map(formatTestCase),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function formatTestCase({ name, place, failure }: TestCase): string {
  const at = place ? ` file=${quoteXml(place.file)} line="${place.line}"` : '';
  const open = `    <testcase classname="kpc" name=${quoteXml(name)}${at}`;
  if (!failure) return `${open}/>`;
  const text = failure.lines.map(escapeXml).join('\n');
  return `${open}>\n      <failure message=${quoteXml(failure.title)}>${text}</failure>\n    </testcase>`;
}

function quoteXml(text: string): string {
  return `"${escapeXml(text).replaceAll('"', '&quot;')}"`;
}

/** XML has no way to write most control characters at all. */
function escapeXml(text: string): string {
  return printableLines(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
