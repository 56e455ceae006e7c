import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffNftTables } from '../../../src/kernel/nftables/nft-delta.ts';
import { formatNftDelta } from '../../../src/kernel/nftables/format-delta.ts';
import { formatTables } from '../../../src/kernel/nftables/format.ts';
import { parseNftText } from '../../../src/kernel/nftables/parse-text.ts';
import type { NftTable } from '../../../src/kernel/nftables/table.ts';
import { fixturesFolder, listFixtures } from '../../support/fixtures.ts';
import { compiledTables } from './arbitrary-cluster.ts';
import { inNetwork, whyNoNetwork } from './network.ts';

const missing = whyNoNetwork();

/** The tables as the kernel gave them back. */
function readBack(name: string, { listed }: ReturnType<typeof inNetwork>): readonly NftTable[] {
  const { tables, unread } = parseNftText(listed[`${name}.txt`] ?? '');
  expect(unread).toEqual([]);
  return tables;
}

function expectSame(found: readonly NftTable[], wanted: readonly NftTable[], where?: string): void {
  expect(formatNftDelta(diffNftTables(found, wanted)), where).toBe('');
  expect(formatNftDelta(diffNftTables(wanted, found)), where).toBe('');
}

const results = (names: readonly string[]) => names.map((name) => `${name}.txt`);
const load = (name: string): string => `nft -f ${name}.nft; `;
const list = (name: string): string => `nft list ruleset >${name}.txt; `;

describe.skipIf(missing !== undefined)(`a real kernel${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  const samples = fc.sample(compiledTables, { numRuns: 60, seed: 1136 });

  test('takes what kpc writes, once and again, and lists the same', () => {
    const names = samples.map((_, i) => `load-${i}`);
    const script = names.map((name) => `${load(name)}${load(name)}${list(name)}`).join('');
    const files = Object.fromEntries(samples.map((tables, i) => [`load-${i}.nft`, formatTables(tables)]));
    const outcome = inNetwork(script, files, results(names));
    for (const [i, tables] of samples.entries()) {
      expectSame(readBack(`load-${i}`, outcome), tables);
    }
  });

  test('takes the bundles of all fixtures, and lists what they say', () => {
    const names = listFixtures().flatMap(({ name, modes }) => (modes.includes('nftables') ? [name] : []));
    const texts = names.map((name) =>
      readFileSync(join(fixturesFolder, name, 'expected-nftables', 'nftables.nft'), 'utf8'),
    );
    const script = names.map((name) => `nft flush ruleset; ${load(name)}${list(name)}`).join('');
    const files = Object.fromEntries(names.map((name, i) => [`${name}.nft`, texts[i] ?? '']));
    const outcome = inNetwork(script, files, results(names));
    for (const [i, name] of names.entries()) {
      const wanted = parseNftText(texts[i] ?? '');
      expect(wanted.unread, name).toEqual([]);
      expectSame(readBack(name, outcome), wanted.tables, name);
    }
  });

  test('takes each delta as one transaction', () => {
    const files: Record<string, string> = { 'delta-0.nft': formatTables(samples[0] ?? []) };
    for (const [i, tables] of samples.entries()) {
      if (i > 0) files[`delta-${i}.nft`] = formatNftDelta(diffNftTables(samples[i - 1] ?? [], tables));
    }
    const script = samples.map((_, i) => `${load(`delta-${i}`)}${list(`delta-${i}`)}`).join('');
    const outcome = inNetwork(script, files, results(samples.map((_, i) => `delta-${i}`)));
    for (const [i, tables] of samples.entries()) expectSame(readBack(`delta-${i}`, outcome), tables);
  });
});
