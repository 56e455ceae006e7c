import { describe, expect, test } from 'vitest';
import { diagnosticCodes } from '../../src/diagnostics/codes.ts';
import { inputs } from './inputs.ts';
import { readTold, runInput, toldByFixtures } from './tripped.ts';

const shown = toldByFixtures();

test('every code is shown by a fixture, or by an input of this folder', () => {
  expect(diagnosticCodes.length).toBeGreaterThan(100);
  expect(diagnosticCodes.filter((code) => !shown.has(code) && !inputs[code])).toEqual([]);
});

test('a fixture shows no code that is not in the tables', () => {
  const known: readonly string[] = diagnosticCodes;
  expect([...shown.keys()].filter((code) => !known.includes(code))).toEqual([]);
});

describe('the inputs make what they are there for', () => {
  for (const [code, input] of Object.entries(inputs)) {
    test(code, async () => {
      const stderr = await runInput(input);
      expect(
        readTold(stderr).map((told) => told.code),
        stderr,
      ).toContain(code);
    });
  }
});
