import { groupBy } from '../../cluster/group-by.ts';
import { diagnose, isError, type Fault, type Finding } from '../../base/findings/finding.ts';
import { wordsOf } from './words.ts';

/** The diagnostics as people get them: what is said of several things in the same words said once, and no more than they can read. */
export function diagnosticsForPeople(diagnostics: readonly Finding[]): readonly Finding[] {
  return limitShown(foldDiagnostics(diagnostics));
}

const mostShown = 200;

/** The first ones, errors before all others, then one line per severity with the number of the rest. */
function limitShown(all: readonly Finding[]): readonly Finding[] {
  const made = all.filter(({ code }) => code !== 'not-shown');
  if (made.length <= mostShown) return all;
  const shown = new Set([...made.filter(isError), ...made.filter((each) => !isError(each))].slice(0, mostShown));
  const others = (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const hidden = all.filter((each) => each.severity === severity && !shown.has(each));
    const count = hidden.reduce((sum, each) => sum + (each.code === 'not-shown' ? each.arguments.count : 1), 0);
    return count === 0 ? [] : [diagnose('not-shown', { severity, count })];
  });
  return [...made.filter((diagnostic) => shown.has(diagnostic)), ...others];
}

/**
 * A warning or a note that is said of several Services or Nodes in the same words is said once, where it
 * is said first, with the names of the others. Errors are reported one by one, for each has a place to go to.
 */
function foldDiagnostics(diagnostics: readonly Finding[]): readonly Finding[] {
  const parts = diagnostics
    .filter(({ severity }) => severity !== 'error')
    .flatMap((diagnostic) => split(diagnostic) ?? []);
  const groups = groupBy(parts, ({ diagnostic: { severity, code }, words, help }) =>
    JSON.stringify([severity, code, words, help]),
  );
  const folded = new Map<Finding, Finding | undefined>();
  for (const [first, ...others] of groups.values()) {
    if (others.length === 0) continue;
    const names = new Set(others.map(({ name }) => name));
    names.delete(first.name);
    folded.set(first.diagnostic, names.size === 0 ? first.diagnostic : { ...first.diagnostic, alike: [...names] });
    for (const { diagnostic } of others) folded.set(diagnostic, undefined);
  }
  return diagnostics.flatMap((diagnostic) => (folded.has(diagnostic) ? (folded.get(diagnostic) ?? []) : diagnostic));
}

/** What a diagnostic is about, and what it says of that. */
interface Part {
  readonly diagnostic: Finding;
  readonly name: string;
  readonly words: string;
  readonly help: string | undefined;
}

/** Undefined for a diagnostic whose sentence does not begin with what it is about: it would not fit others. */
function split(diagnostic: Finding): Part | undefined {
  const { code, place } = diagnostic;
  const { text, help } = wordsOf(diagnostic);
  if (code === 'empty-file' || code === 'unknown-kind')
    return place && { diagnostic, name: place.file, words: text, help };
  const { arguments: details } = diagnostic;
  const subject = 'servicePort' in details ? 'servicePort' : 'service';
  const name = (details as Partial<Record<typeof subject, string>>)[subject];
  if (name === undefined) return undefined;
  // The same said of nothing in particular.
  const words = wordsOf({ code, arguments: { ...details, [subject]: '' } } as Fault).text;
  return text === name + words ? { diagnostic, name, words, help } : undefined;
}
