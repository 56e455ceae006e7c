import type { FolderProblem } from '../bundle/folder.ts';

/** Why a folder was left alone, for people. */
export function describeFolderProblem(problem: FolderProblem): string {
  switch (problem.kind) {
    case 'io':
      return `cannot write ${problem.folder}: ${problem.reason}`;
    case 'not-a-bundle': {
      const names = problem.strangers.slice(0, 3).join(', ');
      return `${problem.folder} holds what is not of a bundle (${names}) and would be replaced whole: name another folder`;
    }
  }
}
