import { printable, printableJson } from '../base/printable.ts';
import { locate } from '../diagnostics/diagnostic.ts';
import type { Severity } from '../diagnostics/diagnostic-rows.ts';
import type { PathOf } from './github.ts';
import { withTrace, type LintReport } from './lint-report.ts';

const severities: Readonly<Record<Severity, string>> = { error: 'major', warning: 'minor', note: 'info' };

/**
 * GitLab's report of code quality. Each finding needs a line there: what is about the input as a whole is placed at its
 * first file.
 */
export function formatGitlab({ findings, files }: LintReport, pathOf: PathOf): string {
  const issues = findings.map((finding) => {
    const { code, severity, text, place } = finding.diagnostic;
    const { help } = withTrace(finding);
    const { file = files[0] ?? '.', line = 1 } = locate(place);
    return {
      description: printable(text),
      check_name: code,
      fingerprint: finding.fingerprint,
      severity: severities[severity],
      location: { path: pathOf(file) ?? file, lines: { begin: line } },
      ...(help === undefined
        ? {}
        : { content: { body: `${help}\n\n${finding.page ?? `kpc explain ${finding.diagnostic.code}`}` } }),
    };
  });
  return `${printableJson(JSON.stringify(issues, undefined, 2))}\n`;
}
