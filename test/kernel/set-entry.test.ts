import { describe, expect, test } from 'vitest';
import { parseAddress, parseNetwork } from '../../src/kernel/address.ts';
import { compareEntries, entryKey, formatEntry, isEntryOf, parseEntry } from '../../src/kernel/ipset/set-entry.ts';

describe('an entry of a set', () => {
  test.each([
    ['hash:ip', '10.96.0.1', { address: parseAddress('10.96.0.1') }],
    ['bitmap:port', '30080', { port: 30080 }],
    ['hash:ip,port', '10.96.0.1,sctp:80', { address: parseAddress('10.96.0.1'), protocol: 'SCTP', port: 80 }],
    [
      'hash:ip,port,net',
      'fd00::1,udp:53,fd00::/64',
      { address: parseAddress('fd00::1'), protocol: 'UDP', port: 53, source: parseNetwork('fd00::/64') },
    ],
    ['hash:net', '10.0.0.0/8', { network: parseNetwork('10.0.0.0/8') }],
  ])('of %s, %s, is read part by part and written the same', (type, text, entry) => {
    expect(parseEntry(text, type)).toEqual(entry);
    expect(formatEntry(parseEntry(text, type))).toBe(text);
  });

  test.each([
    ['list:set', '010.0.0.1'],
    ['list:set', '080'],
    ['bitmap:port', '080'],
    ['bitmap:port', '65536'],
    ['hash:ip,port', '10.0.0.1,udplite:80'],
    ['hash:ip,port', '10.0.0.1,icmp:echo-request'],
    ['hash:ip,port', '10.0.0.1,tcp:080'],
    ['hash:net,iface', '10.0.0.0/8,eth0'],
    ['hash:mac', '00:11:22:33:44:55'],
  ])('of %s that kube-proxy does not make, %s, is kept as it is', (type, text) => {
    expect(parseEntry(text, type)).toEqual({ other: text });
  });

  test('stands by address as a number, port, protocol and source; the widest of networks at one address is first', () => {
    const sorted = [
      '9.0.0.0,tcp:80,10.0.0.0/8',
      '10.0.0.1,tcp:80,10.0.0.0/8',
      '10.0.0.1,tcp:80,10.0.0.0/16',
      '10.0.0.1,tcp:80,10.0.0.0/32',
      '10.0.0.1,tcp:80,10.0.0.0',
      '10.0.0.1,udp:80,10.0.0.0/8',
      '10.0.0.1,tcp:443,9.0.0.0/8',
      'fd00::1,tcp:80,fd00::/64',
      '10.0.0.1,udplite:80,10.0.0.0/8',
    ].map((text) => parseEntry(text, 'hash:ip,port,net'));
    expect(sorted.toReversed().sort(compareEntries)).toEqual(sorted);
  });

  test.each(['10.0.0.1,tcp:80,10.0.0.5', 'fd00::1,tcp:80,fd00::5'])('%s is the network of that one address', (text) => {
    const length = text.includes('::') ? 128 : 32;
    const [bare, long] = [text, `${text}/${length}`].map((each) => parseEntry(each, 'hash:ip,port,net'));
    expect(bare && long && entryKey(bare) === entryKey(long)).toBe(true);
  });

  test.each([
    ['hash:ip', '10.0.0'],
    ['hash:ip,port', '10.0.0.1'],
    ['hash:ip,port', '10.0.0.1,tc'],
    ['hash:ip,port', '10.0.0.1,tcp:'],
    ['hash:ip,port,net', '10.0.0.1,tcp:80'],
    ['hash:ip,port,net', '10.0.0.1,tcp:80,10.0.0.0/'],
    ['bitmap:port', '99999'],
  ])('of %s that is cut off, %s, is none', (type, text) => {
    expect(isEntryOf(type, text)).toBe(false);
  });

  test.each([
    ['hash:ip,port', '10.0.0.1,icmp:echo-request'],
    ['hash:ip,port,net', '10.0.0.1,tcp:80,10.0.0.5'],
    ['hash:net,iface', '10.0.0.0/8,eth0'],
    ['list:set', 'KUBE-CLUSTER-IP'],
    ['hash:mac', '00:11:22:33:44:55'],
    ['hash:ip,mark', '10.0.0.1,0x00000063'],
  ])('of %s that is whole, %s, is one', (type, text) => {
    expect(isEntryOf(type, text)).toBe(true);
  });
});
