import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { sortAsGo } from '../../src/cluster/go-sort.ts';

/** Keys, and the indexes in the order that Go 1.26 left them in: sort.Sort by the key alone. */
interface Recorded {
  readonly keys: readonly number[];
  readonly order: readonly number[];
}

const recorded = JSON.parse(
  readFileSync(new URL('unstable-sort.json', import.meta.url), 'utf8'),
) as readonly Recorded[];

test.each(recorded)('equal items end where Go’s sort.Sort leaves them: $keys', ({ keys, order }) => {
  const items = keys.map((key, index) => ({ key, index }));
  const sorted = sortAsGo(items, (a, b) => a.key - b.key);
  expect(sorted.map(({ index }) => index)).toEqual(order);
  // The input is left as it is.
  expect(items.map(({ index }) => index)).toEqual(keys.map((_, index) => index));
});

test('some of the recorded orders are not those of a stable sort', () => {
  const stable = (keys: readonly number[]) =>
    keys
      .map((key, index) => ({ key, index }))
      .toSorted((a, b) => a.key - b.key)
      .map(({ index }) => index);
  const unstable = recorded.filter(({ keys, order }) => stable(keys).join() !== order.join());
  expect(unstable.length).toBeGreaterThan(2);
});
