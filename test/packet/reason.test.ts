import { describe, expect, test } from 'vitest';
import { all, allOf, negateIf, someOf, type Maybe } from '../../src/packet/reason.ts';

const asGiven = (one: Maybe<string>): Maybe<string> => one;

describe('answers that may be unknown', () => {
  test.each([
    { items: [], all: true, some: false },
    { items: [true, 'a', true, 'b'], all: 'a', some: true },
    { items: ['a', true, false], all: false, some: true },
    { items: ['a', false, 'b'], all: false, some: 'a' },
  ])('$items', ({ items, all: every, some }) => {
    expect(allOf(items, asGiven)).toBe(every);
    expect(someOf(items, asGiven)).toBe(some);
    expect(all(...items)).toBe(every);
  });

  test('a failure ends the questions', () => {
    const asked: number[] = [];
    const ask = (item: number): boolean => asked.push(item) < 2;
    expect(allOf([1, 2, 3], ask)).toBe(false);
    expect(asked).toEqual([1, 2]);
  });

  test('an unknown stays one, whichever way it is asked', () => {
    expect(negateIf(true, 'a')).toBe('a');
    expect(negateIf(true, false)).toBe(true);
    expect(negateIf(undefined, false)).toBe(false);
  });
});
