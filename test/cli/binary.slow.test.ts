import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { copyCheckout, npm } from '../support/pack.ts';
import { projectFolder, runProgram, type Run } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-binary-test-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const { bin, version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as {
  readonly bin: Readonly<Record<string, string>>;
  readonly version: string;
};

describe.runIf(process.platform === 'linux' && process.arch === 'x64')('npm run build:binary', () => {
  const checkout = join(scratch, 'checkout');
  const programs = join(scratch, 'programs');

  /** Runs a program where there is neither Node nor a package. */
  const run = (program: string, ...args: readonly string[]): Promise<Run> =>
    runProgram(join(programs, `${program}-linux-x64`), args, { cwd: programs, env: { PATH: '' } });

  beforeAll(async () => {
    copyCheckout(checkout);
    const built = await npm(join(scratch, 'home'), checkout, 'run', 'build:binary');
    if (built.status !== 0) throw new Error(built.stderr);
    // Away from the checkout, as on the machine that they are for.
    renameSync(join(checkout, 'dist'), programs);
    rmSync(checkout, { recursive: true });
  });

  test('makes every program of the package, and each runs', async () => {
    expect(readdirSync(programs).toSorted()).toEqual(
      Object.keys(bin)
        .map((program) => `${program}-linux-x64`)
        .toSorted(),
    );
    for (const program of Object.keys(bin)) {
      expect(await run(program, '--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
      expect(await run(program, '--help')).toMatchObject({
        status: 0,
        stdout: expect.stringContaining(`Usage: ${program}`),
      });
    }
  });

  test('makes a kpc that compiles, describes and compares as the package does', async () => {
    const quickstart = join(projectFolder, 'fixtures', 'quickstart');
    const manifests = join(quickstart, 'svc.yaml');
    const compiled = await run('kpc', 'compile', '-f', manifests, '-o', 'bundle');
    expect(compiled.status, compiled.stderr).toBe(0);
    for (const file of readdirSync(join(quickstart, 'expected-ipvs'))) {
      expect(readFileSync(join(programs, 'bundle', file), 'utf8'), file).toBe(
        readFileSync(join(quickstart, 'expected-ipvs', file), 'utf8'),
      );
    }
    expect(await run('kpc', 'diff', 'bundle', manifests)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('No difference') as string,
    });
    expect(await run('kpc', 'describe', '-f', manifests)).toMatchObject({ status: 0, stderr: expect.any(String) });
    expect(await run('kpc', 'compile', '-f', 'nothing.yaml')).toMatchObject({ status: 2 });
  });

  test('makes a kpc-apply that reads bundles', async () => {
    const doctor = await run('kpc-apply', 'doctor', join(programs, 'no-bundle'));
    expect(doctor).toMatchObject({ status: 2, stderr: expect.stringContaining('no-bundle') });
  });
});
