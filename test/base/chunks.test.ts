import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { encodeChunks } from '../../src/base/chunks.ts';
import { hashHex } from '../../src/base/hash-node.ts';
import { hashHex as hashPure } from '../../src/base/hash-pure.ts';

const mostCharacters = 1 << 20;

describe('encodeChunks', () => {
  test.each([0, 1, mostCharacters - 1, mostCharacters, mostCharacters + 1])(
    'keeps every byte where a character lies across offset %i',
    (offset) => {
      const text = `${'a'.repeat(offset)}😀${'é'.repeat(100)}😀${'b'.repeat(mostCharacters)}`;
      // Each chunk is gone when the next one comes.
      const chunks = Array.from(encodeChunks(text), (chunk) => Buffer.from(chunk));
      expect(Buffer.concat(chunks).equals(Buffer.from(text))).toBe(true);
      expect(chunks.length).toBeGreaterThan(1);
    },
  );

  test('has room for characters of three bytes', () => {
    const text = '中'.repeat(mostCharacters + 1);
    const chunks = Array.from(encodeChunks(text), (chunk) => Buffer.from(chunk));
    expect(Buffer.concat(chunks).equals(Buffer.from(text))).toBe(true);
  });

  test('of nothing are none', () => {
    expect([...encodeChunks('')]).toEqual([]);
    expect([...encodeChunks([])]).toEqual([]);
  });

  test('of pieces are the bytes of the whole text, and so is the hash', () => {
    const pieces = ['a😀', '', '中'.repeat(mostCharacters + 1), 'b'];
    const whole = Buffer.from(pieces.join(''));
    const chunks = Array.from(encodeChunks(pieces), (chunk) => Buffer.from(chunk));
    expect(Buffer.concat(chunks).equals(whole)).toBe(true);
    const expected = createHash('sha256').update(whole).digest('hex');
    expect([hashHex(pieces), hashPure(pieces)]).toEqual([expected, expected]);
  });
});
