// What is larger than a caller reads is not loaded from the repository.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readBlobs } from '../../src/git/run-git.ts';
import { commitAll, git } from '../support/git.ts';
import { writeFolder } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-file-limits-'));
const home = process.cwd();
afterAll(() => {
  process.chdir(home);
  rmSync(scratch, { recursive: true, force: true });
});

test('a blob beyond the limit is not read', () => {
  writeFolder(scratch, { small: 'ab', large: 'abc' });
  commitAll(scratch);
  const ids = ['HEAD:small', 'HEAD:large'].map((name) => git(scratch, 'rev-parse', name).trim());
  process.chdir(scratch);
  expect(readBlobs(ids, 2)).toEqual(
    new Map<unknown, unknown>([
      [ids[1], 'too-large'],
      [ids[0], Buffer.from('ab')],
    ]),
  );
});
