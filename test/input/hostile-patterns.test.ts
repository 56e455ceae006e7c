import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadFiles } from '../../src/input/files/load-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-patterns-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, `${'a'.repeat(110)}b.yaml`), '');

const hostile = ['*a*a*a*a*a*a*a*a*a*a*a*a*c', 'x/*a*a*a*c', '!*a*a*a*c', '**/a/**/a/**/a/**/c', 'a**a**a**a**c'];

test.each(hostile)('the pattern %s is compared soon, as a flag and in a list', (pattern) => {
  const before = process.cpuUsage();
  const flag = loadFiles([folder], undefined, [pattern]);
  const list = join(folder, '.kpcignore');
  writeFileSync(list, `# comment\n${pattern}\n`);
  const listed = loadFiles([folder], undefined);
  rmSync(list);
  const { user, system } = process.cpuUsage(before);
  for (const { files, diagnostics } of [flag, listed]) {
    expect(files).toHaveLength(1);
    expect(diagnostics).toEqual([]);
  }
  expect((user + system) / 1e6).toBeLessThan(5);
});

test('several such patterns are compared soon with the longest name', () => {
  writeFileSync(join(folder, `${'a'.repeat(250)}.yaml`), '');
  const before = process.cpuUsage();
  const patterns = ['*a*a*c', '**/*a*a*c', '**/a/**/a/**/c', '*?*?*c'];
  const { files } = loadFiles([folder], undefined, patterns);
  const { user, system } = process.cpuUsage(before);
  expect(files).toHaveLength(2);
  expect((user + system) / 1e6).toBeLessThan(5);
});
