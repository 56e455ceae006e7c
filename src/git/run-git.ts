import { largestFile } from '../base/read-file.ts';
import { run, type ProgramProblem } from '../programs/run-program.ts';

/** Why git printed nothing that can be used. */
export interface GitFailure {
  readonly problem: ProgramProblem;
  /** What git itself says; '' if it did not run to its end. */
  readonly said: string;
}

/** Reading a tree takes a second in the largest repositories. */
const limits = { mostBytes: largestFile, longestRun: 60_000 };

/**
 * Settings that win over those of the repository, which may be hostile. kpc calls only rev-parse, ls-tree and cat-file, which run
 * no hooks, filters or pagers. What could still run a program is a fetch of objects that a partial clone lacks: no
 * protocol is allowed. A bare repository inside the working tree is not used: a clone can bring one.
 */
const settings = ['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'safe.bareRepository=explicit'];

const environment = {
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_NO_LAZY_FETCH: '1',
  // The revision is what its name says, whatever refs/replace holds.
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_TERMINAL_PROMPT: '0',
  LC_ALL: 'C',
};

/** What git prints in the working folder. */
export function runGit(words: readonly string[], input = ''): Buffer | GitFailure {
  const options = settings.flatMap((each) => ['-c', each]);
  const user = { ...process.env, ...environment };
  const printed = run(['git', '--no-pager', ...options, ...words], { ...limits, input, environment: user }, 1);
  if (Buffer.isBuffer(printed)) return printed;
  const { problem, said } = printed;
  return { problem, said: said.replace(/^(?:fatal|error): /, '') };
}

/** Says why a revision cannot be read. */
export function failureWords({ problem, said }: GitFailure): string {
  const words: Readonly<Record<ProgramProblem, string>> = {
    'no-program': 'the program git is not installed',
    'too-large': 'the revision holds more than kpc reads of one',
    'too-slow': 'git took too long',
    failed: said,
  };
  return words[problem];
}
