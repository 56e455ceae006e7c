import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LongText } from '../../src/kernel/lines.ts';

function together(pieces: readonly string[]): string {
  const text = new LongText();
  for (const piece of pieces) text.add(piece);
  return text.toString();
}

describe('a long text', () => {
  test('is its pieces in their order, however long they are', () => {
    const piece = fc
      .tuple(fc.string({ unit: 'grapheme' }), fc.constantFrom(1, 100, 40_000))
      .map(([text, n]) => text.repeat(n));
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        expect(together(pieces) === pieces.join('')).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('goes on after it was read', () => {
    const text = new LongText();
    text.add('one');
    expect(text.toString()).toBe('one');
    text.add(' two');
    expect(text.toString()).toBe('one two');
  });

  test('is empty without pieces', () => {
    expect(together([])).toBe('');
  });
});
