import { isIPv6 } from 'node:net';
import * as fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { expect, test } from 'vitest';
import { parseAddress, parseNetwork } from '../../src/kernel/address.ts';
import { rounds } from '../support/rounds.ts';

const hexGroup = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('0', '1', 'fd00', '2001', 'DB8', '00a', '0000') },
  fc.integer({ min: 0, max: 0xffff }).map((group) => group.toString(16)),
  fc.constantFrom('', '10000', 'g', ' 1', '-1'),
);

/** Texts that look like addresses: with too many groups or too few, more than one "::", or what is no digit. */
const written = fc.oneof(
  fc
    .array(fc.tuple(hexGroup, fc.constantFrom(':', ':', ':', ':', '::', ':::', '')), { maxLength: 10 })
    .map((parts) => parts.map(([group, colons]) => group + colons).join('')),
  fc
    .tuple(fc.array(hexGroup, { maxLength: 7 }), fc.array(hexGroup, { maxLength: 7 }))
    .map(([head, tail]) => `${head.join(':')}::${tail.join(':')}`),
  fc.array(hexGroup, { minLength: 7, maxLength: 9 }).map((groups) => groups.join(':')),
);

/** Mostly zeros, so that runs of them are met in any number and length. */
const groups = fc.array(fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 0xffff })), {
  minLength: 8,
  maxLength: 8,
});

/** What ipaddr.js makes of an address: an IPv4-mapped one is one of IPv4. */
function canonical(text: string): string {
  const address = ipaddr.process(text);
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}

test('the texts that Node takes for IPv6 addresses are read, and no others', () => {
  fc.assert(
    fc.property(written, (text) => {
      // Zeros before the digits, which Kubernetes reads, are an error to Node.
      const plain = text.replace(/(^|:)0+(?=[\da-f]+(?::|$))/gi, '$1');
      expect(parseAddress(text)?.text).toBe(isIPv6(plain) ? canonical(plain) : undefined);
    }),
    { numRuns: rounds(3000) },
  );
});

test('an IPv6 address is written as RFC 5952 has it, and reads back', () => {
  fc.assert(
    fc.property(groups, fc.integer({ min: 0, max: 32 }), (parts, length) => {
      const normal = new ipaddr.IPv6(parts).toNormalizedString();
      const address = parseAddress(normal);
      expect(address?.text).toBe(canonical(normal));
      expect(parseAddress(address?.text ?? '')).toEqual(address);
      const network = parseNetwork(`${address?.text}/${length}`);
      expect(parseNetwork(network?.text ?? '')).toEqual(network);
    }),
    { numRuns: rounds(3000) },
  );
});

test.each([
  ['::', '::'],
  ['::1', '::1'],
  ['1::', '1::'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
  ['1:0:0:2:0:0:3:4', '1::2:0:0:3:4'],
  ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
  ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ['FD00:0010::A', 'fd00:10::a'],
  ['fd00:00000010::a', 'fd00:10::a'],
  ['::1.2.3.4', '::102:304'],
  ['::ffff:1.2.3.4', '1.2.3.4'],
  ['::FFFF:102:304', '1.2.3.4'],
])('%s is %s', (text, expected) => {
  expect(parseAddress(text)?.text).toBe(expected);
});

test.each(['', ':', ':::', '1:', ':1', '1:::2', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8::'])(
  '"%s" is no address',
  (text) => {
    expect(parseAddress(text)).toBeUndefined();
  },
);
