import { expect, test } from 'vitest';
import { parseDuration } from '../../src/base/duration.ts';

test.each([
  ['0', 0],
  ['15m0s', 900],
  ['1.5h', 5400],
  ['-1m30s', -90],
  ['.5ms', 0.0005],
  ['2562047h47m16s', 9_223_372_036],
  // More nanoseconds than an int64 holds.
  ['9223372036854775808ns', undefined],
  ['2562047h47m17s', undefined],
  ['15', undefined],
  ['1 m', undefined],
  ['m', undefined],
  ['', undefined],
])('as Go reads it: %j', (text, seconds) => {
  expect(parseDuration(text)).toEqual(seconds);
});
