import { printable } from '../../base/printable.ts';
import type { FolderProblem } from '../../base/findings/calls.ts';

/** Why a folder was not replaced, and advice. */
export function describeFolderProblem(problem: FolderProblem): readonly [wrong: string, help?: string] {
  switch (problem.kind) {
    case 'io':
      return [`cannot write ${problem.folder}: ${problem.reason}`];
    case 'is-a-bundle':
      return [`${problem.folder} is the bundle of one node`, 'name another folder for the bundles of several nodes'];
    case 'is-a-golden':
      return [`${problem.folder} is a golden, for git`, 'write it with --golden, or name another folder with -o'];
    case 'is-no-golden':
      return [`${problem.folder} is a bundle, for a node`, 'write it with -o, or name another folder with --golden'];
    case 'is-a-file':
      return [`${problem.folder} is a file`, 'name a folder'];
    case 'not-a-bundle': {
      const names = problem.strangers.slice(0, 3).map(printable).join(', ');
      return [
        `${problem.folder} holds files that don't belong to a bundle (${names}) and would be deleted`,
        'name another folder',
      ];
    }
  }
}
