import { answerFindings } from './answers.ts';
import { callFindings } from './calls.ts';
import { commandLineFindings } from './command-line.ts';
import { equivalenceFindings } from './equivalence.ts';
import { fieldFindings } from './fields.ts';
import { fileFindings } from './files.ts';
import { lintFindings } from './lint.ts';
import { objectFindings } from './objects.ts';
import { serviceFindings } from './services.ts';
import { settingFindings } from './settings.ts';
import { severityIn, type ArgumentsIn, type Row, type Severity } from './rows.ts';

const rows = {
  ...answerFindings,
  ...callFindings,
  ...commandLineFindings,
  ...equivalenceFindings,
  ...fieldFindings,
  ...fileFindings,
  ...lintFindings,
  ...objectFindings,
  ...serviceFindings,
  ...settingFindings,
};

/** Stable, and documented in docs/codes.md. */
export type FindingCode = keyof typeof rows;

/** Codes from other tables, about valid input, that kpc lint has rules for. */
const alsoLinted = [
  'no-endpoints-given',
  'selects-nothing',
  'external-ips',
  'ipvs-ends',
  'address-conflict',
  'long-comment',
  'node-address',
  'unknown-port',
  'covered-addresses',
  'unloadable-range',
] as const satisfies readonly FindingCode[];

/** Explained in docs/lint.md. */
export type LintCode = keyof typeof lintFindings | (typeof alsoLinted)[number];

export function isLintCode(code: FindingCode): code is LintCode {
  return code in lintFindings || alsoLinted.some((each) => each === code);
}

/** The data in a finding with this code. JSON can hold all of it. */
export type ArgumentsOf<Code extends FindingCode> = ArgumentsIn<typeof rows, Code>;

export function severityOf<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>): Severity {
  return severityIn(rows[code] as Row<ArgumentsOf<Code>>, details);
}

export function severitiesOf(code: FindingCode): readonly Severity[] {
  const { severity } = rows[code];
  return typeof severity === 'string' ? [severity] : severity.among;
}

/** Reports whether findings with this code, except errors, are about how manifests are compiled, not about the manifests. */
export function isOfCompiling(code: FindingCode): boolean {
  return (rows[code] as Row<unknown>).isOfCompiling === true;
}

export const findingCodes = (Object.keys(rows) as FindingCode[]).toSorted();
