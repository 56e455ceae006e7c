export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** `code` is "ENOENT" and so on. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Whether the system refused something: no fault of the program's. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

/** ESRCH: a process whose /proc files were being read has ended. */
export const missing: readonly string[] = ['ENOENT', 'ENOTDIR', 'ESRCH'];

/** A link that leads back to itself, or a name that is too long, leads nowhere; to read it says so. */
export const leadsNowhere: readonly string[] = [...missing, 'ELOOP', 'ENAMETOOLONG'];

/** Makes an error name a file or folder, and what is in it, by another path than the one it was reached by. */
export function renameInError(error: unknown, reached: string, named: string): unknown {
  if (!(error instanceof Error) || reached === named) return error;
  // "/proc/self/fd/2" is no part of "/proc/self/fd/21".
  const rename = (text: string): string =>
    text.split(reached).reduce((before, after) => before + (/^\d/.test(after) ? reached : named) + after);
  error.message = rename(error.message);
  if (isSystemError(error) && error.path !== undefined) error.path = rename(error.path);
  return error;
}
