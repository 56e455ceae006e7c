import { printableLines } from '../../base/printable.ts';
import { helpWithTrace, type SaidFinding } from '../words/said.ts';
import type { Location } from '../../kernel/place.ts';

/** The path of a file from the top of its repository, which GitHub and GitLab go by; undefined for standard input. */
export type PathOf = (file: string) => string | undefined;

/** Workflow commands that make GitHub annotate the lines of the pull request with the faults of the input. */
export function formatGithub(findings: readonly SaidFinding[], pathOf: PathOf): string {
  return findings
    .map((finding) => {
      const { severity, code, text } = finding;
      const help = helpWithTrace(finding);
      const lines = help === undefined ? text : `${text}\nhelp: ${help}`;
      return annotate(severity === 'note' ? 'notice' : severity, code, lines, inRepository(finding, pathOf));
    })
    .join('');
}

/** Without a file, GitHub shows an annotation with the run. */
export function inRepository(at: Partial<Location>, pathOf: PathOf): Partial<Location> {
  const path = at.file === undefined ? undefined : pathOf(at.file);
  return path === undefined ? {} : { ...at, file: path };
}

export function annotate(
  level: 'error' | 'warning' | 'notice',
  title: string,
  text: string,
  { file, line, column }: Partial<Location> = {},
): string {
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
