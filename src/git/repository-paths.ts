import { isAbsolute, join, relative, resolve } from 'node:path';
import { withSlashes } from '../base/system-paths.ts';
import { revisionOf } from './revision-path.ts';
import { findRepository } from '../input/files/disk-paths.ts';

/** Returns a function that finds the paths of files in the repository of the working folder, also of REVISION:PATH. */
export function repositoryPaths(): (file: string) => string | undefined {
  const top = findRepository('.');
  return (file) => {
    if (file === '-') return undefined;
    const revision = revisionOf(file);
    const path = revision === undefined ? file : file.slice(revision.length + 1);
    // As git has it, a path of a revision counts from the top, unless it begins with a dot.
    const full = revision === undefined || /^\.\.?(?:\/|$)/.test(path) ? resolve(path) : join(top, path);
    const below = relative(top, full);
    return withSlashes(below.startsWith('..') || isAbsolute(below) ? full : below);
  };
}
