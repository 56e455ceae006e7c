import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadFiles } from '../../src/input/files/load-files.ts';
import { costInMegabytes } from '../support/cpu-time.ts';
import { some } from '../support/rounds.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-patterns-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, `${'a'.repeat(110)}b.yaml`), '');

const hostile = ['*a*a*a*a*a*a*a*a*a*a*a*a*c', 'x/*a*a*a*c', '!*a*a*a*c', '**/a/**/a/**/a/**/c', 'a**a**a**a**c'];

test.each(some(hostile, 2))('the pattern %s is compared soon, as a flag and in a list', async (pattern) => {
  const list = join(folder, '.kpcignore');
  const cost = await costInMegabytes(() => {
    const flag = loadFiles([folder], undefined, [pattern]);
    writeFileSync(list, `# comment\n${pattern}\n`);
    const listed = loadFiles([folder], undefined);
    for (const { files, diagnostics } of [flag, listed]) {
      expect(files).toHaveLength(1);
      expect(diagnostics).toEqual([]);
    }
  });
  rmSync(list);
  expect(cost).toBeLessThan(6);
});

test('several such patterns are compared soon with the longest name', async () => {
  writeFileSync(join(folder, `${'a'.repeat(250)}.yaml`), '');
  const patterns = ['*a*a*c', '**/*a*a*c', '**/a/**/a/**/c', '*?*?*c'];
  const cost = await costInMegabytes(() => {
    expect(loadFiles([folder], undefined, patterns).files).toHaveLength(2);
  });
  expect(cost).toBeLessThan(6);
});
