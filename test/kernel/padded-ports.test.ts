// ipvsadm and iptables take a port behind an address with leading zeros, and as a decimal number.
import { describe, expect, test } from 'vitest';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { parseSocketAddress } from '../../src/kernel/ports-and-marks.ts';

describe('a port with leading zeros', () => {
  test.each([
    ['10.0.0.1:080', '10.0.0.1', 80],
    ['[fd00::1]:00080', 'fd00::1', 80],
    ['10.0.0.1:00000', '10.0.0.1', 0],
    ['10.0.0.1:010', '10.0.0.1', 10],
  ])('%s', (text, address, port) => {
    expect(parseSocketAddress(text)).toMatchObject({ address: { text: address }, port });
  });

  test.each(['10.0.0.1:000080', '10.0.0.1:65536', '10.0.0.1:', '10.0.0.1:0x50', '10.0.0.1:+80', '10.0.0.1:８０'])(
    'not %s',
    (text) => {
      expect(parseSocketAddress(text)).toBeUndefined();
    },
  );

  test('of a virtual server and of a real server', () => {
    const { virtualServers, unread } = parseIpvsadm(
      '-A -t 10.0.0.1:080 -s rr\n-a -t 10.0.0.1:80 -r 10.1.0.1:08080 -m -w 1\n',
    );
    expect(unread).toEqual([]);
    expect(virtualServers).toMatchObject([{ port: 80, realServers: [{ port: 8080 }] }]);
  });
});
