import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffNftTables, splitNftDelta } from '../../../src/kernel/nftables/nft-delta.ts';
import { applyNftDelta } from '../../support/apply-nft-delta.ts';
import { formatNftDelta } from '../../../src/kernel/nftables/format-delta.ts';
import { formatTables } from '../../../src/kernel/nftables/format.ts';
import { parseNftText } from '../../../src/kernel/nftables/parse-text.ts';
import { rounds } from '../../support/rounds.ts';
import { compiledTables } from './arbitrary-cluster.ts';

describe('compiled tables', () => {
  test('are read back as they were written', () => {
    fc.assert(
      fc.property(compiledTables, (tables) => {
        const text = formatTables(tables);
        const { tables: read, unread } = parseNftText(text);
        expect(unread).toEqual([]);
        expect(formatTables(read)).toBe(text);
        expect(diffNftTables(tables, read)).toEqual([]);
        expect(diffNftTables(read, tables)).toEqual([]);
      }),
      { numRuns: rounds(300) },
    );
  });

  test('have no rule that kpc does not know', () => {
    fc.assert(
      fc.property(compiledTables, (tables) => {
        const { tables: read } = parseNftText(formatTables(tables));
        const expressions = read.flatMap((table) =>
          [...table.chains.values()].flatMap(({ rules }) => rules.flatMap((rule) => rule.expressions)),
        );
        expect(expressions.filter(({ kind }) => kind === 'unknown')).toEqual([]);
      }),
      { numRuns: rounds(100) },
    );
  });
});

describe('a delta of tables', () => {
  test('gives the target when it is applied', () => {
    fc.assert(
      fc.property(compiledTables, compiledTables, (from, to) => {
        const delta = diffNftTables(from, to);
        const result = applyNftDelta(from, delta);
        expect(diffNftTables(result, to)).toEqual([]);
        expect(diffNftTables(to, result)).toEqual([]);
      }),
      { numRuns: rounds(200) },
    );
  });

  test('gives the target in two parts, too', () => {
    fc.assert(
      fc.property(compiledTables, compiledTables, (from, to) => {
        const { additions, removals } = splitNftDelta(diffNftTables(from, to));
        const result = applyNftDelta(applyNftDelta(from, additions), removals);
        expect(diffNftTables(result, to)).toEqual([]);
      }),
      { numRuns: rounds(100) },
    );
  });

  test('is empty between a state and itself, and writes nothing', () => {
    fc.assert(
      fc.property(compiledTables, (tables) => {
        const delta = diffNftTables(tables, parseNftText(formatTables(tables)).tables);
        expect(formatNftDelta(delta)).toBe('');
      }),
      { numRuns: rounds(50) },
    );
  });
});
