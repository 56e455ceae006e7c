import { existsSync } from 'node:fs';
import { delimiter, isAbsolute, sep } from 'node:path';

export function isWindows(separator: string = sep): boolean {
  return separator === '\\';
}

/**
 * Returns the path with `/`, which Windows also accepts, so that output is the same on all systems. On Linux, `\` may be part of a name.
 */
export function withSlashes(path: string, separator: string = sep): string {
  return isWindows(separator) ? path.replaceAll('\\', '/') : path;
}

export function hasDrive(path: string, separator: string = sep): boolean {
  return isWindows(separator) && /^[A-Za-z]:[\\/]/.test(path);
}

export const descriptors = '/proc/self/fd';

/** Reports whether /proc/self/fd exists. Always false on Windows, where any user can make such a folder. */
export function hasDescriptors(separator: string = sep): boolean {
  return !isWindows(separator) && existsSync(descriptors);
}

export function pathOfDescriptor(descriptor: number, separator: string = sep): string | undefined {
  return hasDescriptors(separator) ? `${descriptors}/${descriptor}` : undefined;
}

/** Returns the absolute folders in a PATH. A repository or another user may have put programs into relative or empty entries. */
export function absoluteFolders(path = ''): readonly string[] {
  return path.split(delimiter).filter((folder) => isAbsolute(folder));
}
