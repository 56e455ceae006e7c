// Files that kustomizations make changes from, whatever they hold.
import { isUtf8 } from 'node:buffer';
import { hashHex } from '#hash';
import { folderOf } from '../../base/names.ts';
import { UnreadableFile } from '../../base/unread.ts';
import type { NamedFile, TextFile } from '../documents/text-file.ts';
import type { FileTree } from './file-tree.ts';
import { pathWordsOf } from './kustomized-fields.ts';
import { isBelow } from './list-files.ts';

/** In bytes, for one file and for all of an input. */
const limits = { one: 2 ** 26, all: 2 ** 29 };

export interface FileInTree {
  readonly file: TextFile;
  readonly tree: FileTree;
}

/**
 * Computes digests of files in or below the folders of kustomizations, because kustomize reads no others. Reads no file twice, and none in
 * `loaded`, which is keyed by real path.
 */
export function readNamedFiles(
  files: readonly FileInTree[],
  loaded: ReadonlyMap<string, TextFile>,
  most = limits,
): readonly NamedFile[] {
  const digests = new Map<string, string | undefined>();
  const named = new Map<string, NamedFile>();
  let left = most.all;
  const digestOf = (path: string, root: string, tree: FileTree): string | undefined => {
    try {
      const bytes = tree.read(path, Math.min(most.one, left), (found) => {
        if (!isBelow(found, root)) throw new UnreadableFile(path, { problem: 'link-outside' });
      });
      left -= bytes.length;
      // Hashes the text, as for a manifest.
      return hashHex(bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1'));
    } catch {
      return undefined;
    }
  };
  for (const { file, tree } of files) {
    const folder = folderOf(file.name);
    const paths = pathWordsOf(file).map((word) => tree.join(folder, word));
    if (paths.length === 0) continue;
    const root = tree.realPath(folder);
    const own = paths.flatMap((path) => {
      if (!tree.exists(path) || tree.isFolder(path)) return [];
      const real = tree.realPath(path);
      return isBelow(real, root) ? [{ path, real }] : [];
    });
    const unread = own.filter(({ real }) => !digests.has(real) && !loaded.has(real));
    const next = unread.map(({ path }) => path);
    if (left > 0) expectReadable(next, tree);
    for (const { path, real } of own) {
      const known = loaded.get(real);
      if (!digests.has(real)) digests.set(real, known ? hashHex(known.text) : digestOf(path, root, tree));
      named.set(path, { name: path, digest: digests.get(real) });
    }
  }
  return [...named.values()];
}

/** Announces the files. If they cannot be read in one go, each is read by itself. */
function expectReadable(paths: readonly string[], tree: FileTree): void {
  try {
    tree.expect(paths);
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
  }
}
