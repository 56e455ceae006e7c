import { count } from '../base/printable.ts';
import type { Severity } from '../base/findings/rows.ts';
import type { Shaped } from '../base/json/schema.ts';
import { unnamedMode } from './grounds.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { casesOf, findingsMarkdown, type Answered } from './formats/answer.ts';
import type { SaidByCommand } from './formats/json.ts';
import type { LintOutcome } from '../ask/lint/lint.ts';
import { listForPeople, type SaidFinding } from './words/said.ts';
import type { linted } from './outputs/compile-and-compare.ts';
import { snapshotsJson } from './snapshots.ts';
import { countSeverities, formatFindings, type LineOf } from './formats/text.ts';

export interface LintReport extends Omit<LintOutcome, 'findings' | 'ignored'> {
  /** Whether any object was read, so that there is something to check. */
  readonly isRead: boolean;
  readonly findings: readonly SaidFinding[];
  readonly ignored: readonly SaidFinding[];
}

interface LintStyle {
  readonly lineOf: LineOf;
  readonly isColoured: boolean;
  /** The most findings of each code to print in the text. */
  readonly limit: number;
  readonly said: SaidByCommand;
}

export function lintAnswer(report: LintReport, { lineOf, isColoured, limit, said }: LintStyle): Answered {
  const { findings, files, snapshots } = report;
  return {
    said: { ...said, findings: [...said.findings, ...findings] },
    text: () => `${formatFindings(listForPeople(findings, limit), lineOf, isColoured)}${summarizeLint(report)}\n`,
    result: () => lintJson(report),
    markdown: () => findingsMarkdown(summarizeLint(report), listForPeople(findings, limit)),
    findings: () => findings,
    snapshots: () => snapshotsJson(snapshots),
    restsOnAssumed: false,
    files,
    cases: (own) => {
      if (own.length > 0) return casesOf(own);
      const name = report.hasRun && report.services === 0 ? noServices : 'no problems';
      return [{ name }];
    },
  };
}

const noServices = 'no Service to check';

function countOfSeverity(findings: readonly SaidFinding[], severity: Severity): number {
  return findings.filter((each) => each.severity === severity).length;
}

/** Returns "3 errors, 1 warning in 2 files; 1 ignored; 5 nodes, iptables mode". */
function summarizeLint(report: LintReport): string {
  const { findings, ignored, files, nodes, services, unserved, mode, namesMode, hasRun, hasRight } = report;
  const counts = countSeverities(findings);
  const places = new Set(findings.flatMap(({ place }) => place?.file ?? []));
  const found =
    counts.length === 0
      ? `no problems in ${count(files.length, 'file')}`
      : `${counts.join(', ')}${places.size === 0 ? '' : ` in ${count(places.size, 'file')}`}`;
  const accepted = ignored.length === 0 ? '' : `; ${ignored.length} ignored`;
  if (!hasRun && findings.every(({ code }) => code === 'unreadable-file')) return `${found}${accepted}`;
  if (!hasRun)
    return `${found}${accepted}; the rules of kpc lint run once the errors are fixed${hasRight ? ' (or with --skip-invalid)' : ''}`;
  const how = `${modeFacts[mode].title}${namesMode ? '' : ` ${unnamedMode}`}`;
  const none = services === 0 ? `; ${noServices}` : '';
  const open = unserved === 0 ? none : `; endpoints of ${count(unserved, 'Service')} not given`;
  return `${found}${accepted}${open}; ${nodes > 0 ? `${count(nodes, 'node')}, ` : ''}${how}`;
}

/** Returns the result for programs, without the findings. Undefined if nothing was read. */
export function lintJson(report: LintReport): Shaped<typeof linted> | undefined {
  const { findings, ignored, files, services, unserved, nodes, hasRun, isRead } = report;
  if (!isRead) return undefined;
  return {
    errors: countOfSeverity(findings, 'error'),
    warnings: countOfSeverity(findings, 'warning'),
    notes: countOfSeverity(findings, 'note'),
    ignored: ignored.length,
    files: files.length,
    services,
    unserved,
    nodes,
    hasRun,
    ignoredFindings: ignored,
  };
}
