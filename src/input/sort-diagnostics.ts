import { keyOfFault, type Finding } from '../base/findings/finding.ts';
import { compareText } from '../kernel/compare.ts';
import type { Location } from '../kernel/place.ts';

/**
 * Removes duplicates and sorts: first diagnostics without a place, then the others by file, line, column, code and arguments, then
 * summaries.
 */
export function sortDiagnostics(diagnostics: readonly Finding[]): Finding[] {
  const placed = diagnostics.map((diagnostic) => ({ diagnostic, location: diagnostic.place?.locate() }));
  placed.sort(compare);
  return placed
    .filter((each, i) => i === 0 || compare(placed[i - 1] ?? each, each) !== 0)
    .map(({ diagnostic }) => diagnostic);
}

interface Placed {
  readonly diagnostic: Finding;
  readonly location: Location | undefined;
}

function compare(a: Placed, b: Placed): number {
  return (
    Number(sumsUp(a.diagnostic)) - Number(sumsUp(b.diagnostic)) ||
    compareText(a.location?.file ?? '', b.location?.file ?? '') ||
    (a.location?.line ?? 0) - (b.location?.line ?? 0) ||
    (a.location?.column ?? 0) - (b.location?.column ?? 0) ||
    compareText(a.diagnostic.code, b.diagnostic.code) ||
    compareText(keyOfFault(a.diagnostic), keyOfFault(b.diagnostic))
  );
}

function sumsUp(diagnostic: Finding): boolean {
  if (diagnostic.code === 'not-shown') return true;
  return diagnostic.code === 'left-out' && diagnostic.arguments.problem === 'advice';
}

/** Adds findings to the input's sorted diagnostics. Those without a place come first. */
export function mergeDiagnostics(found: readonly Finding[], said: readonly Finding[]): readonly Finding[] {
  const placed = found.filter(({ place }) => place);
  if (placed.length === 0) return [...found, ...said];
  return [...found.filter(({ place }) => !place), ...sortDiagnostics([...placed, ...said])];
}
