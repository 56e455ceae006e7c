import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findChangedLines } from '../../src/base/changed-lines.ts';

/** The new text, made of the old one and what differs. */
function rebuild(old: string, changes: NonNullable<ReturnType<typeof findChangedLines>>): string {
  let made = '';
  let at = 0;
  for (const { at: from, removed, added } of changes) {
    made += old.slice(at, from) + added.map((line) => `${line}\n`).join('');
    at = Math.min(old.length, from + removed.reduce((sum, line) => sum + line.length + 1, 0));
  }
  return made + old.slice(at);
}

const lines = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `line ${from + i}\n`).join('');

describe('what differs between two texts', () => {
  test('is nothing, where they are the same', () => {
    expect(findChangedLines(lines(10_000), lines(10_000))).toEqual([]);
    expect(findChangedLines('', '')).toEqual([]);
  });

  test('is found where lines come, go and change, in texts of any length', () => {
    const old = lines(20_000);
    const now = old
      .replace('line 9000\n', '')
      .replace('line 15000\n', 'other\nand another\n')
      .replace('line 3\n', 'new\nline 3\n');
    expect(findChangedLines(old, now)?.map(({ removed, added }) => [removed, added])).toEqual([
      [[], ['new']],
      [['line 9000'], []],
      [['line 15000'], ['other', 'and another']],
    ]);
  });

  test.each([1, 5, 6, 7, 8, 100, 200])('is found where %i lines go in one place', (count) => {
    const gone = lines(count, 100_000);
    const old = `${lines(500)}${gone}${lines(500, 500)}`;
    const removed = gone.trimEnd().split('\n');
    expect(findChangedLines(old, lines(1000))?.map((change) => change.removed)).toEqual([removed]);
    expect(findChangedLines(lines(1000), old)?.map((change) => change.added)).toEqual([removed]);
  });

  test('says where it stands in both', () => {
    expect(findChangedLines('a\nb\nc\nd\n', 'a\nx\nb\nc\nd\n')).toEqual([
      { at: 2, newAt: 2, removed: [], added: ['x'] },
    ]);
    expect(findChangedLines('a\nb\n', 'a\n')).toEqual([{ at: 2, newAt: 2, removed: ['b'], added: [] }]);
    expect(findChangedLines('a\n', 'a\nb\n')).toEqual([{ at: 2, newAt: 2, removed: [], added: ['b'] }]);
  });

  test('is told of texts that are much alike only', () => {
    expect(findChangedLines(lines(1000), lines(1000, 5000))).toBeUndefined();
  });

  test('leads from one text to the other', () => {
    const word = fc.constantFrom('a', 'b', 'aa', 'ab', '', 'abc');
    const text = fc.array(word, { maxLength: 30 }).map((list) => list.map((line) => `${line}\n`).join(''));
    fc.assert(
      fc.property(text, text, (old, now) => {
        const changes = findChangedLines(old, now);
        expect(changes && rebuild(old, changes)).toBe(now);
      }),
      { numRuns: 2000 },
    );
  });
});
