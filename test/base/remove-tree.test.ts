import fs, { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { removeTree } from '../../src/base/open-folder.ts';

let scratch: string;
let kept: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'kpc-remove-'));
  kept = join(scratch, 'kept');
  mkdirSync(kept);
  writeFileSync(join(kept, 'file'), '');
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

test('removes a folder with all in it, and nothing that links in it lead to', () => {
  const folder = join(scratch, 'folder');
  mkdirSync(join(folder, 'a/b'), { recursive: true });
  symlinkSync(kept, join(folder, 'a/link'));
  writeFileSync(join(folder, 'a/b/file'), '');
  removeTree(folder);
  removeTree(folder);
  expect(existsSync(folder)).toBe(false);
  expect(readdirSync(kept)).toEqual(['file']);
});

test('follows no link that is put in the place of a folder while it is being removed', () => {
  const folder = join(scratch, 'folder');
  mkdirSync(folder);
  const { unlinkSync } = fs;
  // Another user acts between the call that finds the folder and the one that opens it.
  vi.spyOn(fs, 'unlinkSync').mockImplementation((path) => {
    try {
      unlinkSync(path);
    } finally {
      if (path === folder) {
        renameSync(folder, join(scratch, 'aside'));
        symlinkSync(kept, folder);
      }
    }
  });
  syncBuiltinESMExports();
  expect(() => removeTree(folder)).toThrow('ENOTDIR');
  expect(readdirSync(kept)).toEqual(['file']);
});
