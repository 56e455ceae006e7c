import { expect, test } from 'vitest';
import type { RouteQuestion } from '../../src/kernel/route/route.ts';
import type { Flow } from '../../src/packet/flow.ts';
import { checkReverse, passesReverse } from '../../src/packet/way-back.ts';
import { readAddress } from './lab.ts';

/** A packet of eth0 that has a mark, and what is asked of the routes back to its sender: all of them lead by eth0. */
function marked() {
  const asked: RouteQuestion[] = [];
  const routing = {
    isListed: true,
    isLocal: () => false,
    sysctl: (name: string) => (name.endsWith('.rp_filter') ? '1' : '0'),
    find: (question: RouteQuestion) => {
      asked.push(question);
      return { kind: 'out', hops: [{ link: 'eth0' }] };
    },
  };
  const [source, destination] = [readAddress('192.0.2.9'), readAddress('10.0.0.1')];
  const packet = { family: 'ipv4', protocol: 'tcp', source, destination, sourcePort: 50_000, port: 80, mark: 5 };
  return { asked, flow: { ...packet, routing, input: 'eth0', output: '', isOwn: false } as unknown as Flow };
}

test.each([
  [[], 0],
  [['iif'], 0],
  [['mark'], 5],
])('the routes back by %j are asked with mark %i', (options, mark) => {
  const { flow, asked } = marked();
  expect(passesReverse(flow, options)).toBe(true);
  expect(asked.map((question) => question.mark)).toEqual([mark]);
});

test('the kernel asks for the routes of the answer: by its addresses, and by the ports that it would have', () => {
  const { flow, asked } = marked();
  expect(checkReverse(flow)).toBeUndefined();
  expect(asked).toMatchObject([
    {
      to: { text: '192.0.2.9' },
      from: { text: '10.0.0.1' },
      mark: 0,
      transport: { port: { first: 50_000, last: 50_000 }, sourcePort: { first: 80, last: 80 } },
    },
  ]);
});
