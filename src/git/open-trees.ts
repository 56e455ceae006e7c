import { existsSync } from 'node:fs';
import { diagnose, placeAtLine, type Finding } from '../base/findings/finding.ts';
import type { FileTree } from '../input/files/file-tree.ts';
import { revisionOf } from './revision-path.ts';

/** The trees of the paths that are in a revision, and why others cannot be read. */
export interface OpenTrees {
  readonly trees: ReadonlyMap<string, FileTree>;
  readonly faults: ReadonlyMap<string, Finding>;
}

/** Opens the revision of each path that is REVISION:PATH; those of one revision share it. */
export async function openTrees(paths: readonly string[]): Promise<OpenTrees> {
  const trees = new Map<string, FileTree>();
  const faults = new Map<string, Finding>();
  const revisions = new Map<string, FileTree>();
  for (const path of paths) {
    const revision = revisionOf(path);
    if (revision === undefined) {
      if (await isBareRevision(path)) {
        faults.set(path, diagnose('unreadable-file', { problem: 'whole-revision', revision: path }, placeAtLine(path)));
      }
      continue;
    }
    // Only those who compare revisions pay for starting other programs.
    const { openRevision } = await import('./open-revision.ts');
    const opened = revisions.get(revision) ?? openRevision(revision);
    if ('problem' in opened) faults.set(path, diagnose('unreadable-file', opened, placeAtLine(path)));
    else {
      revisions.set(revision, opened);
      trees.set(path, opened);
    }
  }
  return { trees, faults };
}

/** Whether a word is no file, and a branch, a tag or a commit. */
async function isBareRevision(word: string): Promise<boolean> {
  if (word === '-' || existsSync(word)) return false;
  const { isRevision } = await import('./open-revision.ts');
  return isRevision(word);
}
