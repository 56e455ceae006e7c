import { expect, test } from 'vitest';
import { withLock } from '../../src/apply/state/lock.ts';
import type { Host } from '../../src/apply/node/host.ts';
import { createFakeNode } from './fake-node.ts';

const folder = '/var/lib/kpc';
const stat = (pid: number, started: number) => `${pid} (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${started} 0`;

test('keeps a second one out, and says who is at work', async () => {
  const { host, files } = createFakeNode();
  files.set('/proc/200/stat', stat(200, 9));
  await withLock({ ...host, pid: 200 }, folder, 'apply /etc/kpc/bundle', async () => {
    await expect(withLock(host, folder, 'plan', async () => 1)).rejects.toMatchObject({
      finding: { code: 'busy', arguments: { pid: 200, command: 'apply /etc/kpc/bundle' } },
    });
  });
  expect(await withLock(host, folder, 'plan', async () => 1)).toBe(1);
});

test('lets go where the work fails', async () => {
  const { host, files } = createFakeNode();
  await expect(withLock(host, folder, 'apply', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect([...files.keys()].filter((name) => name.startsWith(folder))).toEqual([]);
});

test('what was done is done, also where the claim cannot be taken away', async () => {
  const { host } = createFakeNode();
  const stuck: Host = { ...host, remove: () => Promise.reject(new Error('EROFS: read-only file system, rm')) };
  expect(await withLock(stuck, folder, 'apply', async () => 1)).toBe(1);
});

test.each([
  ['a process that is gone', { pid: 300, started: '1' }],
  ['another process of the same id', { pid: 200, started: '8' }],
  ['an earlier boot', { pid: 200, started: '9', bootId: 'another' }],
])('is not held up by the claim of %s', async (_, claim) => {
  const { host, files } = createFakeNode();
  files.set('/proc/200/stat', stat(200, 9));
  const bootId = files.get('/proc/sys/kernel/random/boot_id')?.trim();
  files.set(`${folder}/lock/x`, JSON.stringify({ bootId, command: 'apply', ...claim }));
  expect(await withLock(host, folder, 'apply', async () => 1)).toBe(1);
  expect(files.has(`${folder}/lock/x`)).toBe(false);
});

test('is held up by a process of another PID namespace, which it cannot see, but not for ever', async () => {
  const { host, files } = createFakeNode();
  const own: Host = { ...host, readLink: async (path) => (path === '/proc/self/ns/pid' ? 'pid:[1]' : undefined) };
  const bootId = files.get('/proc/sys/kernel/random/boot_id')?.trim();
  const claim = { pid: 7, started: '9', bootId, command: 'watch bundle', since: host.uptime() };
  const lay = (namespace: string) => files.set(`${folder}/lock/x`, JSON.stringify({ ...claim, namespace }));
  lay('pid:[2]');
  await expect(withLock(own, folder, 'apply', async () => 1)).rejects.toMatchObject({ code: 'busy' });
  await host.sleep(11 * 60_000);
  expect(await withLock(own, folder, 'apply', async () => 1)).toBe(1);
  lay('pid:[1]');
  expect(await withLock(own, folder, 'apply', async () => 1)).toBe(1);
});

test('of two that come at once, never both get in', async () => {
  const { host, files } = createFakeNode();
  files.set('/proc/200/stat', stat(200, 9));
  let inside = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++inside);
    await host.sleep(1);
    inside--;
  };
  const both = [withLock(host, folder, 'a', work), withLock({ ...host, pid: 200 }, folder, 'b', work)];
  // Both may give way, and the failure is not seen where it is thrown.
  await Promise.allSettled(both);
  expect(inside).toBe(0);
  expect(most).toBeLessThanOrEqual(1);
});
