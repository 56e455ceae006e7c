import { existsSync } from 'node:fs';
import { hasDrive, withSlashes } from '../base/system-paths.ts';
import { isAbsolute, join, relative, resolve } from 'node:path';
import { findRepository, type FileTree } from '../input/files/file-tree.ts';
import { diagnose, placeAtLine, type Finding } from '../base/findings/finding.ts';

/** Returns the revision in REVISION:PATH. Undefined for any other word, and for an existing file. */
export function revisionOf(word: string): string | undefined {
  const [revision] = /^[^:]+(?=:)/.exec(word) ?? [];
  if (revision === undefined || word.startsWith(`${revision}://`) || existsSync(word) || hasDrive(word))
    return undefined;
  return revision;
}

/** Returns a function that finds a file's path in the working folder's repository. The file may be REVISION:PATH. */
export function repositoryPaths(): (file: string) => string | undefined {
  const top = findRepository('.');
  return (file) => {
    if (file === '-') return undefined;
    const revision = revisionOf(file);
    const path = revision === undefined ? file : file.slice(revision.length + 1);
    // As in git, a path in a revision is relative to the top, unless it begins with a dot.
    const full = revision === undefined || /^\.\.?(?:\/|$)/.test(path) ? resolve(path) : join(top, path);
    const below = relative(top, full);
    return withSlashes(below.startsWith('..') || isAbsolute(below) ? full : below);
  };
}

export async function openTrees(paths: readonly string[]) {
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
    // This module is loaded only when a revision is compared, because it starts other programs.
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

/** Reports whether a word is REVISION:PATH for a file or folder. Starts git only if the word may be one. */
export async function isInRevision(word: string): Promise<boolean> {
  if (revisionOf(word) === undefined) return false;
  const { trees } = await openTrees([word]);
  return trees.get(word)?.exists(word) === true;
}

async function isBareRevision(word: string): Promise<boolean> {
  if (word === '-' || existsSync(word)) return false;
  const { isRevision } = await import('./open-revision.ts');
  return isRevision(word);
}
