import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { diffNftTables } from '../../src/kernel/nftables/delta.ts';
import { formatNftDelta } from '../../src/kernel/nftables/format-delta.ts';
import { formatTables } from '../../src/kernel/nftables/format.ts';
import { parseNftJson } from '../../src/kernel/nftables/parse-json.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import type { NftTable } from '../../src/kernel/nftables/table.ts';
import { fixturesFolder, listFixtures } from '../support/fixtures.ts';
import { rounds } from '../support/rounds.ts';
import { compiledTables } from './arbitrary-cluster.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-nft-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs a script in a network of its own, with files in its folder. */
function runInNetwork(
  script: string,
  files: Readonly<Record<string, string>>,
): { status: number | null; stderr: string } {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(scratch, name), text);
  const { status, stderr } = spawnSync('unshare', ['--net', 'sh', '-ec', script], { cwd: scratch, encoding: 'utf8' });
  return { status, stderr };
}

/** What this machine lacks; undefined where nothing. */
function findMissing(): string | undefined {
  if (spawnSync('sh', ['-c', 'command -v nft']).status !== 0) return 'no nft here';
  const probe = 'table ip t { chain c { type nat hook postrouting priority 100; fib saddr type local masquerade; }; }';
  const { status, stderr } = runInNetwork(`nft -f probe.nft`, { 'probe.nft': `${probe}\n` });
  return status === 0 ? undefined : `no network with nftables here: ${stderr.trim()}`;
}

const missing = findMissing();

/** The tables as the kernel gives them back. */
function readBack(name: string): { readonly text: readonly NftTable[]; readonly json: readonly NftTable[] } {
  const text = parseNftText(readFileSync(join(scratch, `${name}.txt`), 'utf8'));
  const json = parseNftJson(readFileSync(join(scratch, `${name}.json`), 'utf8'));
  expect([...text.unread, ...json.unread]).toEqual([]);
  return { text: text.tables, json: json.tables };
}

function expectSame(found: readonly NftTable[], wanted: readonly NftTable[]): void {
  expect(formatNftDelta(diffNftTables(found, wanted))).toBe('');
  expect(formatNftDelta(diffNftTables(wanted, found))).toBe('');
}

const load = (name: string): string => `nft -f ${name}.nft; `;
const list = (name: string): string => `nft list ruleset >${name}.txt; nft -j list ruleset >${name}.json; `;

describe.skipIf(missing !== undefined)(`a real kernel${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  const samples = fc.sample(compiledTables, { numRuns: rounds(60), seed: 1136 });

  test('takes what kpc writes, once and again, and lists the same', () => {
    const names = samples.map((_, i) => `load-${i}`);
    const script = names.map((name) => `${load(name)}${load(name)}${list(name)}`).join('');
    const files = Object.fromEntries(samples.map((tables, i) => [`load-${i}.nft`, formatTables(tables)]));
    expect(runInNetwork(script, files)).toEqual({ status: 0, stderr: '' });
    for (const [i, tables] of samples.entries()) {
      const { text, json } = readBack(`load-${i}`);
      expectSame(text, tables);
      expectSame(json, tables);
      expectSame(text, json);
    }
  });

  test.each(listFixtures().filter(({ modes }) => modes.includes('nftables')))(
    'takes the bundle of fixture $name, and lists what it says',
    ({ name }) => {
      const text = readFileSync(join(fixturesFolder, name, 'expected-nftables', 'nftables.nft'), 'utf8');
      const script = `${load('fixture')}${list('fixture')}`;
      expect(runInNetwork(script, { 'fixture.nft': text })).toEqual({ status: 0, stderr: '' });
      const wanted = parseNftText(text);
      const found = readBack('fixture');
      expect(wanted.unread).toEqual([]);
      expectSame(found.text, wanted.tables);
      expectSame(found.json, wanted.tables);
    },
  );

  test('takes each delta as one transaction', () => {
    const files: Record<string, string> = { 'delta-0.nft': formatTables(samples[0] ?? []) };
    for (const [i, tables] of samples.entries()) {
      if (i > 0) files[`delta-${i}.nft`] = formatNftDelta(diffNftTables(samples[i - 1] ?? [], tables));
    }
    const script = samples.map((_, i) => `${load(`delta-${i}`)}${list(`delta-${i}`)}`).join('');
    expect(runInNetwork(script, files)).toEqual({ status: 0, stderr: '' });
    for (const [i, tables] of samples.entries()) expectSame(readBack(`delta-${i}`).json, tables);
  });
});
