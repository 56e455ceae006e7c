import { closeSync, openSync, readlinkSync } from 'node:fs';
import { delimiter } from 'node:path';
import { describe, expect, test } from 'vitest';
import { absoluteFolders, hasDrive, pathOfDescriptor, withSlashes } from '../../src/base/system-paths.ts';
import { projectFolder } from '../support/run-kpc.ts';

const windows = '\\';

describe('on Windows', () => {
  test('a path has / between its parts, also that of a share', () => {
    expect(withSlashes('C:\\cluster\\services.yaml', windows)).toBe('C:/cluster/services.yaml');
    expect(withSlashes('\\\\server\\share\\a', windows)).toBe('//server/share/a');
  });

  test('a drive is no revision of git', () => {
    expect([hasDrive('C:\\a.yaml', windows), hasDrive('c:/a.yaml', windows)]).toEqual([true, true]);
    expect([hasDrive('main:a.yaml', windows), hasDrive('m:a.yaml', windows)]).toEqual([false, false]);
  });

  test('a folder that is called as that of descriptors on Linux is not looked into', () => {
    expect(pathOfDescriptor(0, windows)).toBeUndefined();
  });
});

describe('elsewhere', () => {
  test('a backslash is a part of a name, and C a revision', () => {
    expect(withSlashes('a\\b.yaml', '/')).toBe('a\\b.yaml');
    expect(hasDrive('C:/a.yaml', '/')).toBe(false);
  });

  test.runIf(process.platform === 'linux')('a descriptor leads to the file', () => {
    const file = openSync(projectFolder, 'r');
    expect(readlinkSync(pathOfDescriptor(file, '/') ?? '')).toBe(projectFolder.replace(/\/$/, ''));
    closeSync(file);
  });
});

test('of a PATH, the folders count that do not depend on where the process is', () => {
  expect(absoluteFolders(['.', '', 'bin', '/opt/bin', '../x', '/bin'].join(delimiter))).toEqual(['/opt/bin', '/bin']);
  expect(absoluteFolders(undefined)).toEqual([]);
});
