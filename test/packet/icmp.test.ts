import { expect, test } from 'vitest';
import { isEchoMessage } from '../../src/packet/icmp.ts';

test.each([
  ['echo-request', true, false],
  ['8', true, false],
  ['8/0', true, false],
  // No kernel sends a ping with another code.
  ['8/1', false, false],
  ['0/0', false, true],
  ['0/1', false, false],
  ['time-exceeded', false, false],
  ['no-such-type', undefined, undefined],
])('the type %s: of a ping %s, of its answer %s', (type, ofPing, ofAnswer) => {
  const answers = (['first', 'answer'] as const).map((turn) => isEchoMessage(type, { turn, family: 'ipv4' }));
  expect(answers).toEqual([ofPing, ofAnswer]);
});
