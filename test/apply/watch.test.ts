import { expect, test } from 'vitest';
import { createWatch } from '../../src/apply/change/watch.ts';
import { createFakeNode } from './fake-node.ts';

/** Runs a watch for a while of its own clock; gives the times of its syncs, in milliseconds from the start. */
async function watchFor(
  milliseconds: number,
  options: {
    readonly version?: (elapsed: number) => string;
    readonly sync?: (nth: number) => boolean;
    /** By how much the clock is set a second after the start. */
    readonly setClock?: number;
  },
): Promise<{
  readonly times: readonly number[];
  readonly healthy: readonly boolean[];
}> {
  const { host, setClock } = createFakeNode();
  const start = host.uptime();
  const elapsed = () => host.uptime() - start;
  const times: number[] = [];
  const healthy: boolean[] = [];
  const watch = createWatch({
    host: {
      ...host,
      sleep: async (time) => {
        await host.sleep(time);
        if (elapsed() === 1000) setClock(options.setClock ?? 0);
        healthy.push(watch.isHealthy());
        if (elapsed() >= milliseconds) watch.stop();
      },
    },
    syncPeriod: 30_000,
    minSyncPeriod: 1000,
    readVersion: async () => options.version?.(elapsed()) ?? 'one',
    sync: async () => {
      times.push(elapsed());
      return options.sync?.(times.length) ?? true;
    },
  });
  await watch.run();
  return { times, healthy };
}

test('syncs at once and then each sync period', async () => {
  expect((await watchFor(95_000, {})).times).toEqual([0, 30_000, 60_000, 90_000]);
});

test.each([3_600_000, -3_600_000])('goes on as before where the clock is set by %d ms', async (setClock) => {
  const { times, healthy } = await watchFor(95_000, { setClock });
  expect(times).toEqual([0, 30_000, 60_000, 90_000]);
  expect(new Set(healthy)).toEqual(new Set([true]));
});

test('goes on where the bundle cannot be read for a while', async () => {
  const failAt = (from: number, to: number) => (elapsed: number) => {
    if (elapsed >= from && elapsed < to) throw new Error('EIO: i/o error, read');
    return 'one';
  };
  const meanwhile = await watchFor(40_000, { version: failAt(5000, 8000) });
  expect(meanwhile.times).toEqual([0, 30_000]);
  // Which bundle was synced is not known then, so the first that can be read counts as another.
  const atFirst = await watchFor(40_000, { version: failAt(0, 8000) });
  expect(atFirst.times).toEqual([0, 8000, 38_000]);
});

test('syncs when there is another bundle, but not twice within the minimal period', async () => {
  const changing = await watchFor(4000, { version: (elapsed) => `${Math.floor(elapsed / 500)}` });
  expect(changing.times).toEqual([0, 1000, 2000, 3000, 4000].slice(0, changing.times.length));
  expect(changing.times.length).toBeGreaterThan(3);
  expect((await watchFor(20_000, { version: (elapsed) => (elapsed < 10_000 ? 'a' : 'b') })).times).toEqual([0, 10_000]);
});

test('is healthy while syncs succeed, and for two periods after the last that did', async () => {
  expect(new Set((await watchFor(60_000, {})).healthy)).toEqual(new Set([true]));
  const failing = await watchFor(120_000, { sync: (nth) => nth === 1 });
  expect(failing.healthy[0]).toBe(true);
  expect(failing.healthy.at(-1)).toBe(false);
  expect(new Set((await watchFor(10_000, { sync: () => false })).healthy)).toEqual(new Set([false]));
});
