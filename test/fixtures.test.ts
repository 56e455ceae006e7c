import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readFolder } from '../src/bundle/folder.ts';
import { isGoldenFile } from '../src/bundle/golden.ts';
import type { Manifest } from '../src/bundle/manifest.ts';
import { makeBundle } from '../src/bundle/make-bundle.ts';
import type { ProxyMode } from '../src/kube-proxy/modes.ts';
import { compile } from '../src/library/index.ts';
import { loadBundle } from '../src/apply/open/load-bundle.ts';
import { optionsOf } from './library/fixture-options.ts';
import { listFixtures, type Fixture } from './support/fixtures.ts';
import { readGoldenFolder } from './support/golden.ts';
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
        expectKept(out, join(fixture.folder, `expected-${mode}`));
        expectSameText(warnings, warningsFile(fixture, mode));
        await expectSuitsAll(out, fixture, mode);
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

/** The library compiles the same, kpc-apply takes the bundle, and the golden of the same input means it and has all its lines. */
async function expectSuitsAll(bundle: string, fixture: Fixture, mode: ProxyMode): Promise<void> {
  const files = await readFolder(bundle);
  const options = optionsOf(fixture);
  expect(options && compile({ ...options, proxyMode: mode }).bundle?.files).toEqual(files);
  await expect(loadBundle(bundle)).resolves.toBeDefined();
  const golden = `${bundle}-golden`;
  const run = await runKpc([...fixture.args, '--proxy-mode', mode, '--golden', golden], { cwd: fixture.folder });
  expect(run).toMatchObject({ status: 0 });
  const fromGolden = makeBundle((await readGoldenFolder(golden)).snapshot);
  expect(withoutOverride(fromGolden.manifest)).toEqual(withoutOverride(JSON.parse(files.get('manifest.json') ?? '')));
  expect(withoutManifest(fromGolden.files)).toEqual(withoutManifest(files));
  const kept = new Set([...(await readFolder(golden, isGoldenFile)).values()].flatMap(linesOf));
  const tools = [...files].filter(([name]) => !name.endsWith('.json'));
  expect(tools.flatMap(([, text]) => linesOf(text)).filter((line) => !kept.has(line))).toEqual([]);
}

/** A golden names its node alone, whatever named it. */
function withoutOverride({
  settings,
  ...manifest
}: Manifest): Omit<Manifest, 'settings'> & { readonly settings: object } {
  const { hostnameOverride: _, ...others } = settings;
  return { ...manifest, settings: others };
}

/** The manifest of a golden's bundle has its settings in another order. */
function withoutManifest(files: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...files].filter(([name]) => name !== 'manifest.json'));
}

/** The lines of a tool's file that say something, without the names of tables. */
function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '' && line !== 'COMMIT' && !/^(\*|==> )/.test(line));
}

/** What goes to stderr beside a bundle: warnings.txt, or warnings-MODE.txt where the modes differ. */
function warningsFile(fixture: Fixture, mode: string): string {
  const ofMode = join(fixture.folder, `warnings-${mode}.txt`);
  return existsSync(ofMode) ? ofMode : join(fixture.folder, 'warnings.txt');
}

/** What a fixture keeps only if its case is about it. Every other file of a bundle has rules, and is kept. */
const optionalFiles: ReadonlySet<string> = new Set(['manifest.json', 'services.json', 'modules.conf', 'sysctl.conf']);

/** All rules, and what else the fixture keeps: the same files, and in each the same bytes. */
function expectKept(got: string, want: string): void {
  const rules = readdirSync(got).filter((name) => !optionalFiles.has(name));
  if (update) {
    const kept = readdirSync(want).filter((name) => optionalFiles.has(name) && existsSync(join(got, name)));
    rmSync(want, { recursive: true, force: true });
    for (const name of [...rules, ...kept]) cpSync(join(got, name), join(want, name));
  }
  const wanted = readdirSync(want);
  expect(wanted.filter((name) => !optionalFiles.has(name)).toSorted(), 'files with rules').toEqual(rules.toSorted());
  for (const name of wanted) {
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
