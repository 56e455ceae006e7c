import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EndpointStatus } from '../../src/cluster/objects.ts';
import { StatusSharing } from '../../src/cluster/endpoints.ts';

const names = fc.option(fc.constantFrom('a', 'b'), { nil: undefined });
const hints = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 }),
);

const status: fc.Arbitrary<EndpointStatus> = fc.record({
  nodeName: names,
  zone: names,
  ready: fc.boolean(),
  serving: fc.boolean(),
  terminating: fc.boolean(),
  zoneHints: hints,
  nodeHints: hints,
  assumed: fc.constantFrom(undefined, true),
});

test('an endpoint keeps what its status says, whatever came before it', () => {
  fc.assert(
    fc.property(fc.array(status, { maxLength: 30 }), (statuses) => {
      const sharing = new StatusSharing();
      expect(statuses.map((each) => sharing.share(each))).toEqual(statuses);
    }),
  );
});

test('endpoints of one node that say the same share one status', () => {
  const sharing = new StatusSharing();
  const say = (nodeName: string, ready = true): EndpointStatus =>
    sharing.share({
      nodeName,
      zone: 'a',
      ready,
      serving: true,
      terminating: false,
      zoneHints: [],
      nodeHints: [],
    });
  const [first, other, again, changed] = [say('node-1'), say('node-2'), say('node-1'), say('node-1', false)];
  expect(again).toBe(first);
  expect(other).not.toBe(first);
  expect(changed.ready).toBe(false);
});
