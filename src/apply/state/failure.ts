import { hasCode, isSystemError } from '../../bundle/errors.ts';

/** What each code means, for docs/codes.md. */
export const failureMeanings = {
  'bad-bundle': 'a folder is not a bundle that can be applied',
  'bad-state-folder': 'the state folder cannot be trusted, or a file in it is damaged',
  'bad-usage': 'the command line is wrong, or names a folder that cannot be written',
  busy: 'another kpc-apply is running',
  conflict: 'an object to be added exists already, and kpc-apply did not make it',
  'internal-error': 'kpc-apply has a bug',
  interrupted: 'a signal stopped kpc-apply before it was done',
  'not-confirmed': 'the apply was not confirmed in time, and kpc-apply put everything back',
  'not-ready': 'the node lacks what the bundle needs, or another program works on it',
  'not-trusted': 'no key that --trust names signed the bundle, or the node had a newer one',
  'nothing-to-confirm': 'no apply waits for a confirmation',
  'nothing-to-roll-back': 'there is no state to go back to',
  'nothing-to-undo': 'the last command did not change the node, so a rollback has nothing to undo',
  'system-error': 'the operating system refused something',
  'tool-failed': 'a tool that changes the kernel failed',
  'tool-missing': 'a tool that is needed is not installed',
  'unreadable-node': 'the state of the node cannot be read',
  'write-failed': 'a file of the state folder, the lock or a sysctl cannot be written',
  'wrong-result': 'the tools reported success, but the node is not as it should be',
} as const;

/** What a Failure is of. */
export type FailureCode = keyof typeof failureMeanings;

/**
 * Why something could not be done, for people: what happened and what to do about it. `code` is stable, for programs.
 */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly advice: string;
  /** The tool that is at fault, if one is. */
  readonly tool: string | undefined;

  constructor(code: FailureCode, text: string, advice: string, tool?: string) {
    super(text);
    this.name = 'Failure';
    this.code = code;
    this.advice = advice;
    this.tool = tool;
  }
}

/** Any error as a Failure: what the operating system refused, and what was not foreseen. */
export function explainError(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isSystemError(error)) {
    return new Failure('system-error', nameFile(error), adviseOn(error));
  }
  const [text = ''] = String(error).split('\n');
  return new Failure('internal-error', text, 'this is a bug in kpc-apply: report it with this line and the command');
}

/** The system's own words, with the file where they leave it out. */
function nameFile({ message, path }: NodeJS.ErrnoException): string {
  return path === undefined || message.includes(path) ? message : `${message} '${path}'`;
}

function adviseOn(error: NodeJS.ErrnoException): string {
  if (hasCode(error, 'EACCES') || hasCode(error, 'EPERM')) return 'run it as root';
  return hasCode(error, 'ENOSPC') ? 'free some space there, and try again' : 'fix the cause and try again';
}
