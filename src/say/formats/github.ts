import { formatCount, printableLines } from '../../base/printable.ts';
import { groupBy } from '../../cluster/grouping.ts';
import type { Severity } from '../../base/findings/rows.ts';
import type { ShownFinding } from '../words/said.ts';
import type { Located } from '../../kernel/place.ts';

/** Returns a file's path from the root of its repository, which GitHub and GitLab need. Undefined for standard input. */
export type PathOf = (file: string) => string | undefined;

/** GitHub shows only ten annotations of each level in each step, and silently drops the others. */
const mostOfLevel = 10;

const levels: Readonly<Record<Severity, 'error' | 'warning' | 'notice'>> = {
  error: 'error',
  warning: 'warning',
  note: 'notice',
};

/** Formats the commands that make GitHub annotate lines. For each level, the last command counts the annotations that GitHub would drop. */
export function formatGithub(findings: readonly ShownFinding[], pathOf: PathOf): string {
  const bySeverity = groupBy(findings, ({ severity }) => severity);
  const hidden = new Set(
    [...bySeverity.values()].flatMap((own) => (own.length > mostOfLevel ? own.slice(mostOfLevel - 1) : [])),
  );
  const shown = findings
    .filter((each) => !hidden.has(each))
    .map((finding) => {
      const { severity, code, text, help, trace, place } = finding;
      const shows = trace === undefined ? '' : `\ntrace: ${trace.command}`;
      const lines = `${text}${help === undefined ? '' : `\nhelp: ${help}`}${shows}`;
      return annotate(levels[severity], code, lines, inRepository(place, pathOf));
    });
  const counts = [...bySeverity.values()].flatMap((own) => {
    const dropped = own.filter((each) => hidden.has(each)).length;
    return dropped === 0 ? [] : [annotate(levels[own[0].severity], 'kpc', `and ${formatCount(dropped)} more`)];
  });
  return [...shown, ...counts].join('');
}

/** Returns a place in the repository. GitHub shows an annotation without a file only on the page of the run. */
function inRepository(place: Located | undefined, pathOf: PathOf): Located | undefined {
  const path = place && pathOf(place.file);
  return path === undefined ? undefined : { ...place, file: path };
}

function annotate(level: 'error' | 'warning' | 'notice', title: string, text: string, place?: Located): string {
  const { file, line, column } = place ?? {};
  const at = Object.entries({ file, line, col: column }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${escapeProperty(String(value))}`],
  );
  return `::${level} ${[...at, `title=${escapeProperty(title)}`].join(',')}::${escapeData(text)}\n`;
}

/** Escapes text for a workflow command, which is a single line. Characters that would end the command are written as %XX. */
function escapeData(text: string): string {
  return printableLines(text).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
