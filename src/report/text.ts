import { printable } from '../base/printable.ts';
import { reportDiff, type ReportBlock, type ReportLine } from '../diff/diff-report.ts';
import { isSame } from '../diff/diff-sides.ts';
import type { Side } from '../diff/compared-side.ts';
import { type CheckReport, summarizeFleet, type FleetReport } from './check-report.ts';

/** Gives a line its colour on a terminal; the text as it is elsewhere. */
export type Paint = (role: ReportLine['role'], text: string) => string;

/** What each line begins with, by its role. */
export const signs: { readonly [R in ReportLine['role']]: string } = {
  heading: '',
  title: '',
  reason: '    ',
  added: '  + ',
  removed: '  - ',
  changed: '  ~ ',
  more: '    … ',
  summary: '',
};

/** A report as text for a terminal. */
export function formatText(blocks: readonly ReportBlock[], paint: Paint): string {
  return blocks
    .map((block) => block.map(({ role, text }) => `${paint(role, `${signs[role]}${text}`)}\n`).join(''))
    .join('\n');
}

/** What changed in words, for people who have the lines that differ before them already. */
export function checkToText({ comparison, problems }: CheckReport): string {
  if (!comparison) return problems.map((problem) => `${printable(problem)}\n`).join('');
  const releases = describeReleases(comparison.from, comparison.to);
  // Another version of kpc, say, or the name of the node.
  if (isSame(comparison.diff)) {
    return `The Services and the kernel state are the same: only the files differ.\n${releases}`;
  }
  return releases + formatText(reportDiff(comparison.diff, { servicePorts: 20, lines: 20 }), (_, text) => text);
}

/** A line that names the releases, where the bundle is of another one than what was compiled. */
function describeReleases({ services: from }: Side, { services: to }: Side): string {
  if (!from || !to || from.settings.release === to.settings.release) return '';
  return `The folder follows the kube-proxy of Kubernetes ${from.settings.release}; this compile follows ${to.settings.release}.\n`;
}

/** The nodes whose folders are not as they should be, a line each. */
export function fleetToText(report: FleetReport): string {
  const lines = [...report.changed, ...report.stale].map(({ node, what }) => `${node}: ${what}`);
  if (report.changed.length > 0) lines.push(summarizeFleet(report));
  return lines.map((line) => `${printable(line)}\n`).join('');
}
