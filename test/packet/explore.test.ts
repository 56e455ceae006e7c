import { expect, test } from 'vitest';
import { explore, type Choices } from '../../src/packet/explore.ts';
import type { Way } from '../../src/packet/packet.ts';

const way: Way = {
  probability: 1,
  verdict: 'local',
  endpoint: undefined,
  source: 'masqueraded',
  steps: [],
  reasons: [],
};

/** A packet that meets so many chains one after the other, each with two ways on. */
const fork = (times: number) => (choices: Choices) => {
  for (let i = 0; i < times; i++) {
    choices.enter(() => ({ kind: 'return' }) as never);
    choices.draw([0.5, 0.5]);
  }
  return way;
};

test('all ways are followed, each with its share', () => {
  const ways = explore(fork(3));
  expect(ways.map(({ probability }) => probability)).toEqual(Array.from({ length: 8 }, () => 1 / 8));
});

test('more ways than there are atoms have an end: unknown', () => {
  expect(explore(fork(40))).toMatchObject([{ verdict: 'unknown', reasons: [{ kind: 'too-many-ways' }] }]);
});
