import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { kpcProgram, projectFolder, runKpc, spawnKpc, runProgram } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-program-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const { version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as {
  readonly version: string;
};

describe('the program', () => {
  test.each(['--version', '-V'])('prints its version with %s', async (flag) => {
    expect(await spawnKpc([flag])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('prints help', async () => {
    const { status, stdout, stderr } = await spawnKpc(['--help']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: kpc /);
    expect(stdout).toMatch(/^ {2}compile /m);
    expect((await runKpc(['compile', '--help'])).stdout).toMatch(/^Usage: kpc compile /);
  });

  test('shows the help on stderr where no command is given', async () => {
    const run = await runKpc([]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^Usage: kpc /);
  });

  test.each([
    [['complie'], "unknown command 'complie'", 'did you mean compile?'],
    [['compile', '--ipvs-schedular', 'rr'], "unknown option '--ipvs-schedular'", 'did you mean --ipvs-scheduler?'],
    [['compile', '--print', 'ipvs'], "argument 'ipvs' is invalid", 'ipvsadm'],
    [['compile', '-f'], 'argument missing', ''],
  ])('%j is answered with what would be right', async (args, wrong, right) => {
    const run = await (args[0] === 'complie' ? spawnKpc : runKpc)(args);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(wrong);
    expect(run.stderr).toContain(right);
    expect(run.stderr).not.toMatch(/^ +at /m);
  });

  test('runs from bin/, and through the links that package managers make', async () => {
    const bin = join(projectFolder, 'bin', 'kpc.js');
    const linkToBin = join(scratch, 'kpc');
    const linkToDist = join(scratch, 'kpc-dist');
    symlinkSync(bin, linkToBin);
    symlinkSync(kpcProgram, linkToDist);
    for (const path of [bin, linkToBin, linkToDist]) {
      const run = await runProgram(process.execPath, [path, '--version'], { cwd: scratch });
      expect(run, path).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
    }
    const bad = await runProgram(process.execPath, [bin, 'compile', '-f', 'nothing.yaml'], { cwd: scratch });
    expect(bad).toMatchObject({ status: 2, stdout: '' });
  });

  // What it costs in time is in `npm run bench`.
  test('says its version, through bin/, without loading the program', () => {
    const bin = join(projectFolder, 'bin', 'kpc.js');
    const list = join(scratch, 'list-modules.cjs');
    writeFileSync(list, 'process.on("exit", () => console.error(Object.keys(require.cache).join("\\n")));\n');
    const { stdout, stderr } = spawnSync(process.execPath, ['-r', list, bin, '--version'], { encoding: 'utf8' });
    expect(stdout).toBe(`${version}\n`);
    const loaded = stderr.trim().split('\n');
    expect(loaded).toEqual([list, bin, ...['bin/start.js', 'package.json'].map((file) => join(projectFolder, file))]);
  });
});
