import { describe, expect, test } from 'vitest';
import { isLinkLocal, isLinkLocalMulticast, isLoopback, parseAddress } from '../../src/kernel/address.ts';

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
