import { printable, printableJson } from '../../base/printable.ts';
import type { Severity } from '../../base/findings/rows.ts';
import type { PathOf } from './github.ts';
import { helpWithTrace, type ShownFinding } from '../words/said.ts';

const severities: Readonly<Record<Severity, string>> = { error: 'major', warning: 'minor', note: 'info' };

/** Formats GitLab's code quality report. GitLab needs a line for each finding, so one about the whole input is at the first file. */
export function formatGitlab(findings: readonly ShownFinding[], files: readonly string[], pathOf: PathOf): string {
  const issues = findings.map((finding) => {
    const { code, severity, text, page, fingerprint, place } = finding;
    const { file, line = 1 } = place ?? { file: files[0] ?? '.' };
    // Standard input has no path.
    const path = pathOf(file) ?? '';
    const help = helpWithTrace(finding);
    return {
      description: printable(text),
      check_name: code,
      fingerprint,
      severity: severities[severity],
      location: path === '' ? { path: '.', lines: { begin: 1 } } : { path, lines: { begin: line } },
      content: help === undefined ? undefined : { body: `${help}\n\n${page ?? `kpc explain ${code}`}` },
    };
  });
  return `${printableJson(JSON.stringify(issues, undefined, 2))}\n`;
}
