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
