// Each code has its folder in fixtures/codes: what its example says, and that the arguments of a diagnostic make its words.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { codes, examples, failures } from '#codes';
import { codesFolder, readExample } from '../../scripts/codes-module.mjs';
import { failureCodes } from '../../src/base/findings/apply.ts';
import {
  findingCodes,
  severitiesOf,
  severityOf,
  type ArgumentsOf,
  type FindingCode,
} from '../../src/base/findings/codes.ts';
import { wordsOf } from '../../src/say/words/words.ts';
import { ruleCodes } from '../../src/ask/lint/rules.ts';
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
  expect(codesWith('about.yaml')).toEqual(findingCodes);
  expect(codesWith('about-kpc-apply.yaml')).toEqual(failureCodes);
  expect(codesWith('passes')).toEqual(ruleCodes.toSorted());
  expect(findingCodes.filter((code) => codes[code].why !== undefined)).toEqual(ruleCodes.toSorted());
  expect(codesWith('')).toEqual([...new Set([...findingCodes, ...failureCodes])].toSorted());
});

test('a fixture shows no code that is not in the tables', () => {
  const known: readonly string[] = findingCodes;
  expect([...toldByFixtures().keys()].filter((code) => !known.includes(code))).toEqual([]);
});

test('every code of kpc-apply is one that some fault makes', async () => {
  expect([...(await failureExamples()).keys()].toSorted()).toEqual(failureCodes);
  expect(Object.values(failures).filter(({ meaning, advice }) => !meaning || !advice)).toEqual([]);
});

/** A diagnostic as --output json prints it. */
interface PrintedDiagnostic extends Told {
  readonly code: FindingCode;
  readonly arguments: ArgumentsOf<FindingCode>;
}

describe('the example of a code says what is in said.txt, as severe as its row has it, and what to do', () => {
  test.each(findingCodes)('%s', async (code) => {
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
  const printing = findingCodes.filter(
    (code) => ['compile', 'lint'].includes(examples[code].words[0] ?? '') && code !== 'not-shown',
  );

  test.each(printing)('%s', async (code) => {
    const { words, files } = await readExample(join(codesFolder, code, 'example'));
    const [command = '', ...others] = words;
    const flags = others.filter((word) => word !== '--print' && word !== 'manifest');
    const { stdout } = await inFolder(files, (cwd) => runKpc([command, ...flags, '--output', 'json'], { cwd }));
    const { findings } = JSON.parse(stdout) as { readonly findings: readonly PrintedDiagnostic[] };
    expect(findings.map((each) => each.code)).toContain(code);
    for (const { code: own, arguments: details, severity, text, help } of findings) {
      expect({ severity: severityOf(own, details), ...wordsOf({ code: own, arguments: details }) }).toEqual({
        severity,
        text,
        help,
      });
    }
  });
});
