export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Reports whether the system refused something, which is not the program's fault. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

/** ESRCH means that a process ended while its /proc files were read. */
export const missing: readonly string[] = ['ENOENT', 'ENOTDIR', 'ESRCH'];

/** A path with a link loop or too long a name leads nowhere. Reading it gives the error. */
export const leadsNowhere: readonly string[] = [...missing, 'ELOOP', 'ENAMETOOLONG'];

/** Rewrites an error so that a path and what is below it appear under the user's name for the path, not the one that was opened. */
export function renameInError(error: unknown, reached: string, named: string): unknown {
  if (!(error instanceof Error) || reached === named) return error;
  // "/proc/self/fd/2" is not a parent of "/proc/self/fd/21".
  const rename = (text: string): string =>
    text.split(reached).reduce((before, after) => before + (/^\d/.test(after) ? reached : named) + after);
  error.message = rename(error.message);
  if (isSystemError(error) && error.path !== undefined) error.path = rename(error.path);
  return error;
}
