import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { listFixtures, type Fixture } from './support/fixtures.ts';
import { runKpc } from './support/run-kpc.ts';

/** UPDATE_GOLDEN=1 writes what comes out over what is expected; the difference is then read in git. */
const update = process.env['UPDATE_GOLDEN'] === '1';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-fixtures-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const fixtures = listFixtures();

describe('fixtures that compile', () => {
  for (const fixture of fixtures.filter(({ fails }) => !fails)) {
    test(`${fixture.name}: has a mode to compile in`, () => {
      expect(fixture.modes).not.toEqual([]);
    });
    for (const mode of fixture.modes) {
      test(`${fixture.name}: ${mode}`, async () => {
        const out = join(scratch, `${fixture.name}-${mode}`);
        const run = await runKpc([...fixture.args, '--proxy-mode', mode, '-o', out], { cwd: fixture.folder });
        expect(run, run.stderr).toMatchObject({ status: 0, stdout: '' });
        // The two last lines say how much was written, and where.
        const warnings = run.stderr.replace(/[^\n]*\nWritten to [^\n]*\n$/, '');
        expectSameFolder(out, join(fixture.folder, `expected-${mode}`));
        expectSameText(warnings, warningsFile(fixture, mode));
      });
    }
  }
});

describe('fixtures that must not compile', () => {
  for (const fixture of fixtures.filter(({ fails }) => fails)) {
    test(fixture.name, async () => {
      const out = join(scratch, fixture.name);
      const run = await runKpc([...fixture.args, '-o', out], { cwd: fixture.folder });
      expect(run, run.stderr).toMatchObject({ status: 2, stdout: '' });
      expect(existsSync(out), 'nothing is written').toBe(false);
      expect(run.stderr).not.toMatch(/^ +at .*:\d+/m);
      expectSameText(run.stderr, join(fixture.folder, 'expected', 'diagnostics.txt'));
    });
  }
});

/** What goes to stderr beside a bundle: warnings.txt, or warnings-MODE.txt where the modes differ. */
function warningsFile(fixture: Fixture, mode: string): string {
  const ofMode = join(fixture.folder, `warnings-${mode}.txt`);
  return existsSync(ofMode) ? ofMode : join(fixture.folder, 'warnings.txt');
}

/** The same file names, and in each the same bytes. */
function expectSameFolder(got: string, want: string): void {
  if (update) {
    rmSync(want, { recursive: true, force: true });
    cpSync(got, want, { recursive: true });
  }
  expect(readdirSync(got).toSorted()).toEqual(readdirSync(want).toSorted());
  for (const name of readdirSync(want)) {
    expect(readFileSync(join(got, name), 'utf8'), name).toBe(readFileSync(join(want, name), 'utf8'));
  }
}

/** The same text as in the file; a file that is not there stands for no text. */
function expectSameText(got: string, file: string): void {
  if (update) {
    if (got === '') rmSync(file, { force: true });
    else writeFileSync(file, got);
  }
  expect(got).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
}
