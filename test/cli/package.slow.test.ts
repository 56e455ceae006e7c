import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { copyCheckout, npm, pack, type Packed } from '../support/pack.ts';
import { projectFolder, runProgram } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-package-'));
const home = join(scratch, 'home');
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function hashes(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      // What V8 compiled is of this machine, and not in the package.
      .filter((name) => !name.endsWith('.cache') && statSync(join(folder, name)).isFile())
      .toSorted()
      .map((name) => [
        name,
        createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex'),
      ]),
  );
}

const { bin, name, version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as {
  readonly bin: Readonly<Record<string, string>>;
  readonly name: string;
  readonly version: string;
};

describe('the package', () => {
  let checkout: string;
  let packed: Packed;

  beforeAll(async () => {
    checkout = copyCheckout(join(scratch, 'checkout'));
    mkdirSync(join(checkout, 'dist'));
    // What `npm run build:binary` leaves there.
    writeFileSync(join(checkout, 'dist', 'kpc-apply-linux-x64'), Buffer.alloc(5_000_000, 'binary'));
    packed = await pack(home, checkout);
  });

  test('is built before it is packed, and holds the programs, the examples and nothing that only a checkout needs', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'bin/kpc-apply.js',
        'bin/kpc.js',
        'dist/browser.mjs',
        'dist/index.js',
        'dist/index.mjs',
        'dist/kpc-apply.js',
        'dist/kpc.js',
        'dist/library.js',
        'dist/node.js',
        'dist/package.json',
        'dist/types/library/index.d.ts',
        'dist/types/library/node.d.ts',
        'package.json',
      ]),
    );
    expect(paths.filter((path) => /^(src|test|scripts|fixtures|node_modules|\.)/.test(path))).toEqual([]);
    expect(paths.filter((path) => path.includes('linux'))).toEqual([]);
  });

  test('is small', () => {
    expect(packed.size).toBeLessThan(2_000_000);
  });

  test('installs without a network into an empty prefix, and both programs run from another folder', async () => {
    const prefix = join(scratch, 'prefix');
    const elsewhere = join(scratch, 'elsewhere');
    mkdirSync(elsewhere);
    const installed = await npm(
      home,
      elsewhere,
      'install',
      '--global',
      '--prefix',
      prefix,
      join(checkout, packed.filename),
    );
    expect(installed.status, installed.stderr).toBe(0);
    const run = (program: string, ...args: readonly string[]) =>
      runProgram(join(prefix, 'bin', program), args, {
        cwd: elsewhere,
        env: { PATH: [join(prefix, 'bin'), process.env['PATH']].join(delimiter) },
      });
    for (const program of Object.keys(bin)) {
      expect(await run(program, '--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
    }
    const quickstart = join(projectFolder, 'fixtures', 'quickstart');
    const compiled = await run('kpc', 'compile', '-f', join(quickstart, 'svc.yaml'), '-o', 'bundle');
    expect(compiled.status, compiled.stderr).toBe(0);
    for (const file of readdirSync(join(quickstart, 'expected-ipvs'))) {
      expect(readFileSync(join(elsewhere, 'bundle', file), 'utf8'), file).toBe(
        readFileSync(join(quickstart, 'expected-ipvs', file), 'utf8'),
      );
    }
    const doctor = await run('kpc-apply', 'doctor', join(elsewhere, 'no-bundle'));
    expect(doctor).toMatchObject({ status: 2, stderr: expect.stringContaining('no-bundle') });
    // Nothing but the package itself has come.
    expect(readdirSync(join(prefix, 'lib', 'node_modules'))).toEqual([name]);
    expect(existsSync(join(prefix, 'lib', 'node_modules', name, 'node_modules'))).toBe(false);
  });

  test('is the same bytes when it is packed again, and from another folder', async () => {
    const other = copyCheckout(join(scratch, 'another folder/with a longer name'));
    const again = await pack(home, checkout);
    const elsewhere = await pack(home, other);
    expect(again.integrity).toBe(packed.integrity);
    expect(elsewhere.integrity).toBe(packed.integrity);
    rmSync(join(checkout, 'dist', 'kpc-apply-linux-x64'), { force: true });
    expect(hashes(join(other, 'dist'))).toEqual(hashes(join(checkout, 'dist')));
  });

  test('runs from a checkout: npm link, npm install --global, npx', async () => {
    const clone = copyCheckout(join(scratch, 'clone'));
    expect((await npm(home, clone, 'run', 'prepare')).status).toBe(0);
    const prefix = join(scratch, 'link-prefix');
    const linked = await npm(home, clone, 'install', '--global', '--prefix', prefix, '.');
    expect(linked.status, linked.stderr).toBe(0);
    const run = await runProgram(join(prefix, 'bin', 'kpc'), ['--version'], { cwd: tmpdir() });
    expect(run).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
    const npx = await npm(home, clone, 'exec', '--yes', '--package=.', '--', 'kpc-apply', '--version');
    expect(npx.stdout, npx.stderr).toContain(`${version}\n`);
  });

  test('without what builds it, the build says what to do', async () => {
    const clone = copyCheckout(join(scratch, 'production'));
    rmSync(join(clone, 'node_modules'));
    const run = await npm(home, clone, 'run', 'prepare');
    expect(run.status).not.toBe(0);
    expect(run.stderr).toContain('run "npm ci --include=dev"');
    expect(run.stderr).not.toMatch(/^ +at /m);
    const { status, stderr } = await runProgram(process.execPath, [join(clone, 'bin', 'kpc.js'), 'compile']);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^error: .*dist.kpc\.js is missing\n {2}help: build it with "npm run build"\n$/);
    expect(statSync(join(clone, 'bin', 'kpc.js')).isFile()).toBe(true);
  });
});

describe('the lock file', () => {
  const lock = readFileSync(join(projectFolder, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as {
    readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly resolved?: string }>>;
  };

  test('has the integrity of every package', () => {
    const without = Object.entries(packages).filter(
      ([path, entry]) => path !== '' && !entry.integrity?.startsWith('sha512-'),
    );
    expect(without.map(([path]) => path)).toEqual([]);
  });

  test('names no registry but the public one', () => {
    const hosts = Object.values(packages).flatMap(({ resolved }) =>
      resolved === undefined ? [] : [new URL(resolved).host],
    );
    expect([...new Set(hosts)].filter((host) => host !== 'registry.npmjs.org')).toEqual([]);
    expect(readFileSync(join(projectFolder, '.npmrc'), 'utf8')).not.toMatch(/registry\s*=|_auth/);
  });
});
