import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-start-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What kpc asks of a Node of that kind, for a user: the folder for compiled code, if it asks for one. */
function start(uid: number, hasCache: boolean) {
  const preload = join(scratch, 'preload.cjs');
  const cache = hasCache ? `(folder) => console.error('code in ' + folder)` : 'undefined';
  writeFileSync(preload, `require('node:module').enableCompileCache = ${cache}; process.getuid = () => ${uid};`);
  const env = { ...process.env, HOME: '/home/jane' };
  return spawnSync(process.execPath, ['-r', preload, 'bin/kpc.js', 'explain', 'bad-value'], { env, encoding: 'utf8' });
}

test("Node keeps compiled code in a folder of the user's own", () => {
  expect(start(1000, true)).toMatchObject({ status: 0, stderr: 'code in /home/jane/.cache/kpc\n' });
});

test.each([
  ['root, who would run what others wrote there', 0, true],
  ['a Node that keeps none', 1000, false],
] as const)('but not for %s', (_, uid, hasCache) => {
  expect(start(uid, hasCache)).toMatchObject({ status: 0, stderr: '' });
});

test('no script runs when the package is installed', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  expect(Object.keys(scripts).filter((name) => /^(?:pre|post)?install$/.test(name))).toEqual([]);
});
