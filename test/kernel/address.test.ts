import { describe, expect, test } from 'vitest';
import {
  contains,
  isLinkLocal,
  isLinkLocalMulticast,
  isLoopback,
  parseAddress,
  parseNetwork,
} from '../../src/kernel/address.ts';

describe('what an address is for', () => {
  test.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.255', 'loopback'],
    ['126.255.255.255', 'anything'],
    ['128.0.0.0', 'anything'],
    ['::1', 'loopback'],
    ['::2', 'anything'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['169.254.0.0', 'link-local'],
    ['169.254.255.255', 'link-local'],
    ['169.253.255.255', 'anything'],
    ['169.255.0.0', 'anything'],
    ['fe80::1', 'link-local'],
    ['febf:ffff::1', 'link-local'],
    ['fec0::1', 'anything'],
    ['224.0.0.0', 'link-local multicast'],
    ['224.0.0.255', 'link-local multicast'],
    ['224.0.1.0', 'anything'],
    ['223.255.255.255', 'anything'],
    ['ff02::1', 'link-local multicast'],
    ['ff03::1', 'anything'],
    ['255.255.255.255', 'anything'],
    ['0.0.0.0', 'anything'],
  ])('%s is for %s', (text, use) => {
    const address = parseAddress(text);
    if (!address) throw new Error(`${text} is no address`);
    const uses = [
      ...(isLoopback(address) ? ['loopback'] : []),
      ...(isLinkLocal(address) ? ['link-local'] : []),
      ...(isLinkLocalMulticast(address) ? ['link-local multicast'] : []),
    ];
    expect(uses).toEqual(use === 'anything' ? [] : [use]);
  });
});

describe('addresses are read as ParseIPSloppy reads them', () => {
  test.each([
    ['010.0.0.08', '10.0.0.8'],
    ['0000000000010.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['::ffff:010.0.0.1', '10.0.0.1'],
    // IPv4-compatible is not IPv4-mapped.
    ['::10.0.0.1', '::a00:1'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['FD00:0:0:0:0:0:0:1', 'fd00::1'],
    ['fd00::000001', 'fd00::1'],
    ['10.0.0', undefined],
    ['10.0.0.256', undefined],
    ['::ffff:10.0.0', undefined],
    ['fd00::1%eth0', undefined],
    ['fd00::10000', undefined],
    ['1.2.3.4::', undefined],
  ])('%s is %s', (text, canonical) => {
    expect(parseAddress(text)?.text).toBe(canonical);
  });
});

describe('networks are read as ParseCIDRSloppy reads them', () => {
  test.each([
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['10.0.0.0/008', '10.0.0.0/8'],
    ['fd00::1/64', 'fd00::/64'],
    // The length counts 128 bits, of which the last 32 are IPv4's.
    ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
    ['::ffff:10.1.2.3/96', '0.0.0.0/0'],
    ['::ffff:10.0.0.0/8', '::/8'],
    ['10.0.0.0/33', undefined],
    ['fd00::/129', undefined],
    ['10.0.0.0/-1', undefined],
    ['10.0.0.0', undefined],
  ])('%s is %s', (text, canonical) => {
    expect(parseNetwork(text)?.text).toBe(canonical);
  });

  test('and hold the addresses of their family that begin as they do', () => {
    const holds = (network: string, address: string) => {
      const [a, b] = [parseNetwork(network), parseAddress(address)];
      return a && b && contains(a, b);
    };
    expect(holds('10.0.0.0/8', '10.255.0.1')).toBe(true);
    expect(holds('10.0.0.0/8', '11.0.0.1')).toBe(false);
    expect(holds('fd00::/8', 'fdff::1')).toBe(true);
    expect(holds('fd00::/8', 'fe00::1')).toBe(false);
    expect(holds('::/0', '10.0.0.1')).toBe(false);
  });
});
