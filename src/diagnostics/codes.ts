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
import type { Severity } from './table.ts';

/** The diagnostics of each domain. No code is in two of them. */
export const diagnosticTables = [
  syntaxDiagnostics,
  fileDiagnostics,
  fieldDiagnostics,
  objectDiagnostics,
  serviceDiagnostics,
  assignmentDiagnostics,
  endpointDiagnostics,
  nodeDiagnostics,
  settingDiagnostics,
  resultDiagnostics,
  sideDiagnostics,
  commandLineDiagnostics,
] as const;

type Union<Table> = Table extends unknown ? (table: Table) => void : never;

/** All of them in one. */
type Entries = Union<(typeof diagnosticTables)[number]> extends (table: infer Table) => void ? Table : never;

/** What a diagnostic is of: stable, and documented in docs/diagnostics.md. */
export type DiagnosticCode = keyof Entries;

/** What a diagnostic of a code carries as data, all of which JSON can hold. */
export type ArgumentsOf<Code extends DiagnosticCode> = {
  readonly [C in Code]: Parameters<Entries[C]['words']> extends [infer Arguments] ? Arguments : Record<string, never>;
}[Code];

/** What the table says of a code. */
export interface CodeEntry<Code extends DiagnosticCode> {
  readonly severity: Severity | ((details: ArgumentsOf<Code>) => Severity);
  readonly meaning: string;
  readonly words: (details: ArgumentsOf<Code>) => string;
}

const entries = Object.assign({}, ...diagnosticTables) as Entries;

/** What is known of a code. */
export function entryOf<Code extends DiagnosticCode>(code: Code): CodeEntry<Code> {
  return entries[code] as unknown as CodeEntry<Code>;
}

/** All codes, sorted. */
export const diagnosticCodes = (Object.keys(entries) as DiagnosticCode[]).toSorted();
