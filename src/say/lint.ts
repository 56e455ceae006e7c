import { count } from '../base/format-count.ts';
import type { Shaped } from '../base/json/schema.ts';
import { groupBy } from '../cluster/group-by.ts';
import { isError } from '../base/findings/finding.ts';
import type { Severity } from '../base/findings/rows.ts';
import { modeFacts, unnamedMode } from '../kube-proxy/modes.ts';
import { formatJson, type Said } from './formats/json.ts';
import { formatGitlab } from './formats/gitlab.ts';
import type { LintResult } from '../ask/lint/lint.ts';
import { listForPeople } from './words/for-people.ts';
import { helpWithTrace, type SaidFinding } from './words/said.ts';
import { formatGithub, type PathOf } from './formats/github.ts';
import { formatTestSuite, type TestCase } from './formats/junit.ts';
import type { linted } from './outputs/lint.ts';
import { snapshotsJson } from './snapshots.ts';
import { formatSarif } from './formats/sarif.ts';
import { formatFindings, type LineOf } from './formats/text.ts';

export const lintOutputs = ['text', 'json', 'junit', 'github', 'sarif', 'gitlab'] as const;

export interface LintReport extends Omit<LintResult, 'findings' | 'ignored'> {
  readonly findings: readonly SaidFinding[];
  readonly ignored: readonly SaidFinding[];
}

interface LintStyle {
  readonly lineOf: LineOf;
  readonly isColoured: boolean;
  readonly pathOf: PathOf;
  /** How many findings of a code the text has. */
  readonly limit: number;
  /** What was said beside the findings. */
  readonly said: Said;
}

/** The findings in one of the formats. */
export function formatLint(
  report: LintReport,
  output: (typeof lintOutputs)[number],
  { lineOf, isColoured, pathOf, limit, said }: LintStyle,
): string {
  switch (output) {
    case 'text':
      return `${formatFindings(listForPeople(report.findings, limit), lineOf, isColoured)}${summaryWords(report)}\n`;
    case 'json':
      return formatJson<typeof linted>({
        ...said,
        snapshots: snapshotsJson(report.snapshots()),
        findings: [...said.findings, ...report.findings],
        result: lintJson(report),
      });
    case 'junit':
      return formatTestSuite('kpc lint', casesOf(report));
    case 'github':
      return formatGithub(report.findings, pathOf);
    case 'sarif':
      return formatSarif(report.findings, report.files, pathOf);
    case 'gitlab':
      return formatGitlab(report.findings, report.files, pathOf);
  }
}

function numberOf(findings: readonly SaidFinding[], severity: Severity): number {
  return findings.filter((each) => each.severity === severity).length;
}

/** "3 errors, 1 warning in 2 files; 1 ignored; 5 nodes, iptables mode". */
function summaryWords({ findings, ignored, files, nodes, mode, namesMode, hasRun }: LintReport): string {
  const counts = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const number = numberOf(findings, severity);
    return number === 0 ? [] : [count(number, severity)];
  });
  const places = new Set(findings.flatMap(({ place }) => place?.file ?? []));
  const found =
    counts.length === 0
      ? `no problems in ${count(files.length, 'file')}`
      : `${counts.join(', ')}${places.size === 0 ? '' : ` in ${count(places.size, 'file')}`}`;
  const accepted = ignored.length === 0 ? '' : `; ${ignored.length} ignored`;
  if (!hasRun)
    return `${found}${accepted}; the rules look at the Services once the errors are gone (or with --skip-invalid)`;
  const how = `${modeFacts[mode].title}${namesMode ? '' : ` ${unnamedMode}`}`;
  return `${found}${accepted}; ${nodes > 0 ? `${count(nodes, 'node')}, ` : ''}${how}`;
}

/** What `--output json` prints beside the findings. */
export function lintJson(report: LintReport): Shaped<typeof linted> {
  const { findings, ignored, files, nodes, hasRun } = report;
  return {
    errors: numberOf(findings, 'error'),
    warnings: numberOf(findings, 'warning'),
    notes: numberOf(findings, 'note'),
    ignored: ignored.length,
    files: files.length,
    nodes,
    hasRun,
    ignoredFindings: ignored,
  };
}

/** A case for each code and Service: it fails if one of its findings is an error. */
function casesOf({ findings }: LintReport): readonly TestCase[] {
  const groups = groupBy(findings, ({ code, place, about }) => {
    return `${about?.kind === 'service' ? about.name : (place?.file ?? 'input')}: ${code}`;
  });
  const cases = [...groups].map(([name, own]): TestCase => {
    const [{ text: title, place }] = own;
    const lines = own.flatMap((each) => [each.text, ...(helpWithTrace(each)?.split('\n') ?? [])]);
    return { name, place, failure: own.some(isError) ? { title, lines } : undefined, output: lines };
  });
  return cases.length > 0 ? cases : [{ name: 'no problems', place: undefined, failure: undefined }];
}
