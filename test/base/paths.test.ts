import { basename, dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { fileNameOf, folderOf, pathBelow } from '../../src/base/paths.ts';

test.each(['a.yaml', 'x/a.yaml', './x/a.yaml', '/a.yaml', '/x/y/a.yaml', '../a.yaml', '-'])(
  '%s has the name and the folder that Node tells',
  (path) => {
    expect(fileNameOf(path)).toBe(basename(path));
    expect(folderOf(path)).toBe(dirname(path));
  },
);

test.each(['.', 'x', './x/', '/x', '../x', 'x/y', '/'])(
  'from %s to what is in it it is as far as Node tells',
  (folder) => {
    for (const below of ['', 'a.yaml', 'y/a.yaml']) {
      const path = join(folder, below);
      expect(pathBelow(folder, path)).toBe(relative(folder, path));
    }
  },
);

test('what is beside a folder is not below it', () => {
  expect(pathBelow('x/y', 'x/z/a.yaml')).toBe(relative('x/y', 'x/z/a.yaml'));
});
