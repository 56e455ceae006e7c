import type { FailureCode } from '../../base/failure-codes.ts';
import { hasCode, isSystemError } from '../../base/system-errors.ts';

/** Why something could not be done, for people, with what to do about it. `code` is stable, for programs. */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly advice: string;
  readonly tool: string | undefined;

  constructor(code: FailureCode, text: string, advice: string, tool?: string) {
    super(text);
    this.name = 'Failure';
    this.code = code;
    this.advice = advice;
    this.tool = tool;
  }
}

/** The uncaught error that aborted the work, if any: an operator's signal gives no reason. */
export function faultOf(signal: AbortSignal | undefined): Failure | undefined {
  return signal?.reason instanceof Failure ? signal.reason : undefined;
}

/** Any error as a Failure: the system's refusals and unforeseen ones. */
export function explainError(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isSystemError(error)) {
    return new Failure('system-error', nameFile(error), adviseOn(error));
  }
  const [text = ''] = String(error).split('\n');
  return new Failure('internal-error', text, 'this is a bug in kpc-apply: report it with this line and the command');
}

/** The system's message, with the file if it leaves that out. */
function nameFile({ message, path }: NodeJS.ErrnoException): string {
  return path === undefined || message.includes(path) ? message : `${message} '${path}'`;
}

function adviseOn(error: NodeJS.ErrnoException): string {
  if (hasCode(error, 'EACCES') || hasCode(error, 'EPERM')) return 'run it as root';
  return hasCode(error, 'ENOSPC') ? 'free some space there, and try again' : 'fix the cause and try again';
}
