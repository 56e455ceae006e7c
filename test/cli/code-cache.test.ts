import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { kpcProgram, projectFolder, runProgram } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-code-cache-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const install = join(scratch, 'install');
const cache = join(install, 'dist', 'kpc.cache');
const bin = join(install, 'bin', 'kpc.js');
const input = join(projectFolder, 'fixtures', 'quickstart', 'svc.yaml');
const flags = ['compile', '-f', input, '--proxy-mode', 'ipvs'];

/** What V8 says of the cache of the installation. */
const ask = `
  const { readFileSync } = require('node:fs');
  const { compile, digestLength } = require('./bin/load.js');
  const text = readFileSync('dist/kpc.js', 'latin1');
  const data = readFileSync('dist/kpc.cache').subarray(digestLength);
  console.log(compile('dist/kpc.js', text, data).cachedDataRejected);
`;

describe('the compiled code beside an installed program', () => {
  beforeEach(() => {
    rmSync(install, { recursive: true, force: true });
    mkdirSync(join(install, 'dist'), { recursive: true });
    cpSync(join(projectFolder, 'bin'), join(install, 'bin'), { recursive: true });
    copyFileSync(kpcProgram, join(install, 'dist', 'kpc.js'));
    copyFileSync(join(projectFolder, 'dist', 'package.json'), join(install, 'dist', 'package.json'));
    execFileSync(process.execPath, [join(install, 'bin', 'write-cache.js')]);
  });

  const plain = () => runProgram(process.execPath, [kpcProgram, ...flags]);
  const installed = (...nodeFlags: readonly string[]) =>
    runProgram(process.execPath, [...nodeFlags, bin, ...flags], { cwd: scratch });
  const isRejected = (...nodeFlags: readonly string[]) =>
    spawnSync(process.execPath, [...nodeFlags, '-e', ask], { cwd: install, encoding: 'utf8' }).stdout.trim();

  test('V8 takes it, and the result is the same', async () => {
    expect(isRejected()).toBe('false');
    expect(await installed()).toEqual(await plain());
  });

  // The code that V8 compiled has no way to import a module while it runs. The first line that is shown at a terminal alone
  // is the time that a command takes.
  test('imports no module while it runs', () => {
    expect(readFileSync(kpcProgram, 'utf8')).not.toMatch(/\bimport\s*\(/);
  });

  test.skipIf(spawnSync('script', ['-qec', 'true', '/dev/null']).status !== 0)(
    'a user at a terminal gets the same',
    async () => {
      const command = [process.execPath, bin, ...flags].map((word) => `'${word}'`).join(' ');
      const seen = await runProgram('script', ['-qec', command, '/dev/null'], { cwd: scratch });
      expect(seen.status, seen.stdout).toBe(0);
      expect(seen.stdout).toContain('virtual servers');
    },
  );

  test('V8 with other settings does not take it', async () => {
    expect(isRejected('--stack-size=900')).toBe('true');
    expect(await installed('--stack-size=900')).toEqual(await plain());
  });

  test('the code of another program is not run', async () => {
    const program = join(install, 'dist', 'kpc.js');
    const text = readFileSync(program, 'latin1');
    // As long as before: V8 would take the code.
    writeFileSync(program, text.replaceAll('virtual server', 'virtual SERVER'), 'latin1');
    const run = await installed();
    expect(run.status).toBe(0);
    expect(run.stderr).toContain('virtual SERVERs');
  });

  test.each([
    ['nothing', () => Buffer.alloc(0)],
    ['its first half', (whole: Buffer) => whole.subarray(0, whole.length / 2)],
    ['other bytes', (whole: Buffer) => whole.map((byte, i) => (i < 32 ? byte : byte ^ 255))],
    ['one byte changed', (whole: Buffer) => whole.map((byte, i) => (i === whole.length >> 1 ? byte ^ 1 : byte))],
  ])('a file with %s changes nothing', async (_, spoil) => {
    writeFileSync(cache, spoil(readFileSync(cache)));
    expect(await installed()).toEqual(await plain());
  });

  test('an installation without the file runs, and one without the program writes none', async () => {
    rmSync(cache);
    expect(await installed()).toEqual(await plain());
    rmSync(join(install, 'dist'), { recursive: true });
    const { status, stderr } = spawnSync(process.execPath, [join(install, 'bin', 'write-cache.js')], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
