import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadFiles } from '../../src/input/load-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-patterns-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, `${'a'.repeat(110)}b.yaml`), '');

const hostile = ['*a*a*a*a*a*a*a*a*a*a*a*a*c', 'x/*a*a*a*c', '!*a*a*a*c', '**/a/**/a/**/a/**/c', 'a**a**a**a**c'];

test.each(hostile)('the pattern %s, which could be compared for ever, is refused where it stands', (pattern) => {
  const flag = loadFiles([folder], undefined, [pattern]).diagnostics;
  expect(flag).toMatchObject([
    { severity: 'error', text: expect.stringContaining(`--exclude: the pattern "${pattern}"`) },
  ]);
  const list = join(folder, '.kpcignore');
  writeFileSync(list, `# comment\n${pattern}\n`);
  const { diagnostics } = loadFiles([folder], undefined);
  rmSync(list);
  expect(diagnostics).toMatchObject([{ severity: 'error', text: expect.stringContaining(`${list}:2: the pattern`) }]);
});

test('the worst patterns that are taken are compared soon with the longest name', () => {
  writeFileSync(join(folder, `${'a'.repeat(250)}.yaml`), '');
  const before = process.cpuUsage();
  const patterns = ['*a*a*c', '**/*a*a*c', '**/a/**/a/**/c', '*?*?*c'];
  const { files } = loadFiles([folder], undefined, patterns);
  const { user, system } = process.cpuUsage(before);
  expect(files).toHaveLength(2);
  expect((user + system) / 1e6).toBeLessThan(5);
});
