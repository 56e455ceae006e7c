import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countChanges, listKernelChanges, readingOrder } from '../../src/ask/changes/list-changes.ts';
import { findOwners, type Owners } from '../../src/kube-proxy/owners.ts';
import { diffStates, isEmptyDelta, objectKinds } from '../../src/kernel/state.ts';
import { rounds } from '../support/rounds.ts';
import { states } from '../kernel/arbitrary-state.ts';

const all: Owners = {
  ofChain: () => 'ns/svc',
  ofRule: () => 'ns/svc',
  ofEntry: () => 'ns/svc',
  ofServer: () => 'ns/svc',
  ofAddress: () => 'ns/svc',
  ofNftChain: () => 'ns/svc',
  ofNftSet: () => 'ns/svc',
  ofNftElement: () => 'ns/svc',
};

describe('the changes from one state to another', () => {
  test('are the same ones, in the order in which they are read and in which they are made', () => {
    fc.assert(
      fc.property(states, states, (from, to) => {
        const delta = diffStates(from, to);
        const owners = { from: findOwners([from, to]), to: findOwners([to, from]) };
        const texts = (order: typeof objectKinds) =>
          listKernelChanges(delta, owners, order)
            .map((change) => JSON.stringify(change))
            .toSorted();
        expect(texts(objectKinds)).toEqual(texts(readingOrder));
      }),
      { numRuns: rounds(100, 4) },
    );
  });

  test('are counted as they are listed', () => {
    fc.assert(
      fc.property(states, states, (from, to) => {
        const delta = diffStates(from, to);
        const counts = countChanges(delta);
        expect(counts.length === 0).toBe(isEmptyDelta(delta));
        for (const { number } of counts) expect(number).toBeGreaterThan(0);
        const listed = listKernelChanges(delta, { from: all, to: all });
        const numberOf = (object: string, change: string) =>
          listed.filter((each) => each.object === object && each.change === change).length;
        // What has one line each, for every owner.
        const whole = counts.filter(({ object }) => ['virtual server', 'address', 'link', 'set'].includes(object));
        expect(whole).toEqual(whole.map((each) => ({ ...each, number: numberOf(each.object, each.change) })));
      }),
      { numRuns: rounds(100, 4) },
    );
  });
});
