/** What every command's exit status means (docs/diagnostics.md lists them for users). */
export const exitStatus = {
  /** Done; nothing differs; nothing found. */
  ok: 0,
  /** A difference, or a finding. */
  differs: 1,
  /** Bad input or usage: nothing was written. */
  badInput: 2,
  /** Could not apply, and the node is as it was. */
  notApplied: 3,
  /** Could not apply, nor put everything back. */
  notRestored: 4,
} as const;

/** One of the exit statuses of both programs. */
export type ExitStatus = (typeof exitStatus)[keyof typeof exitStatus];

/** How a command says that it has ended. */
export type Done = (status: ExitStatus) => void;
