import { expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { withLock } from '../../src/apply/state/lock.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const stat = (pid: number) => `${pid} (node) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${pid} 0`;
const bundle = 'fixtures/dual-stack/expected-ipvs';

test.each(['apply', 'cleanup', 'rollback'])(
  'keeps %s out while another works on the same node with another state folder, and says which',
  async (command) => {
    const { host, files, dump } = createFakeNode();
    files.set('/proc/200/stat', stat(200)).set('/proc/self/ns/net', 'net:[4026531840]');
    const there = dump();
    await withLock({ ...host, pid: 200 }, '/srv/kpc', 'apply /etc/kpc/bundle', async () => {
      const { status, err } = await callApply(host, command, ...(command === 'apply' ? [bundle] : []));
      expect([status, dump()]).toEqual([3, there]);
      expect(err).toMatch(/another kpc-apply is running: process 200, "apply \/etc\/kpc\/bundle" \[busy\]/);
      expect(files.has('/run/kpc-apply/4026531840/200-200')).toBe(true);
    });
    expect([...files.keys()].filter((name) => name.startsWith('/run/kpc-apply/'))).toEqual([]);
  },
);

test('does not keep out who works in another network namespace', async () => {
  const { host, files } = createFakeNode();
  files.set('/proc/200/stat', stat(200));
  const inside = (pid: number, namespace: string): Host => ({
    ...host,
    pid,
    readLink: async (path) => (path === '/proc/self/ns/net' ? namespace : undefined),
  });
  await withLock(inside(200, 'net:[1]'), '/srv/one', 'apply', async () => {
    expect(await withLock(inside(100, 'net:[2]'), '/srv/two', 'apply', async () => 1)).toBe(1);
    await expect(withLock(inside(100, 'net:[1]'), '/srv/two', 'apply', async () => 1)).rejects.toMatchObject({
      code: 'busy',
    });
  });
});

test('a container with a /run of its own is kept out by the state folder that it shares', async () => {
  const { host, files } = createFakeNode();
  files.set('/proc/200/stat', stat(200));
  const ownRun: Host = { ...host, list: async (path) => (path.startsWith('/run/') ? [] : host.list(path)) };
  await withLock({ ...host, pid: 200 }, '/var/lib/kpc', 'watch bundle', async () => {
    await expect(withLock(ownRun, '/var/lib/kpc', 'apply', async () => 1)).rejects.toMatchObject({
      finding: { code: 'busy', arguments: { command: 'watch bundle' } },
    });
  });
});

test.each([
  ['EACCES: permission denied, mkdir', 'EACCES', '/run/', 'run it as root'],
  ['EEXIST: file already exists, mkdir', 'EEXIST', '/run/', 'remove the file that blocks /run/kpc-apply/4026531840'],
  ['it is not a folder', 'ENOTDIR', '/var/lib/kpc', 'remove the file that blocks /var/lib/kpc/lock'],
  ['ENOSPC: no space left on device', 'ENOSPC', '/var/lib/kpc', 'free some space'],
])('says what to do where a claim cannot be laid down: %s', async (message, code, place, advice) => {
  const { host } = createFakeNode();
  const failing: Host = {
    ...host,
    replaceFile: (path, text) =>
      path.startsWith(place)
        ? Promise.reject(Object.assign(new Error(message), { code }))
        : host.replaceFile(path, text),
  };
  const { status, err } = await callApply(failing, 'apply', bundle);
  expect(status).toBe(3);
  expect(err).toContain(`: ${message} [write-failed]\n  help: ${advice}`);
});
