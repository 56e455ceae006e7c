// Each code has its folder in fixtures/codes: what its example says, and that the arguments of a diagnostic make its words.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { codes, examples, failures } from '#codes';
import { codesFolder, readExample } from '../../scripts/codes-module.mjs';
import { failureCodes } from '../../src/base/failure-codes.ts';
import { diagnosticCodes, severitiesOf, type ArgumentsOf, type DiagnosticCode } from '../../src/diagnostics/codes.ts';
import { diagnose } from '../../src/diagnostics/diagnostic.ts';
import { ruleCodes } from '../../src/lint/rules.ts';
import { runKpc } from '../support/run-kpc.ts';
import { failureExamples } from './failures.ts';
import { inFolder, messageOf, readTold, runExample, toldByFixtures, type Told } from './tripped.ts';

/** The codes whose folders hold a file of this name. */
function codesWith(name: string): readonly string[] {
  return readdirSync(codesFolder)
    .filter((code) => existsSync(join(codesFolder, code, name)))
    .toSorted();
}

test('each code has its folder, and each folder its code', () => {
  expect(codesWith('about.yaml')).toEqual(diagnosticCodes);
  expect(codesWith('about-kpc-apply.yaml')).toEqual(failureCodes);
  expect(codesWith('passes')).toEqual(ruleCodes.toSorted());
  expect(diagnosticCodes.filter((code) => codes[code].why !== undefined)).toEqual(ruleCodes.toSorted());
  expect(codesWith('')).toEqual([...new Set([...diagnosticCodes, ...failureCodes])].toSorted());
});

test('a fixture shows no code that is not in the tables', () => {
  const known: readonly string[] = diagnosticCodes;
  expect([...toldByFixtures().keys()].filter((code) => !known.includes(code))).toEqual([]);
});

test('every code of kpc-apply is one that some fault makes', async () => {
  expect([...(await failureExamples()).keys()].toSorted()).toEqual(failureCodes);
  expect(Object.values(failures).filter(({ meaning, advice }) => !meaning || !advice)).toEqual([]);
});

/** A diagnostic as --output json prints it. */
interface PrintedDiagnostic extends Told {
  readonly code: DiagnosticCode;
  readonly arguments: ArgumentsOf<DiagnosticCode>;
}

describe('the example of a code says what is in said.txt, as severe as its row has it, and what to do', () => {
  test.each(diagnosticCodes)('%s', async (code) => {
    const folder = join(codesFolder, code);
    const printed = await runExample(await readExample(join(folder, 'example')));
    const said = messageOf(code, printed);
    expect(said, printed).not.toBe('');
    const path = join(folder, 'said.txt');
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(path, said);
    expect(readFileSync(path, 'utf8')).toBe(said);
    const told = readTold(printed).filter((each) => each.code === code);
    for (const { severity } of told) expect(severitiesOf(code)).toContain(severity);
    expect(readTold(said)[0]?.help ?? codes[code].advice).toBeTruthy();
  });
});

describe('the arguments that programs get are all that the words are made of', () => {
  // Only these print their diagnostics as JSON: all of them.
  const printing = diagnosticCodes.filter(
    (code) => ['compile', 'lint'].includes(examples[code].words[0] ?? '') && code !== 'not-shown',
  );

  test.each(printing)('%s', async (code) => {
    const { words, files } = await readExample(join(codesFolder, code, 'example'));
    const [command = '', ...others] = words;
    const flags = others.filter((word) => word !== '--print' && word !== 'manifest');
    const { stdout } = await inFolder(files, (cwd) => runKpc([command, ...flags, '--output', 'json'], { cwd }));
    const printed = JSON.parse(stdout) as Readonly<Record<'diagnostics' | 'findings', readonly PrintedDiagnostic[]>>;
    const diagnostics = command === 'lint' ? printed.findings : printed.diagnostics;
    expect(diagnostics.map((each) => each.code)).toContain(code);
    for (const { code: own, arguments: details, severity, text, help } of diagnostics) {
      expect(diagnose(own, details)).toMatchObject({ severity, text, ...(help === undefined ? {} : { help }) });
    }
  });
});
