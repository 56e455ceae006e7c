import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isInShard, parseShard } from '../../../src/bundle/fleet/shard.ts';

describe('shards', () => {
  test.each([
    ['0/1', { index: 0, count: 1 }],
    ['7/8', { index: 7, count: 8 }],
  ])('%s is a shard', (text, shard) => {
    expect(parseShard(text)).toEqual(shard);
  });

  test.each(['8/8', '1/0', '0/0', '-1/4', '1', '1/', '/4', '1/4/2', '0x1/4', ' 1/4', '1e1/20'])(
    '%j is none',
    (text) => {
      expect(parseShard(text)).toBeUndefined();
    },
  );

  test('each node is in exactly one of N', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 50 }), (name, count) => {
        const shards = Array.from({ length: count }, (_, index) => isInShard(name, { index, count }));
        expect(shards.filter(Boolean)).toHaveLength(1);
      }),
    );
  });

  test('are the same ones in every version of kpc', () => {
    const names = ['node-1', 'node-2', 'node-3', 'ip-10-0-0-1.eu-west-1.compute.internal', 'worker', 'a'];
    const shards = names.map((name) => [0, 1, 2, 3].find((index) => isInShard(name, { index, count: 4 })));
    // The first 32 bits of each name's SHA-256, modulo 4.
    expect(shards).toEqual([2, 3, 2, 2, 2, 2]);
  });

  test('are about as large as one another', () => {
    const sizes = Array.from(
      { length: 8 },
      (_, index) =>
        Array.from({ length: 4000 }, (__, n) => `node-${n}`).filter((name) => isInShard(name, { index, count: 8 }))
          .length,
    );
    for (const size of sizes) expect(Math.abs(size - 500)).toBeLessThan(100);
  });
});
