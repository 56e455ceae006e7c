import { isInRevision, repositoryPaths } from '../../git/revision-paths.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { loadFile } from '../../input/files/load-files.ts';
import type { FileTree } from '../../input/files/file-tree.ts';
import { openPaths, type OpenedPaths } from '../../snapshot/files/open.ts';
import { readStoredSide, type SideOptions } from '../../snapshot/files/read-side.ts';
import type { FileOptions } from '../../snapshot/files/read-texts.ts';
import type { Opened, Reading } from '../../snapshot/open/opened.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { TestRun } from '../test.ts';

export { isInRevision, openPaths, repositoryPaths };
export type { FileOptions, FileTree, Opened, OpenedPaths, Reading, SideOptions, Snapshot };

/** By the names that diagnostics give them. */
export type ReadFiles = Reading['files'];

/** The first path that does not hold manifests, and why it cannot be read, if so. */
export async function findOther(paths: readonly string[], node?: string) {
  for (const path of paths) {
    const { kind, diagnostics } = await readStoredSide(path, { node });
    if (kind !== 'manifests') return { path, kind, diagnostics };
  }
  return undefined;
}

/** Reports unreadable files; `stdin` is read for "-". */
export function readTestFiles(
  paths: readonly string[],
  stdin: Parameters<typeof loadFile>[1],
  run: (files: readonly TextFile[]) => TestRun,
) {
  const read = paths.map((path) => loadFile(path, path === '-' ? stdin : undefined));
  const files = read.filter((file) => file instanceof TextFile);
  const made = run(files);
  for (const file of read) if (!(file instanceof TextFile)) made.report(file);
  return { run: made, files: new Map(files.map((file) => [file.name, file])) };
}
