export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Reports whether the error is the system's refusal and not a bug of the program. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

/** Codes for a missing file. ESRCH means that a process ended while its /proc files were read. */
export const missing: readonly string[] = ['ENOENT', 'ENOTDIR', 'ESRCH'];

/** Codes for a path that leads nowhere: a missing file, a link loop or too long a name. Reading the path gives the error. */
export const leadsNowhere: readonly string[] = [...missing, 'ELOOP', 'ENAMETOOLONG'];

/** Rewrites an error so that the opened path, and any path below it, appears with the user's name for it. */
export function renameInError(error: unknown, reached: string, named: string): unknown {
  if (!(error instanceof Error) || reached === named) return error;
  // Do not rename in "/proc/self/fd/21" if "/proc/self/fd/2" was opened.
  const rename = (text: string): string =>
    text.split(reached).reduce((before, after) => before + (/^\d/.test(after) ? reached : named) + after);
  error.message = rename(error.message);
  if (isSystemError(error) && error.path !== undefined) error.path = rename(error.path);
  return error;
}
