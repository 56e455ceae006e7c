// The library as a browser runs it: in one file, and with nothing of Node's within reach.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createContext, runInContext } from 'node:vm';
import { build } from 'esbuild';
import { beforeAll, expect, test } from 'vitest';
import { checksModule } from '../../scripts/checks-module.mjs';
import { codesModule } from '../../scripts/codes-module.mjs';
import type * as Library from '../../src/library/index.ts';
import { listFixtures } from '../support/fixtures.ts';
import { rounds, triesAll } from '../support/rounds.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { optionsOf } from './fixture-options.ts';

const library = (await import(join(projectFolder, 'dist', 'index.js'))) as typeof Library;

/** What scripts get of a browser; the language's own globals are in every context. */
const browserGlobals = { TextEncoder, TextDecoder };

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: projectFolder, loader: 'ts' },
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    globalName: 'kpc',
    mainFields: ['module', 'main'],
    plugins: [checksModule, codesModule],
    define: { KPC_VERSION: JSON.stringify(library.version) },
    logLevel: 'silent',
  });
  return outputFiles[0]?.text ?? '';
}

const context = createContext({ ...browserGlobals });
let inBrowser: typeof Library;
beforeAll(async () => {
  runInContext(await bundle("export * from './src/library/index.ts';"), context);
  inBrowser = runInContext('kpc', context) as typeof Library;
});

test('nothing of Node is within reach', () => {
  const types = ['process', 'require', 'Buffer', 'setTimeout'].map((name) => `typeof ${name}`).join(' + ');
  expect(runInContext(types, context)).toBe('undefined'.repeat(4));
});

test('a module of Node would be found', async () => {
  await expect(bundle("import { readFileSync } from 'node:fs'; export const x = readFileSync;")).rejects.toThrow(
    /node:fs/,
  );
});

test('exports the same', () => {
  const names = Object.keys(library).filter((name) => !['default', 'module.exports'].includes(name));
  expect(Object.keys(inBrowser).toSorted()).toEqual(names.toSorted());
});

test('compiles every fixture to the same bytes, with the same hashes', () => {
  let compiled = 0;
  for (const fixture of listFixtures().filter((_, i) => triesAll || i % 4 === 0)) {
    const options = optionsOf(fixture);
    if (!options) continue;
    for (const mode of fixture.fails ? [undefined] : fixture.modes) {
      const asked = mode === undefined ? options : { ...options, proxyMode: mode };
      const here = library.compile(asked);
      const there = inBrowser.compile(asked);
      expect(JSON.stringify(there.diagnostics), fixture.name).toBe(JSON.stringify(here.diagnostics));
      expect([...(there.bundle?.files ?? [])], fixture.name).toEqual([...(here.bundle?.files ?? [])]);
      compiled++;
    }
  }
  expect(compiled).toBeGreaterThan(rounds(100));
});

test('reads a bundle back, compares it, and compiles a fleet in shards', () => {
  const name = 'fixtures/cluster/shop.yaml';
  const manifests = [name, 'fixtures/cluster/nodes.yaml'].map((path) => {
    return { name: path, text: readFileSync(join(projectFolder, path), 'utf8') };
  });
  const options = { manifests, proxyMode: 'iptables' as const };
  const nodes = (kpc: typeof Library, shard: string) =>
    [...(kpc.compileFleet({ ...options, shard }).bundles ?? [])].map(({ node }) => node);
  expect(nodes(inBrowser, '0/2')).toEqual(nodes(library, '0/2'));
  const { bundle: compiled } = inBrowser.compile({ ...options, node: 'worker-1' });
  if (!compiled) throw new Error('nothing was compiled');
  const [side] = inBrowser.open(Object.fromEntries(compiled.files), { name: 'stored' }).snapshots;
  if (!side) throw new Error('the bundle cannot be read');
  expect(inBrowser.diff(side, compiled.side).differs).toBe(false);
  expect(inBrowser.formatDiff(side, compiled.side, 'text')).toMatch(
    /^No difference in what could be compared; not compared: the other nodes? \([^)]*\)\.\n$/,
  );
});
