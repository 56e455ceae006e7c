import { expect, test } from 'vitest';
import { writesNewSets } from '../../src/kube-proxy/nft-table.ts';

// The matrix of readers and writers in kubernetes issue 136786.
test.each([
  ['1.0.1', false],
  ['1.0.6', false],
  ['1.0.6.1', true],
  ['1.0.9', false],
  ['1.1.1', false],
  ['1.1.2', true],
  ['1.1.3', true],
  ['1.2', true],
  ['2.0', true],
  ['0.9.8', false],
])('nft %s', (version, wanted) => {
  expect(writesNewSets(version.split('.').map(Number))).toBe(wanted);
});
