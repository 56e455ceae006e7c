import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffNftTables, splitNftDelta } from '../../../src/kernel/nftables/nft-delta.ts';
import { formatNftDelta, formatNftStages } from '../../../src/kernel/nftables/format-delta.ts';
import { formatTables } from '../../../src/kernel/nftables/format.ts';
import { parseNftText } from '../../../src/kernel/nftables/parse-text.ts';
import { isLearned, type NftTable } from '../../../src/kernel/nftables/table.ts';
import { compiledTables } from './arbitrary-cluster.ts';
import { inNetwork, whyNoNetwork } from './network.ts';

// A large change is made in several transactions. Only the last of them may change what packets meet.

const least = { chains: 1, characters: 1 };
const missing = whyNoNetwork();
const ipv4 = (tables: readonly NftTable[]) => tables.filter(({ family }) => family === 'ipv4');

/** The inputs for one family's additions. */
function stages(from: readonly NftTable[], to: readonly NftTable[]): readonly string[] {
  return formatNftStages(splitNftDelta(diffNftTables(from, to)).additions, least);
}

function read(text: string): readonly NftTable[] {
  const { tables, unread } = parseNftText(text);
  expect(unread).toEqual([]);
  return tables;
}

/** What packets meet: base chains, all that these lead to by rules and elements, and the elements of sets that rules look up. */
function metByPackets([table]: readonly NftTable[]): readonly NftTable[] {
  if (!table) return [];
  const chains = new Map([...table.chains].filter(([, { base }]) => base));
  const sets = new Map<string, typeof table.sets extends ReadonlyMap<string, infer S> ? S : never>();
  for (const chain of chains.values()) {
    const text = formatTables([{ ...table, sets: new Map(), chains: new Map([[chain.name, chain]]) }]);
    const reach = (words: string) => {
      for (const [, name = ''] of words.matchAll(/(?:jump|goto) ([^\s,]+)/g)) {
        const next = table.chains.get(name);
        if (next) chains.set(name, next);
      }
    };
    reach(text);
    for (const [, name = ''] of text.matchAll(/@(\S+)/g)) {
      const set = table.sets.get(name);
      if (!set || isLearned(set)) continue;
      sets.set(name, set);
      reach(formatTables([{ ...table, chains: new Map(), sets: new Map([[name, set]]) }]));
    }
  }
  return chains.size === 0 ? [] : [{ ...table, chains, sets }];
}

const expectSame = (found: readonly NftTable[], wanted: readonly NftTable[]) =>
  expect(formatNftDelta(diffNftTables(found, wanted))).toBe('');

describe.skipIf(missing !== undefined)(`a real kernel${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  const samples = fc.sample(fc.tuple(compiledTables, compiledTables), { numRuns: 8, seed: 1136 });

  test.each(['from nothing', 'from another state'])('meets the old or the new rules, never a part: %s', (start) => {
    for (const [old, to] of samples) {
      const from = start === 'from nothing' ? [] : ipv4(old);
      const wanted = ipv4(to);
      const inputs = stages(from, wanted);
      const files = Object.fromEntries(inputs.map((input, i) => [`stage-${i}.nft`, input]));
      const names = inputs.map((_, i) => `after-${i}`);
      const script = inputs.map((_, i) => `nft -f stage-${i}.nft; nft list ruleset >after-${i}; `).join('');
      const { listed } = inNetwork(`nft -f old.nft; ${script}`, { ...files, 'old.nft': formatTables(from) }, names);
      for (const name of names.slice(0, -1)) {
        expectSame(metByPackets(read(listed[name] ?? '')), metByPackets(from));
      }
      const end = names.length === 0 ? from : read(listed[names.at(-1) ?? ''] ?? '');
      expectSame(metByPackets(end), metByPackets(wanted));
      // Chains that go are emptied here, and deleted later.
      const left = splitNftDelta(diffNftTables(end, wanted));
      expect(left.removals.every((delta) => delta.kind === 'change-table')).toBe(true);
    }
    expect(samples.some(([, to]) => stages([], ipv4(to)).length > 2)).toBe(true);
  });

  test('takes rules that look up a set which is made anew after it was', () => {
    const table = (timeout: string, chain: string) => `table ip kube-proxy {
	set seen {
		type ipv4_addr
		flags dynamic, timeout
		timeout ${timeout}
	}
	chain first {
		type filter hook input priority 0;
		ip saddr @seen drop
	}
${chain}}
`;
    const [old, wanted] = [
      read(table('3h', '')),
      read(
        table(
          '1h',
          '\tchain one {\n\t\tgoto two\n\t}\n\tchain two {\n\t\tip saddr @seen accept\n\t}\n\tchain three {\n\t\tdrop\n\t}\n',
        ),
      ),
    ];
    const inputs = stages(old, wanted);
    expect(inputs.length).toBeGreaterThan(1);
    const script = inputs.map((_, i) => `nft -f stage-${i}.nft; `).join('');
    const files = Object.fromEntries(inputs.map((input, i) => [`stage-${i}.nft`, input]));
    const { listed } = inNetwork(
      `nft -f old.nft; ${script} nft list ruleset >end`,
      { ...files, 'old.nft': formatTables(old) },
      ['end'],
    );
    expectSame(read(listed['end'] ?? ''), wanted);
  });
});

test('a small change and one in place of a table are one transaction each', () => {
  const [table] = fc.sample(compiledTables, { numRuns: 1, seed: 4 })[0] ?? [];
  const wanted = table ? [table] : [];
  expect(formatNftStages(diffNftTables([], wanted))).toEqual([formatTables(wanted)]);
  const strange = wanted.map((each) => ({ ...each, strange: { heads: ['flags dormant'], text: 'flags dormant' } }));
  expect(formatNftStages(diffNftTables(strange, wanted), least)).toEqual([formatTables(wanted)]);
});

test('no transaction is empty, and each keeps to the limits', () => {
  for (const tables of fc.sample(compiledTables, { numRuns: 20, seed: 5 })) {
    const inputs = formatNftStages(diffNftTables([], ipv4(tables)), least);
    for (const input of inputs) expect(input).not.toBe('');
    for (const input of inputs.slice(1, -1)) expect(input.match(/^\tchain /gm)).toHaveLength(1);
  }
});
