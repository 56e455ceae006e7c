import type { FileProblem } from '../base/findings/files.ts';
import { listTree } from './objects.ts';
import { RevisionTree } from './revision-tree.ts';
import { failureWords, runGit } from './run-git.ts';

/** Reads which folders and files a revision of the repository of the working folder has. */
export function openRevision(revision: string): RevisionTree | FileProblem {
  const where = runGit(['rev-parse', '--is-inside-work-tree', '--show-prefix']);
  if ('problem' in where) {
    return where.problem === 'no-program'
      ? { problem: 'no-git' }
      : { problem: 'no-repository', said: failureWords(where) };
  }
  const [isInside, prefix = ''] = where.toString('utf8').split('\n');
  if (isInside !== 'true') return { problem: 'no-repository', said: 'this is no working tree' };
  const tree = findTree(revision);
  if (tree === undefined) {
    const near = findTree(`origin/${revision}`) === undefined ? undefined : `origin/${revision}`;
    return { problem: 'no-revision', revision, near };
  }
  const objects = listTree(tree);
  if ('problem' in objects) return { problem: 'git-failed', said: failureWords(objects) };
  return new RevisionTree(revision, prefix.replace(/\/$/, ''), objects);
}

export function isRevision(word: string): boolean {
  return findTree(word) !== undefined;
}

/** The id of a revision's tree. */
function findTree(revision: string): string | undefined {
  // What begins with a dash is an option, and no name of a branch, a tag or a commit has control characters.
  if (!/^[^-\p{Cc}][^\p{Cc}]{0,250}$/u.test(revision)) return undefined;
  const found = runGit(['rev-parse', '--verify', '--quiet', `${revision}^{tree}`]);
  const id = 'problem' in found ? '' : found.toString('latin1').trim();
  return /^[0-9a-f]{40,64}$/.test(id) ? id : undefined;
}
