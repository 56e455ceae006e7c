import { formatCount } from '../base/format-count.ts';
import { printableLines } from '../base/printable.ts';
import { locate, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Location } from '../kernel/place.ts';
import { findFailures, type CheckReport, summarizeFleet, type FleetReport } from './check-report.ts';

/** GitHub shows ten annotations of one kind of a step, and drops the others without a word. */
const mostAnnotations = 10;

/**
 * Workflow commands that make GitHub annotate the lines of the pull request: faults of the input, and each Service port
 * that is not as in the golden bundle.
 */
export function checkToGithub(report: CheckReport | undefined, diagnostics: readonly Diagnostic[]): string {
  const faults = diagnostics.map(({ severity, code, text, help, place }) => {
    const lines = help === undefined ? text : `${text}\nhelp: ${help}`;
    return annotation(severity === 'note' ? 'notice' : severity, code, lines, place && locate(place));
  });
  const differences = report ? differenceAnnotations(report) : [];
  const shown = differences.length <= mostAnnotations ? differences : differences.slice(0, mostAnnotations - 1);
  const hidden = differences.length - shown.length;
  const more = hidden > 0 ? [annotation('error', 'kpc', `and ${formatCount(hidden)} more`, undefined)] : [];
  return [...faults, ...shown, ...more].map((line) => `${line}\n`).join('');
}

function differenceAnnotations(report: CheckReport): readonly string[] {
  return findFailures(report).map(({ title, lines, place }) =>
    annotation('error', title, [...lines, advice(report)].join('\n'), place),
  );
}

function advice({ folder, form }: CheckReport): string {
  const flag = form === 'golden' ? '--golden' : '-o';
  return `If this is intended, write ${folder} again with kpc compile ${flag} ${folder}`;
}

/** One workflow command. */
function annotation(
  level: 'error' | 'warning' | 'notice',
  title: string,
  text: string,
  { file, line, column }: Partial<Location> = {},
): string {
  const at = Object.entries({ file, line, col: column }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${escapeProperty(String(value))}`],
  );
  return `::${level} ${[...at, `title=${escapeProperty(title)}`].join(',')}::${escapeData(text)}`;
}

/** Workflow commands end with the line: %XX encodes what would end them sooner. */
function escapeData(text: string): string {
  return printableLines(text).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

/** How many nodes an annotation names. */
const mostNodes = 20;

/** An annotation that names the nodes whose folders differ, and those of the Services that do. */
export function fleetToGithub(report: FleetReport): string {
  const all = [...report.changed, ...report.stale];
  if (all.length === 0) return '';
  const lines = all.slice(0, mostNodes).map(({ node, what }) => `${node}: ${what}`);
  if (all.length > mostNodes) lines.push(`and ${formatCount(all.length - mostNodes)} more`);
  const services = report.example ? checkToGithub({ ...report.example, folder: report.folder }, []) : '';
  return `${services}${annotation('error', summarizeFleet(report), lines.join('\n'), undefined)}\n`;
}
