import { groupBy } from '../cluster/group-by.ts';
import { nameSome } from '../base/join-words.ts';
import { addWords, diagnose, diagnoseFault, isError, type Diagnostic, type Fault } from '../diagnostics/diagnostic.ts';
import { compareText } from '../kernel/compare-text.ts';
import type { Location } from '../kernel/place.ts';

/**
 * Diagnostics in the order in which they are shown: those without a place first, then by file, line, column, code and
 * text, and at the end what sums up others. What is said twice is said once.
 */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const placed = diagnostics.map((diagnostic) => ({ diagnostic, location: diagnostic.place?.locate() }));
  placed.sort(compare);
  return placed
    .filter((each, i) => i === 0 || compare(placed[i - 1] ?? each, each) !== 0)
    .map(({ diagnostic }) => diagnostic);
}

interface Placed {
  readonly diagnostic: Diagnostic;
  readonly location: Location | undefined;
}

function compare(a: Placed, b: Placed): number {
  return (
    Number(sumsUp(a.diagnostic)) - Number(sumsUp(b.diagnostic)) ||
    compareText(a.location?.file ?? '', b.location?.file ?? '') ||
    (a.location?.line ?? 0) - (b.location?.line ?? 0) ||
    (a.location?.column ?? 0) - (b.location?.column ?? 0) ||
    compareText(a.diagnostic.code, b.diagnostic.code) ||
    compareText(a.diagnostic.text, b.diagnostic.text)
  );
}

function sumsUp(diagnostic: Diagnostic): boolean {
  if (diagnostic.code === 'not-shown') return true;
  return diagnostic.code === 'left-out' && diagnostic.arguments.problem === 'advice';
}

/** Joins other findings with the diagnostics of the input, in its order: those with a place go there, the rest comes first. */
export function mergeDiagnostics(found: readonly Diagnostic[], said: readonly Diagnostic[]): readonly Diagnostic[] {
  const placed = found.filter(({ place }) => place);
  if (placed.length === 0) return [...found, ...said];
  return [...found.filter(({ place }) => !place), ...sortDiagnostics([...placed, ...said])];
}

/** How many names are printed after the first. */
const mostNames = 5;

/** The diagnostics as people get them: what is said of several things in the same words said once, and no more than they can read. */
export function diagnosticsForPeople(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return limitShown(foldDiagnostics(diagnostics));
}

const mostShown = 200;

/** The first ones, errors before all others, then one line per severity with the number of the rest. */
function limitShown(all: readonly Diagnostic[]): readonly Diagnostic[] {
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
function foldDiagnostics(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const parts = diagnostics
    .filter(({ severity }) => severity !== 'error')
    .flatMap((diagnostic) => split(diagnostic) ?? []);
  const groups = groupBy(parts, ({ diagnostic: { severity, code, help }, words }) =>
    JSON.stringify([severity, code, words, help]),
  );
  const folded = new Map<Diagnostic, Diagnostic | undefined>();
  for (const [first, ...others] of groups.values()) {
    if (others.length === 0) continue;
    const names = new Set(others.map(({ name }) => name));
    names.delete(first.name);
    const words = names.size === 0 ? '' : `; the same for ${nameSome([...names], mostNames)}`;
    folded.set(first.diagnostic, addWords(first.diagnostic, words));
    for (const { diagnostic } of others) folded.set(diagnostic, undefined);
  }
  return diagnostics.flatMap((diagnostic) => (folded.has(diagnostic) ? (folded.get(diagnostic) ?? []) : diagnostic));
}

/** What a diagnostic is about, and what it says of that. */
interface Part {
  readonly diagnostic: Diagnostic;
  readonly name: string;
  readonly words: string;
}

/** Undefined for a diagnostic whose sentence does not begin with what it is about: it would not fit others. */
function split(diagnostic: Diagnostic): Part | undefined {
  const { code, place, text } = diagnostic;
  if (code === 'empty-file' || code === 'unknown-kind') return place && { diagnostic, name: place.file, words: text };
  const { arguments: details } = diagnostic;
  const subject = 'servicePort' in details ? 'servicePort' : 'service';
  const name = (details as Partial<Record<typeof subject, string>>)[subject];
  if (name === undefined) return undefined;
  // The same said of nothing in particular.
  const words = diagnoseFault({ code, arguments: { ...details, [subject]: '' } } as Fault).text;
  return text === name + words ? { diagnostic, name, words } : undefined;
}
