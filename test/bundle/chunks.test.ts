import { describe, expect, test } from 'vitest';
import { chunksOf } from '../../src/bundle/chunks.ts';

describe('chunksOf', () => {
  test.each([0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])(
    'keeps every byte where a character lies across offset %i',
    (offset) => {
      const text = `${'a'.repeat(offset)}😀${'é'.repeat(100)}😀${'b'.repeat(1 << 20)}`;
      const chunks = [...chunksOf(text)];
      expect(Buffer.concat(chunks.map((chunk) => Buffer.from(chunk))).equals(Buffer.from(text))).toBe(true);
      expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThanOrEqual(1 << 20);
    },
  );

  test('of nothing are none', () => {
    expect([...chunksOf('')]).toEqual([]);
  });
});
