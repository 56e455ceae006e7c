import { commandLineDiagnostics } from './command-line.ts';
import { fieldDiagnostics } from './fields.ts';
import { fileDiagnostics } from './files.ts';
import { lintDiagnostics } from './lint.ts';
import { objectDiagnostics } from './objects.ts';
import { serviceDiagnostics } from './services.ts';
import { settingDiagnostics } from './settings.ts';
import type { DetailsOf, Severity, Weighing, Words } from './diagnostic-rows.ts';

/** The rows of all domains. No code is in two domains. */
type Entries = typeof commandLineDiagnostics &
  typeof fieldDiagnostics &
  typeof fileDiagnostics &
  typeof lintDiagnostics &
  typeof objectDiagnostics &
  typeof serviceDiagnostics &
  typeof settingDiagnostics;

const entries: Entries = {
  ...commandLineDiagnostics,
  ...fieldDiagnostics,
  ...fileDiagnostics,
  ...lintDiagnostics,
  ...objectDiagnostics,
  ...serviceDiagnostics,
  ...settingDiagnostics,
};

/** The code of a diagnostic: stable, and documented in docs/codes.md. */
export type DiagnosticCode = keyof Entries;

/** The data that a diagnostic of a code carries. JSON can hold all of it. */
export type ArgumentsOf<Code extends DiagnosticCode> = {
  readonly [C in Code]: DetailsOf<Entries[C]['words']>;
}[Code];

export interface CodeEntry<Code extends DiagnosticCode> {
  readonly severity: Severity | Weighing<ArgumentsOf<Code>>;
  readonly words: Words | ((details: ArgumentsOf<Code>) => Words);
}

export function entryOf<Code extends DiagnosticCode>(code: Code): CodeEntry<Code> {
  return entries[code] as unknown as CodeEntry<Code>;
}

/** How severe the diagnostics of a code can be, the worst first. */
export function severitiesOf(code: DiagnosticCode): readonly Severity[] {
  const { severity } = entryOf(code);
  return typeof severity === 'string' ? [severity] : severity.among;
}

export const diagnosticCodes = (Object.keys(entries) as DiagnosticCode[]).toSorted();
