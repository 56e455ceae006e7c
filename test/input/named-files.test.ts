import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { disk, type FileTree } from '../../src/input/files/file-tree.ts';
import { readNamedFiles } from '../../src/input/files/load-files.ts';
import { writeFolder } from '../support/write-folder.ts';

const root = mkdtempSync(join(tmpdir(), 'kpc-named-'));
afterAll(() => rmSync(root, { recursive: true }));
writeFolder(join(root, 'in'), { big: '12345678', a: '1234', b: '1234', c: '1234', 'loaded.yaml': '1234' });
writeFolder(root, { secret: '1234' });
symlinkSync('a', join(root, 'in/link'));
symlinkSync('../secret', join(root, 'in/out'));

function readNamed(words: readonly string[], change: Partial<FileTree> = {}) {
  const read: string[] = [];
  const tree: FileTree = {
    ...disk,
    read: (path, ...rest) => {
      const bytes = disk.read(path, ...rest);
      read.push(basename(path));
      return bytes;
    },
    ...change,
  };
  const text = `patches:\n${words.map((path) => `- path: ${path}\n`).join('')}`;
  const file = new TextFile(join(root, 'in/kustomization.yaml'), text);
  const loaded = new Map([[disk.realPath(join(root, 'in/loaded.yaml')), new TextFile('loaded.yaml', '1234')]]);
  const named = readNamedFiles([{ file, tree }], loaded, { one: 6, all: 10 });
  return { read, known: named.map(({ name, digest }) => [basename(name), digest !== undefined]), named };
}

test('a file of several names is read once, and one that was loaded is not', () => {
  const { read, named } = readNamed(['a', './a', 'link', 'loaded.yaml', 'out', '../secret']);
  expect(read).toEqual(['a']);
  expect(named.map(({ name }) => basename(name))).toEqual(['a', 'link', 'loaded.yaml']);
  expect(new Set(named.map(({ digest }) => digest)).size).toBe(1);
});

test('none is read beyond the limit of one file or of all', () => {
  const { read, known } = readNamed(['big', 'a', 'b', 'c']);
  expect(read).toEqual(['a', 'b']);
  expect(known).toEqual([
    ['big', false],
    ['a', true],
    ['b', true],
    ['c', false],
  ]);
});

test('a file that leads elsewhere by the time it is read is not read', () => {
  const { read, known } = readNamed(['out'], { realPath: (path) => path });
  expect({ read, known }).toEqual({ read: [], known: [['out', false]] });
});
