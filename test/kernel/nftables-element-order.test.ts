import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAddress, type Address } from '../../src/kernel/address.ts';
import { compareElements, sortElements } from '../../src/kernel/nftables/compare-elements.ts';
import type { Element, Value } from '../../src/kernel/nftables/table.ts';

const addressOf = (text: string): Address => parseAddress(text) as Address;
const value = (text: string): Value => ({ kind: 'address', address: addressOf(text) });
const port = (number: number): Value => ({ kind: 'number', value: number });
const word = (text: string): Value => ({ kind: 'word', text });

/** Few different ones, so that many are the same; the first and last addresses among them. */
const ipv4 = fc.constantFrom('0.0.0.0', '9.0.0.1', '10.0.0.2', '10.0.0.10', '172.16.0.1', '255.255.255.255').map(value);
const ipv6 = fc.constantFrom('::1', 'fd00::2', 'fd00::10', 'ffff::').map(value);
const number = fc.constantFrom(0, 80, 443, 65_535).map(port);
const protocol = fc.constantFrom('tcp', 'udp').map(word);
const name = fc.constantFrom('eth0', 'eth1').map(word);

/** Keys of one set, or of a set that no tool would make. */
const keys = fc.oneof(
  ...[
    [ipv4],
    [ipv6],
    [number],
    [ipv4, protocol, number],
    [protocol, number],
    [name],
    [fc.oneof(ipv4, ipv6, number, name)],
  ].map((parts) => fc.array(fc.tuple(...parts), { maxLength: 40 })),
);

/** With a comment that tells elements of one key from each other. */
const elementsOf = (all: readonly (readonly Value[])[]): Element[] =>
  all.map((key, i) => ({ key, comment: String(i) }));

describe('the elements of a set, sorted', () => {
  test('stand as comparing one with another puts them, those of one key in the order in which they came', () => {
    fc.assert(
      fc.property(keys, (all) => {
        const elements = elementsOf(all);
        expect(sortElements(elements)).toEqual(elements.toSorted(compareElements));
      }),
    );
  });

  test('stay as they were given in the list that was given', () => {
    const elements = elementsOf([[value('10.0.0.2')], [value('10.0.0.1')]]);
    const before = [...elements];
    sortElements(elements);
    expect(elements).toEqual(before);
  });
});
