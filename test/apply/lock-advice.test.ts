import { expect, test } from 'vitest';
import { withLock } from '../../src/apply/state/lock.ts';
import { createFakeNode } from './fake-node.ts';

const stateAdvice = 'free some space and make the folder writable, or choose another with --state-dir';

test.each([
  ['/run/kpc-apply/', '/var/lib/kpc', 'run it as root, and make sure that /run is writable'],
  ['/var/lib/kpc/', '/var/lib/kpc', stateAdvice],
  ['/run/kpc/', '/run/kpc', stateAdvice],
])('where %s cannot be written, the advice is about that folder (state folder %s)', async (broken, state, advice) => {
  const { host } = createFakeNode();
  const readOnly: typeof host = {
    ...host,
    replaceFile: (path, text) =>
      path.startsWith(broken)
        ? Promise.reject(Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' }))
        : host.replaceFile(path, text),
  };
  await expect(withLock(readOnly, state, 'apply', async () => 1)).rejects.toMatchObject({
    message: expect.stringMatching(new RegExp(`^cannot take the lock in ${broken}\\S*: EROFS: `)),
    advice,
  });
});
