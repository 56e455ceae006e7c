import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareEndpoints } from '../../src/cluster/endpoints.ts';
import type { Endpoint } from '../../src/cluster/model.ts';
import { joinHostPort, parseAddress } from '../../src/kernel/address.ts';

function endpoint(text: string, port: number): Endpoint {
  const address = parseAddress(text);
  if (!address) throw new Error(`${text} is no address`);
  const label = joinHostPort(address.text, port);
  return {
    address,
    port,
    label,
    status: {
      nodeName: undefined,
      zone: undefined,
      ready: true,
      serving: true,
      terminating: false,
      zoneHints: [],
      nodeHints: [],
    },
  };
}

/** Bytes whose texts begin with each other are where orders of text and of numbers differ. */
const byte = fc.oneof(fc.constantFrom(0, 1, 2, 10, 11, 100, 101, 19, 199, 25, 255), fc.integer({ min: 0, max: 255 }));
const ipv4 = fc.tuple(byte, byte, byte, byte).map((bytes) => bytes.join('.'));
const port = fc.constantFrom(8, 80, 81, 443, 8080, 65535);

describe('the order of endpoints', () => {
  test('is that of their labels as text', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.tuple(ipv4, ipv4), fc.tuple(fc.ipV6(), fc.ipV6())),
        port,
        port,
        ([a, b], first, second) => {
          const [x, y] = [endpoint(a, first), endpoint(b, second)];
          fc.pre(x.address.family === y.address.family);
          const expected = x.label < y.label ? -1 : x.label > y.label ? 1 : 0;
          expect(Math.sign(compareEndpoints(x, y))).toBe(expected);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('puts 10.0.0.10 before 10.0.0.1, whose colon comes after all digits', () => {
    const texts = ['10.0.0.2', '10.0.0.1', '10.0.0.10', '9.0.0.1', '10.0.10.1', '10.0.1.1'];
    const sorted = texts.map((text) => endpoint(text, 80)).toSorted(compareEndpoints);
    expect(sorted.map(({ address }) => address.text)).toEqual([
      '10.0.0.10',
      '10.0.0.1',
      '10.0.0.2',
      '10.0.1.1',
      '10.0.10.1',
      '9.0.0.1',
    ]);
  });
});
