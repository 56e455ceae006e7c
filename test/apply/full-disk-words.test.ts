import { mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { explainError } from '../../src/apply/state/failure.ts';
import { realHost } from '../../src/apply/node/real-host.ts';

test('a full disk is told of with the file that has no room', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'kpc-full-')), 'record.json');
  // What is written first, beside the file, goes to a device that is always full.
  symlinkSync('/dev/full', `${path}.new`);
  const error = await realHost.replaceFile(path, '{}\n').catch(explainError);
  expect(error).toMatchObject({
    code: 'system-error',
    message: `ENOSPC: no space left on device, write '${path}'`,
    advice: 'free some space there, and try again',
  });
});
