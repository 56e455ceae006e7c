import { expect, test } from 'vitest';
import { isSameValue } from '../../src/base/json/same-value.ts';

test.each([
  [{ a: 1, b: { c: [1, 2], d: null } }, { b: { d: null, c: [1, 2] }, a: 1 }, true],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [[1, 2], [2, 1], false],
  [{ 0: 1 }, [1], false],
  [{ a: null }, {}, false],
  ['1', 1, false],
])('%j and %j: %s', (one, other, isSame) => {
  expect(isSameValue(one, other)).toBe(isSame);
  expect(isSameValue(other, one)).toBe(isSame);
});
