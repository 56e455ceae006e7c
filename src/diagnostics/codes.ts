import { assignmentDiagnostics } from './assignment.ts';
import { commandLineDiagnostics } from './command-line.ts';
import { endpointDiagnostics } from './endpoints.ts';
import { fieldDiagnostics } from './fields.ts';
import { fileDiagnostics } from './files.ts';
import { nodeDiagnostics } from './nodes.ts';
import { objectDiagnostics } from './objects.ts';
import { resultDiagnostics } from './results.ts';
import { serviceDiagnostics } from './services.ts';
import { settingDiagnostics } from './settings.ts';
import { sideDiagnostics } from './sides.ts';
import { syntaxDiagnostics } from './syntax.ts';
import type { Severity, Weighing } from './table.ts';

/** All of them in one. No code is in two domains. */
type Entries = typeof assignmentDiagnostics &
  typeof commandLineDiagnostics &
  typeof endpointDiagnostics &
  typeof fieldDiagnostics &
  typeof fileDiagnostics &
  typeof nodeDiagnostics &
  typeof objectDiagnostics &
  typeof resultDiagnostics &
  typeof serviceDiagnostics &
  typeof settingDiagnostics &
  typeof sideDiagnostics &
  typeof syntaxDiagnostics;

const entries: Entries = {
  ...assignmentDiagnostics,
  ...commandLineDiagnostics,
  ...endpointDiagnostics,
  ...fieldDiagnostics,
  ...fileDiagnostics,
  ...nodeDiagnostics,
  ...objectDiagnostics,
  ...resultDiagnostics,
  ...serviceDiagnostics,
  ...settingDiagnostics,
  ...sideDiagnostics,
  ...syntaxDiagnostics,
};

/** What a diagnostic is of: stable, and documented in docs/diagnostics.md. */
export type DiagnosticCode = keyof Entries;

/** What a diagnostic of a code carries as data, all of which JSON can hold. */
export type ArgumentsOf<Code extends DiagnosticCode> = {
  readonly [C in Code]: Parameters<Entries[C]['words']> extends [infer Arguments] ? Arguments : Record<string, never>;
}[Code];

/** What the table says of a code. */
export interface CodeEntry<Code extends DiagnosticCode> {
  readonly severity: Severity | Weighing<ArgumentsOf<Code>>;
  readonly meaning: string;
  readonly words: (details: ArgumentsOf<Code>) => string;
}

/** What is known of a code. */
export function entryOf<Code extends DiagnosticCode>(code: Code): CodeEntry<Code> {
  return entries[code] as unknown as CodeEntry<Code>;
}

/** All codes, sorted. */
export const diagnosticCodes = (Object.keys(entries) as DiagnosticCode[]).toSorted();
