import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { compareText } from '../kernel/compare-text.ts';

/**
 * Diagnostics in the order in which they are shown: those without a place first, then by file, line, column, code and
 * text. What is said twice is said once.
 */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const keyed = diagnostics.map((diagnostic) => ({ diagnostic, location: diagnostic.place?.locate() }));
  keyed.sort(
    (a, b) =>
      compareText(a.location?.file ?? '', b.location?.file ?? '') ||
      (a.location?.line ?? 0) - (b.location?.line ?? 0) ||
      (a.location?.column ?? 0) - (b.location?.column ?? 0) ||
      compareText(a.diagnostic.code, b.diagnostic.code) ||
      compareText(a.diagnostic.text, b.diagnostic.text),
  );
  return keyed
    .filter(({ diagnostic, location }, i) => {
      const previous = keyed[i - 1];
      return (
        previous?.diagnostic.text !== diagnostic.text ||
        previous.diagnostic.code !== diagnostic.code ||
        previous.location?.file !== location?.file ||
        previous.location?.line !== location?.line ||
        previous.location?.column !== location?.column
      );
    })
    .map(({ diagnostic }) => diagnostic);
}

/** What was found besides, and what was said of the input in its order: what has a place stands there, the rest comes first. */
export function mergeDiagnostics(found: readonly Diagnostic[], said: readonly Diagnostic[]): readonly Diagnostic[] {
  const placed = found.filter(({ place }) => place);
  if (placed.length === 0) return [...found, ...said];
  return [...found.filter(({ place }) => !place), ...sortDiagnostics([...placed, ...said])];
}
