import { expect, test } from 'vitest';
import { parseSysctls } from '../../src/kernel/sysctls-and-modules.ts';

test('the lines of one value are no second listing, and another value of a network setting is one', () => {
  const cdrom =
    'dev.cdrom.info = CD-ROM information, Id: cdrom.c 3.20\ndev.cdrom.info = \ndev.cdrom.info = drive name: sr0\n';
  const network = 'net.ipv4.ip_forward = 1\nnet.ipv4.ip_forward = 0\n';
  const { sysctls, again, unread } = parseSysctls(cdrom + network);
  expect([...sysctls]).toEqual([
    ['dev.cdrom.info', 'CD-ROM information, Id: cdrom.c 3.20'],
    ['net.ipv4.ip_forward', '1'],
  ]);
  expect({ again, unread }).toEqual({ again: [['net.ipv4.ip_forward', '0']], unread: [] });
  expect(parseSysctls(`${cdrom}${network}${cdrom}`).again.map(([name]) => name)).toContain('dev.cdrom.info');
});
