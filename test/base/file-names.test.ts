import { expect, test } from 'vitest';
import { baseName, folderOf, pathBelow } from '../../src/base/names.ts';

test.each([
  ['a/b.yaml', 'b.yaml', 'a'],
  ['b.yaml', 'b.yaml', '.'],
  ['/b.yaml', 'b.yaml', '/'],
  ['./a/', 'a', './a'],
  ['-', '-', '.'],
])('%s is %s in %s', (path, name, folder) => {
  expect(baseName(path)).toBe(name);
  expect(folderOf(path)).toBe(folder);
});

test.each([
  ['a', 'a/b/c.yaml', 'b/c.yaml'],
  ['./a/', 'a/b', 'b'],
  ['.', 'a/b', 'a/b'],
  ['/x', '/x/y', 'y'],
  ['a', 'a', ''],
  ['a', 'ab/c', ''],
  ['a', 'b/c', ''],
  ['.', '../c', ''],
  ['/a', 'a/b', ''],
])('from inside %s, %s reads "%s"', (folder, path, below) => {
  expect(pathBelow(folder, path)).toBe(below);
});
