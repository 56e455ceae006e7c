import { describe, expect, test } from 'vitest';
import type { ArgumentsOf, DiagnosticCode } from '../../src/diagnostics/codes.ts';
import { diagnosticCodes, entryOf } from '../../src/diagnostics/codes.ts';
import { diagnose } from '../../src/diagnostics/diagnostic.ts';
import { runKpc } from '../support/run-kpc.ts';
import { inputs } from './inputs.ts';
import { inFolder, readTold, runInput, toldByFixtures } from './tripped.ts';
import type { Told } from './tripped.ts';

const shown = toldByFixtures();

test('every code is shown by a fixture, or by an input of this folder', () => {
  expect(diagnosticCodes.length).toBeGreaterThan(100);
  expect(diagnosticCodes.filter((code) => !shown.has(code) && !inputs[code])).toEqual([]);
});

test('a fixture shows no code that is not in the tables', () => {
  const known: readonly string[] = diagnosticCodes;
  expect([...shown.keys()].filter((code) => !known.includes(code))).toEqual([]);
});

/** How severe a diagnostic of a code may be. */
function severitiesOf(code: DiagnosticCode): readonly string[] {
  const { severity } = entryOf(code);
  return typeof severity === 'string' ? [severity] : severity.among;
}

describe('the inputs make what they are there for, as severe as the table says', () => {
  for (const [code, input] of Object.entries(inputs)) {
    test(code, async () => {
      const stderr = await runInput(input);
      const told = readTold(stderr).filter((each) => each.code === code);
      expect(told, stderr).not.toEqual([]);
      for (const { severity } of told) expect(severitiesOf(code as DiagnosticCode)).toContain(severity);
    });
  }
});

/** A diagnostic as --output json prints it. */
interface PrintedDiagnostic extends Told {
  readonly code: DiagnosticCode;
  readonly arguments: ArgumentsOf<DiagnosticCode>;
}

describe('the arguments that programs get are all that the words are made of', () => {
  for (const [code, { words = [], files }] of Object.entries(inputs)) {
    const [command, ...others] = words;
    // Only kpc compile prints its diagnostics as JSON: all of them.
    if (command !== 'compile' || code === 'not-shown') continue;
    test(code, async () => {
      const flags = others.filter((word) => word !== '--print' && word !== 'manifest');
      const { stdout } = await inFolder(files, (cwd) => runKpc(['compile', ...flags, '--output', 'json'], { cwd }));
      const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: readonly PrintedDiagnostic[] };
      expect(diagnostics.map((each) => each.code)).toContain(code);
      for (const { code: own, arguments: details, severity, text } of diagnostics) {
        expect(diagnose(own, details)).toMatchObject({ severity, text });
      }
    });
  }
});
