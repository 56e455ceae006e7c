import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { groupBy } from '../cluster/group-by.ts';

/** "namespace/name: text" or "namespace/name:port: text". */
const aboutOne = /^([\w.-]+\/[\w.-]+(?::[\w-]+)?): (.+)$/s;

/** How many names are told after the first. */
const mostNames = 5;

/**
 * The diagnostics for people: a warning or a note that is said of several Services in the same words is said once, where it
 * is said first, with the names of the others. Errors are told one by one, for each has a place to go to.
 */
export function foldDiagnostics(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const parts = diagnostics
    .filter(({ severity }) => severity !== 'error')
    .flatMap((diagnostic) => split(diagnostic) ?? []);
  const groups = groupBy(parts, ({ diagnostic: { severity, code }, words }) => JSON.stringify([severity, code, words]));
  const folded = new Map<Diagnostic, Diagnostic | undefined>();
  for (const [first, ...others] of groups.values()) {
    if (!first || others.length === 0) continue;
    const names = new Set(others.map(({ name }) => name));
    names.delete(first.name);
    const text =
      names.size === 0 ? first.diagnostic.text : `${first.diagnostic.text}; the same for ${list([...names])}`;
    folded.set(first.diagnostic, { ...first.diagnostic, text });
    for (const { diagnostic } of others) folded.set(diagnostic, undefined);
  }
  return diagnostics.flatMap((diagnostic) => {
    if (!folded.has(diagnostic)) return [diagnostic];
    const text = folded.get(diagnostic);
    return text ? [text] : [];
  });
}

/** What a diagnostic is about, and what it says of that. */
interface Part {
  readonly diagnostic: Diagnostic;
  readonly name: string;
  readonly words: string;
}

function split(diagnostic: Diagnostic): Part | undefined {
  const [, name, words] = aboutOne.exec(diagnostic.text) ?? [];
  if (name !== undefined && words !== undefined) return { diagnostic, name, words };
  // It is about the file.
  return diagnostic.code === 'empty-file' && diagnostic.place
    ? { diagnostic, name: diagnostic.place.file, words: diagnostic.text }
    : undefined;
}

function list(names: readonly string[]): string {
  const some = names.slice(0, mostNames).join(', ');
  return names.length > mostNames ? `${some} and ${names.length - mostNames} more` : some;
}
