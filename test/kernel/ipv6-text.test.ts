import { isIPv6 } from 'node:net';
import * as fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { expect, test } from 'vitest';
import { parseAddress, parseNetwork } from '../../src/kernel/address.ts';
import { rounds } from '../support/rounds.ts';

const hexGroup = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('0', '1', 'fd00', '2001', 'DB8', '00a', '0000') },
  fc.integer({ min: 0, max: 0xffff }).map((group) => group.toString(16)),
  fc.constantFrom('', '10000', 'g', '1.2.3.4', ' 1', '-1'),
);

/** Texts that look like addresses: with too many groups or too few, more than one "::", or what is no digit. */
const text = fc.oneof(
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

test('Node and ipaddr.js take the same texts for IPv6 addresses, and for the same ones', () => {
  fc.assert(
    fc.property(text, (written) => {
      const address = parseAddress(written);
      // Zeros before the digits, which Kubernetes reads, are an error to Node.
      const plain = written.replace(/(^|:)0+(?=[\da-f]+(?::|$))/gi, '$1');
      if (!isIPv6(plain)) {
        expect(address?.family, written).not.toBe('ipv6');
        return;
      }
      if (written.includes('.')) return;
      const { parts } = ipaddr.IPv6.parse(plain);
      if (address?.family !== 'ipv6') expect(address?.text, written).toBe(ipaddr.process(plain).toString());
      else expect(address.groups, written).toEqual(parts);
    }),
    { numRuns: rounds(3000) },
  );
});

test('an IPv6 address is written as RFC 5952 has it, and reads back', () => {
  fc.assert(
    fc.property(groups, fc.integer({ min: 0, max: 128 }), (parts, length) => {
      const library = new ipaddr.IPv6(parts);
      const address = parseAddress(library.toNormalizedString());
      if (address?.family !== 'ipv6') {
        expect(library.isIPv4MappedAddress()).toBe(true);
        return;
      }
      expect(address.text).toBe(library.toRFC5952String());
      expect(parseAddress(address.text)).toEqual(address);
      const network = parseNetwork(`${address.text}/${length}`);
      expect(network && parseNetwork(network.text)).toEqual(network);
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
])('%s is %s', (written, canonical) => {
  expect(parseAddress(written)?.text).toBe(canonical);
});

test.each(['', ':', ':::', '1:', ':1', '1:::2', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8::'])(
  '"%s" is no address',
  (written) => {
    expect(parseAddress(written)).toBeUndefined();
  },
);
