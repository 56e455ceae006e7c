import type { Cause, FailureArguments, FailureCode, FailureFault } from '../../base/findings/apply.ts';
import { UnreadableFile, unreadOf, type Unread } from '../../base/unread.ts';
import { describeError, hasCode, isSystemError } from '../../base/system-errors.ts';

export class Failure extends Error {
  readonly finding: FailureFault;

  constructor(
    ...[code, details]: {
      [Code in FailureCode]: [code: Code, details: FailureArguments<Code>];
    }[FailureCode]
  ) {
    super(code);
    this.name = 'Failure';
    this.finding = { code, arguments: details } as FailureFault;
  }

  get code(): FailureCode {
    return this.finding.code;
  }

  get lacksRights(): boolean {
    const { code, arguments: details } = this.finding;
    if (code === 'system-error') return details.problem === 'refused' && details.lacks === 'rights';
    return code === 'unreadable-node' && details.problem === 'failed' && details.isRefused;
  }

  get tool(): string | undefined {
    const { arguments: details } = this.finding;
    return 'tool' in details ? details.tool : undefined;
  }
}

/** Returns the uncaught error that aborted the work; undefined if the operator stopped it. */
export function failureOfSignal(signal: AbortSignal | undefined): Failure | undefined {
  return signal?.reason instanceof Failure ? signal.reason : undefined;
}

export function explainError(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isSystemError(error)) {
    const reason: Unread =
      error instanceof UnreadableFile ? unreadOf(error) : { problem: 'said', said: nameFile(error) };
    return new Failure('system-error', { problem: 'refused', reason, lacks: lackOf(error) });
  }
  const [reason = ''] = String(error).split('\n');
  return new Failure('internal-error', { reason });
}

export function causeOf(error: unknown): Cause {
  return error instanceof Failure || error instanceof UnreadableFile
    ? explainError(error).finding
    : describeError(error);
}

function nameFile({ message, path }: NodeJS.ErrnoException): string {
  return path === undefined || message.includes(path) ? message : `${message} '${path}'`;
}

function lackOf(error: NodeJS.ErrnoException): 'rights' | 'space' | undefined {
  if (hasCode(error, 'EACCES') || hasCode(error, 'EPERM')) return 'rights';
  return hasCode(error, 'ENOSPC') ? 'space' : undefined;
}
