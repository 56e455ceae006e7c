import { count } from '../base/format-count.ts';
import { printable } from '../base/printable.ts';
import type { Shaped } from '../base/json-shape.ts';
import { groupBy } from '../cluster/group-by.ts';
import { isError, locate } from '../diagnostics/diagnostic.ts';
import type { Severity } from '../diagnostics/diagnostic-rows.ts';
import { modeFacts, unnamedMode } from '../kube-proxy/modes.ts';
import { formatJson } from './format-json.ts';
import { formatGitlab } from './gitlab.ts';
import { withTrace, type LintReport, type ReportedFinding } from './lint-report.ts';
import { diagnosticsToGithub, type PathOf } from './github.ts';
import { formatTestSuite, type TestCase } from './junit.ts';
import { linted } from './outputs/lint.ts';
import { formatSarif } from './sarif.ts';
import { renderDiagnostics, type LineOf } from './render-diagnostics.ts';

export const lintOutputs = ['text', 'json', 'junit', 'github', 'sarif', 'gitlab'] as const;

/** The findings in one of the formats. */
export function formatLint(
  report: LintReport,
  output: (typeof lintOutputs)[number],
  { lineOf, isColoured, pathOf }: { readonly lineOf: LineOf; readonly isColoured: boolean; readonly pathOf: PathOf },
): string {
  switch (output) {
    case 'text': {
      const blocks = report.findings.map(({ diagnostic, trace }) => {
        const shown = renderDiagnostics([diagnostic], lineOf, isColoured);
        return trace ? `${shown}  trace: ${printable(trace.command)}\n` : shown;
      });
      return `${blocks.join('')}${summaryWords(report)}\n`;
    }
    case 'json':
      return formatJson(linted, lintJson(report));
    case 'junit':
      return formatTestSuite('kpc lint', casesOf(report));
    case 'github':
      return diagnosticsToGithub(report.findings.map(withTrace), pathOf);
    case 'sarif':
      return formatSarif(report, pathOf);
    case 'gitlab':
      return formatGitlab(report, pathOf);
  }
}

function numberOf(findings: readonly ReportedFinding[], severity: Severity): number {
  return findings.filter(({ diagnostic }) => diagnostic.severity === severity).length;
}

/** "3 errors, 1 warning in 2 files; 1 ignored (iptables mode, 5 nodes)". */
function summaryWords({ findings, ignored, files, nodes, mode, namesMode, hasRun }: LintReport): string {
  const counts = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const number = numberOf(findings, severity);
    return number === 0 ? [] : [count(number, severity)];
  });
  const places = new Set(findings.flatMap(({ diagnostic: { place } }) => (place ? [place.file] : [])));
  const found =
    counts.length === 0
      ? `no problems in ${count(files.length, 'file')}`
      : `${counts.join(', ')}${places.size === 0 ? '' : ` in ${count(places.size, 'file')}`}`;
  const accepted = ignored.length === 0 ? '' : `; ${ignored.length} ignored`;
  if (!hasRun)
    return `${found}${accepted}; the rules look at the Services once the errors are gone (or with --skip-invalid)`;
  const { title } = modeFacts[mode];
  const how = namesMode ? title : `${title} ${unnamedMode}`;
  return `${found}${accepted} (${[...(nodes > 0 ? [count(nodes, 'node')] : []), how].join(', ')})`;
}

/** What `--output json` prints. */
export function lintJson(report: LintReport): Shaped<typeof linted> {
  const { findings, ignored, files, nodes, mode, namesMode, hasRun } = report;
  return {
    errors: numberOf(findings, 'error'),
    warnings: numberOf(findings, 'warning'),
    notes: numberOf(findings, 'note'),
    ignored: ignored.length,
    files: files.length,
    nodes,
    mode,
    namesMode,
    hasRun,
    findings: findings.map(findingJson),
    ignoredFindings: ignored.map(findingJson),
  };
}

function findingJson({ diagnostic, service, trace, page, fingerprint }: ReportedFinding) {
  const { place, ...said } = diagnostic;
  return {
    ...said,
    ...locate(place),
    ...(service === undefined ? {} : { service }),
    ...(trace ? { trace } : {}),
    page,
    fingerprint,
  } as Shaped<typeof linted>['findings'][number];
}

/** A case for each code and Service: it fails if one of its findings is an error. */
function casesOf({ findings }: LintReport): readonly TestCase[] {
  const groups = groupBy(
    findings,
    ({ diagnostic: { code, place }, service }) => `${service ?? place?.file ?? 'input'}: ${code}`,
  );
  const cases = [...groups].map(([name, own]): TestCase => {
    const [{ diagnostic }] = own;
    const lines = own
      .map(withTrace)
      .flatMap(({ text, help }) => [text, ...(help === undefined ? [] : help.split('\n'))]);
    const location = diagnostic.place?.isWholeFile ? undefined : diagnostic.place?.locate();
    const isFailure = own.some((each) => isError(each.diagnostic));
    return { name, place: location, failure: isFailure ? { title: diagnostic.text, lines } : undefined, output: lines };
  });
  return cases.length > 0 ? cases : [{ name: 'no problems', place: undefined, failure: undefined }];
}
