import { printableLines } from '../base/printable.ts';
import type { Location } from '../kernel/place.ts';
import { findFailures, type CheckReport, type FleetReport } from './check-report.ts';

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

/** A JUnit report: a test case for each node. */
export function fleetToJunit({ folder, nodes, changed, stale }: FleetReport): string {
  const failures = new Map([...changed, ...stale].map(({ node, what }) => [node, what]));
  return formatTestSuite(
    `kpc compile --check ${folder}`,
    [...new Set([...nodes, ...failures.keys()])].map((name) => {
      const what = failures.get(name);
      return { name, place: undefined, failure: what === undefined ? undefined : { title: what, lines: [] } };
    }),
  );
}
