export const failureCodes = [
  'bad-bundle',
  'bad-state-folder',
  'bad-usage',
  'busy',
  'conflict',
  'internal-error',
  'interrupted',
  'node-too-large',
  'not-confirmed',
  'not-ready',
  'not-trusted',
  'nothing-to-confirm',
  'nothing-to-roll-back',
  'nothing-to-undo',
  'system-error',
  'tool-failed',
  'tool-missing',
  'unreadable-node',
  'write-failed',
  'wrong-result',
] as const;

export type FailureCode = (typeof failureCodes)[number];
