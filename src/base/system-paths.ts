import { existsSync } from 'node:fs';
import { delimiter, isAbsolute, sep } from 'node:path';

export function isWindows(separator: string = sep): boolean {
  return separator === '\\';
}

/** The path with `/`, which Windows accepts too, so that output is alike everywhere. On Linux `\` may be in a name. */
export function withSlashes(path: string, separator: string = sep): string {
  return isWindows(separator) ? path.replaceAll('\\', '/') : path;
}

export function hasDrive(path: string, separator: string = sep): boolean {
  return isWindows(separator) && /^[A-Za-z]:[\\/]/.test(path);
}

/** Where Linux links to each open file of a process. */
export const descriptors = '/proc/self/fd';

/** Whether those links exist. Not looked for on Windows, where any user may make such a folder. */
export function hasDescriptors(separator: string = sep): boolean {
  return !isWindows(separator) && existsSync(descriptors);
}

/** A path of an open file or folder by its descriptor; undefined without /proc. */
export function pathOfDescriptor(descriptor: number, separator: string = sep): string | undefined {
  return hasDescriptors(separator) ? `${descriptors}/${descriptor}` : undefined;
}

/** The absolute folders of a PATH. Another user or a repository may have put a program into an empty or relative entry. */
export function absoluteFolders(path = ''): readonly string[] {
  return path.split(delimiter).filter((folder) => isAbsolute(folder));
}
