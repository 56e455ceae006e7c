import { expect, test } from 'vitest';
import { withLock } from '../../src/apply/state/lock.ts';
import { createFakeNode } from './fake-node.ts';

test.each([
  ['/run/kpc-apply/', '/var/lib/kpc', 'run'],
  ['/var/lib/kpc/', '/var/lib/kpc', 'state-folder'],
  ['/run/kpc/', '/run/kpc', 'state-folder'],
])('where %s cannot be written, the advice is about that folder (state folder %s)', async (broken, state, of) => {
  const { host } = createFakeNode();
  const readOnly: typeof host = {
    ...host,
    replaceFile: (path, text) =>
      path.startsWith(broken)
        ? Promise.reject(Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' }))
        : host.replaceFile(path, text),
  };
  await expect(withLock(readOnly, state, 'apply', async () => 1)).rejects.toMatchObject({
    finding: {
      code: 'write-failed',
      arguments: {
        problem: 'lock',
        folder: expect.stringContaining(broken),
        of,
        cause: expect.stringMatching('^EROFS'),
      },
    },
  });
});
