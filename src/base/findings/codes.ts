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

/** The code of a finding. Codes are stable, and documented in docs/codes.md. */
export type FindingCode = keyof typeof rows;

/** Codes about valid input from other tables, for which kpc lint also has rules. */
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

/** The codes of kpc lint, which docs/lint.md explains. */
export type LintCode = keyof typeof lintFindings | (typeof alsoLinted)[number];

export function isLintCode(code: FindingCode): code is LintCode {
  return code in lintFindings || alsoLinted.some((each) => each === code);
}

/** The data in a finding with this code, which JSON can express. */
export type ArgumentsOf<Code extends FindingCode> = ArgumentsIn<typeof rows, Code>;

export function severityOf<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>): Severity {
  return severityIn(rows[code] as Row<ArgumentsOf<Code>>, details);
}

export function severitiesOf(code: FindingCode): readonly Severity[] {
  const { severity } = rows[code];
  return typeof severity === 'string' ? [severity] : severity.among;
}

/** Reports whether findings with this code, unless they are errors, are about the compilation and not about the manifests. */
export function isOfCompiling(code: FindingCode): boolean {
  return (rows[code] as Row<unknown>).isOfCompiling === true;
}

export const findingCodes = (Object.keys(rows) as FindingCode[]).toSorted();
