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
