// Finds the empty side of a comparison, such as the old side if a folder is new. The other side must not be empty.
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { type openTrees, repositoryPaths, revisionOf } from '../../git/revision-paths.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { disk, type FileTree } from '../../input/files/file-tree.ts';
import { listFolder } from '../../input/files/list-files.ts';
import type { Recognised } from '../open/stored-side.ts';

interface NamedPath {
  readonly name: string;
  readonly found: Pick<Recognised, 'kind'>;
}

/**
 * Returns a note for a side that is empty: a path that only the other side has, or a folder without manifests. A path that neither side has
 * is no side of a comparison.
 */
export function findEmptySides(
  [from, to]: readonly [NamedPath, NamedPath],
  { trees, faults }: Awaited<ReturnType<typeof openTrees>>,
  exclude: readonly string[] = [],
): ReadonlyMap<NamedPath, Finding> {
  const pathOf = repositoryPaths();
  const isOfOnePath = pathOf(from.name) === pathOf(to.name);
  const isEmpty = ({ name, found: { kind } }: NamedPath): boolean => {
    if (kind !== 'manifests' || name === '-' || faults.has(name)) return false;
    const tree = trees.get(name) ?? disk;
    return tree.exists(name) ? isFolderWithout(name, exclude, tree) : isOfOnePath;
  };
  const empty = [from, to].filter(isEmpty);
  return new Map(empty.length > 1 ? [] : empty.map((side) => [side, noteOn(side.name, trees.get(side.name) ?? disk)]));
}

/** Returns the text that an empty side is read as. */
export function emptyText(name: string): TextFile {
  return new TextFile(name, '{ apiVersion: v1, kind: List, items: [] }');
}

function isFolderWithout(path: string, exclude: readonly string[], tree: FileTree): boolean {
  return tree.isFolder(path) && listFolder(path, exclude, tree).files.length === 0;
}

function noteOn(name: string, tree: FileTree): Finding {
  return diagnose('reading', { problem: 'empty-side', name, revision: revisionOf(name), isFolder: tree.exists(name) });
}
