import { hasCode, isSystemError } from '../bundle/errors.ts';

/**
 * Why something could not be done, for people: what happened and what to do about it. `code` is stable, for programs.
 */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly advice: string;

  constructor(code: FailureCode, text: string, advice: string) {
    super(text);
    this.name = 'Failure';
    this.code = code;
    this.advice = advice;
  }
}

export type FailureCode =
  | 'bad-bundle'
  | 'bad-state-folder'
  | 'bad-usage'
  | 'busy'
  | 'conflict'
  | 'internal-error'
  | 'interrupted'
  | 'not-confirmed'
  | 'not-ready'
  | 'nothing-to-confirm'
  | 'nothing-to-roll-back'
  | 'system-error'
  | 'tool-failed'
  | 'tool-missing'
  | 'unreadable-node'
  | 'write-failed'
  | 'wrong-result';

/** Any error as a Failure: what the operating system refused, and what was not foreseen. */
export function explainError(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isSystemError(error)) {
    const mayNot = hasCode(error, 'EACCES') || hasCode(error, 'EPERM');
    return new Failure('system-error', error.message, mayNot ? 'run it as root' : 'fix the cause and try again');
  }
  const [text = ''] = String(error).split('\n');
  return new Failure('internal-error', text, 'this is a bug in kpc-apply: report it with this line and the command');
}
