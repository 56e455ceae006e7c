import { diagnose, isError, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { Inputs } from '../../input/read-inputs.ts';
import { foldDiagnostics } from '../../input/fold-diagnostics.ts';
import { renderDiagnostics } from '../../report/render-diagnostics.ts';
import type { Terminal } from '../shared/terminal.ts';

/** How many diagnostics of one file are shown, and how many of all. */
const maxPerFile = 200;
const maxInAll = 1000;

/** Prints diagnostics to stderr, each with the line of the file that it speaks of. */
export async function reportDiagnostics(
  diagnostics: readonly Diagnostic[],
  files: Inputs['files'],
  terminal: Terminal,
): Promise<void> {
  const wanted = terminal.quiet ? diagnostics.filter(isLoud) : diagnostics;
  if (wanted.length === 0) return;
  const lineOf = (file: string, line: number) => files.get(file)?.lineAt(line) ?? '';
  const folded = foldDiagnostics(wanted);
  const shown = chooseShown(folded);
  const more = describeOthers(folded, shown);
  await terminal.err(renderDiagnostics([...shown, ...more], lineOf, terminal.colour.err));
}

/** Whether --quiet says it all the same: an error, or that the result is not of the whole input. */
function isLoud(diagnostic: Diagnostic): boolean {
  return isError(diagnostic) || (diagnostic.code === 'left-out' && diagnostic.arguments.problem === 'all');
}

/** The first of each file, errors before all else, in the order they came. */
function chooseShown(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  if (diagnostics.length <= maxPerFile) return diagnostics;
  const perFile = new Map<string, number>();
  const shown = new Set<Diagnostic>();
  for (const diagnostic of [...diagnostics.filter(isError), ...diagnostics.filter((each) => !isError(each))]) {
    const file = diagnostic.place?.file ?? '';
    const count = perFile.get(file) ?? 0;
    if (count === maxPerFile || shown.size === maxInAll) continue;
    perFile.set(file, count + 1);
    shown.add(diagnostic);
  }
  return diagnostics.filter((diagnostic) => shown.has(diagnostic));
}

/** What is not shown, in a line for each severity. */
function describeOthers(all: readonly Diagnostic[], shown: readonly Diagnostic[]): readonly Diagnostic[] {
  return (['error', 'warning', 'note'] as const).flatMap((severity) => {
    const count = (list: readonly Diagnostic[]): number => list.filter((each) => each.severity === severity).length;
    const left = count(all) - count(shown);
    return left === 0 ? [] : [diagnose('not-shown', { severity, count: left })];
  });
}
