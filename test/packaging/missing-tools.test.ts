import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder, runProgram } from '../support/run-kpc.ts';

test('npm run package says at its start all that is missing, and builds nothing', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'kpc-no-tools-'));
  try {
    const build = join(projectFolder, 'packaging', 'build.mjs');
    const env = { PATH: empty };
    const { status, stdout, stderr } = await runProgram(process.execPath, [build, 'x86'], { env });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toBe(
      `error: packages cannot be built here:
  no architecture x86: name x64, arm64, or none for both
  no dpkg-deb: install the package dpkg
  no rpmbuild: install the package rpm
  no tar: install the package tar
  no npm: it comes with Node
  no git: install it, or set SOURCE_DATE_EPOCH
`,
    );
  } finally {
    rmSync(empty, { recursive: true });
  }
});
