import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { run } from '../../src/programs/run-program.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-run-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test.runIf(process.platform !== 'win32')('runs no program of the folder that kpc is in', () => {
  const tool = join(scratch, 'kpc-no-such-tool');
  writeFileSync(tool, '#!/bin/sh\necho ran\n');
  chmodSync(tool, 0o755);
  const before = process.cwd();
  process.chdir(scratch);
  try {
    for (const PATH of ['.', '', ':/bin', undefined]) {
      const limits = { environment: { PATH }, mostBytes: 100, longestRun: 10_000 };
      expect(run(['kpc-no-such-tool'], limits)).toMatchObject({ problem: 'no-program' });
    }
  } finally {
    process.chdir(before);
  }
});
