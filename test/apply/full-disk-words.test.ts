import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { runsAsRoot } from '../support/other-user.ts';

test.runIf(runsAsRoot)('a full disk is reported with the file that has no room, and nothing half written stays', () => {
  const script = [
    'mount -t tmpfs -o size=16k tmpfs /mnt',
    'head -c 16k /dev/zero > /mnt/others',
    `${process.execPath} dist/kpc.js bundle pack fixtures/dual-stack/expected-ipvs -o /mnt/node.tgz`,
    'ls -A /mnt',
  ].join('\n');
  const { stdout, stderr } = spawnSync('unshare', ['-m', 'sh', '-c', script], { encoding: 'utf8' });
  expect(stderr).toContain('cannot write /mnt/node.tgz: no space left on device');
  expect(stdout).toBe('others\n');
});
