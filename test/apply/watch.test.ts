import { expect, test } from 'vitest';
import { createWatch, type SyncResult } from '../../src/apply/watch.ts';
import { createFakeNode } from './fake-node.ts';

/** Runs a watch for a while of its own clock; gives the times of its syncs, in milliseconds from the start. */
async function watchFor(
  milliseconds: number,
  options: { readonly version?: (elapsed: number) => string; readonly sync?: (nth: number) => SyncResult },
): Promise<{ readonly times: readonly number[]; readonly healthy: readonly boolean[] }> {
  const { host } = createFakeNode();
  const start = host.now();
  const times: number[] = [];
  const healthy: boolean[] = [];
  const watch = createWatch({
    host: {
      ...host,
      sleep: async (time) => {
        await host.sleep(time);
        healthy.push(watch.isHealthy());
        if (host.now() - start >= milliseconds) watch.stop();
      },
    },
    syncPeriod: 30_000,
    minSyncPeriod: 1000,
    readVersion: async () => options.version?.(host.now() - start) ?? 'one',
    sync: async () => {
      times.push(host.now() - start);
      return options.sync?.(times.length) ?? 'done';
    },
  });
  await watch.run();
  return { times, healthy };
}

test('syncs at once and then each sync period', async () => {
  expect((await watchFor(95_000, {})).times).toEqual([0, 30_000, 60_000, 90_000]);
});

test('syncs when there is another bundle, but not twice within the minimal period', async () => {
  const changing = await watchFor(4000, { version: (elapsed) => `${Math.floor(elapsed / 500)}` });
  expect(changing.times).toEqual([0, 1000, 2000, 3000, 4000].slice(0, changing.times.length));
  expect(changing.times.length).toBeGreaterThan(3);
  expect((await watchFor(20_000, { version: (elapsed) => (elapsed < 10_000 ? 'a' : 'b') })).times).toEqual([0, 10_000]);
});

test('is healthy while syncs succeed, and for two periods after the last that did', async () => {
  expect(new Set((await watchFor(60_000, {})).healthy)).toEqual(new Set([true]));
  const failing = await watchFor(120_000, { sync: (nth) => (nth === 1 ? 'done' : 'failed') });
  expect(failing.healthy[0]).toBe(true);
  expect(failing.healthy.at(-1)).toBe(false);
  expect(new Set((await watchFor(10_000, { sync: () => 'failed' })).healthy)).toEqual(new Set([false]));
});
