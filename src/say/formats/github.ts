import { printableLines } from '../../base/printable.ts';
import { helpWithTrace, type SaidFinding } from '../words/said.ts';
import type { Located } from '../../kernel/place.ts';

/** The path of a file from the top of its repository, which GitHub and GitLab go by; undefined for standard input. */
export type PathOf = (file: string) => string | undefined;

/** Workflow commands that make GitHub annotate the lines of the pull request with the faults of the input. */
export function formatGithub(findings: readonly SaidFinding[], pathOf: PathOf): string {
  return findings
    .map((finding) => {
      const { severity, code, text, place } = finding;
      const help = helpWithTrace(finding);
      const lines = help === undefined ? text : `${text}\nhelp: ${help}`;
      return annotate(severity === 'note' ? 'notice' : severity, code, lines, inRepository(place, pathOf));
    })
    .join('');
}

/** Without a file, GitHub shows an annotation with the run. */
export function inRepository(place: Located | undefined, pathOf: PathOf): Located | undefined {
  const path = place && pathOf(place.file);
  return path === undefined ? undefined : { ...place, file: path };
}

export function annotate(level: 'error' | 'warning' | 'notice', title: string, text: string, place?: Located): string {
  const { file, line, column } = place ?? {};
  const at = Object.entries({ file, line, col: column }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${escapeProperty(String(value))}`],
  );
  return `::${level} ${[...at, `title=${escapeProperty(title)}`].join(',')}::${escapeData(text)}\n`;
}

/** Workflow commands end with the line: %XX encodes what would end them sooner. */
function escapeData(text: string): string {
  return printableLines(text).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
