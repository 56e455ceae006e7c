import { describe, expect, test } from 'vitest';
import { failureFacts } from '../../src/base/failure-codes.ts';
import {
  diagnosticCodes,
  entryOf,
  severitiesOf,
  type ArgumentsOf,
  type DiagnosticCode,
} from '../../src/diagnostics/codes.ts';
import { diagnose } from '../../src/diagnostics/diagnostic.ts';
import { runKpc } from '../support/run-kpc.ts';
import { inFolder, readTold, runExample, toldByFixtures, type Told } from './tripped.ts';

const shown = toldByFixtures();

test('a fixture shows no code that is not in the tables', () => {
  const known: readonly string[] = diagnosticCodes;
  expect([...shown.keys()].filter((code) => !known.includes(code))).toEqual([]);
});

describe('the examples give their code, as severe as its row says', () => {
  for (const code of diagnosticCodes) {
    test(code, async () => {
      const stderr = await runExample(entryOf(code).example());
      const told = readTold(stderr).filter((each) => each.code === code);
      expect(told, stderr).not.toEqual([]);
      for (const { severity } of told) expect(severitiesOf(code)).toContain(severity);
    });
  }
});

/** A diagnostic as --output json prints it. */
interface PrintedDiagnostic extends Told {
  readonly code: DiagnosticCode;
  readonly arguments: ArgumentsOf<DiagnosticCode>;
}

test('kpc explain says for each code what to do', async () => {
  const silent: string[] = [];
  for (const code of [...diagnosticCodes, ...Object.keys(failureFacts)]) {
    const { stdout } = await runKpc(['explain', code]);
    const own = stdout.split(/\n(?=[a-z-]+: error of kpc-apply\n)/);
    // A code of both programs has advice for each.
    if (!own.every((each) => /^(?: *help|What to do): \S/m.test(each))) silent.push(code);
  }
  expect(silent).toEqual([]);
});

describe('the arguments that programs get are all that the words are made of', () => {
  for (const code of diagnosticCodes) {
    const { words, files } = entryOf(code).example();
    const [command, ...others] = words;
    // Only these print their diagnostics as JSON: all of them.
    if ((command !== 'compile' && command !== 'lint') || code === 'not-shown') continue;
    test(code, async () => {
      const flags = others.filter((word) => word !== '--print' && word !== 'manifest');
      const { stdout } = await inFolder(files, (cwd) => runKpc([command, ...flags, '--output', 'json'], { cwd }));
      const printed = JSON.parse(stdout) as Readonly<Record<'diagnostics' | 'findings', readonly PrintedDiagnostic[]>>;
      const diagnostics = command === 'lint' ? printed.findings : printed.diagnostics;
      expect(diagnostics.map((each) => each.code)).toContain(code);
      for (const { code: own, arguments: details, severity, text, help } of diagnostics) {
        expect(diagnose(own, details)).toMatchObject({ severity, text, ...(help === undefined ? {} : { help }) });
      }
    });
  }
});
