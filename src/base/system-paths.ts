import { existsSync } from 'node:fs';
import { delimiter, isAbsolute, sep } from 'node:path';

/** Whether paths are those of Windows. */
export function isWindows(separator: string = sep): boolean {
  return separator === '\\';
}

/**
 * The path with `/` between its parts, which Windows takes too: messages, kpc.yaml and reports for other programs then name a
 * file alike on all systems. Elsewhere, `\` may be a part of a name, and stays.
 */
export function withSlashes(path: string, separator: string = sep): string {
  return isWindows(separator) ? path.replaceAll('\\', '/') : path;
}

/** Whether the path begins with a drive of Windows, such as `C:\`. */
export function hasDrive(path: string, separator: string = sep): boolean {
  return isWindows(separator) && /^[A-Za-z]:[\\/]/.test(path);
}

/** Where Linux has a link to each file that a process has open. */
export const descriptors = '/proc/self/fd';

/** Whether there are those links. On Windows any user may make a folder of that name, so it is not looked for. */
export function hasDescriptors(separator: string = sep): boolean {
  return !isWindows(separator) && existsSync(descriptors);
}

/** A path of an open file or folder that goes by its descriptor, wherever its name leads by now; undefined where there is no /proc. */
export function pathOfDescriptor(descriptor: number, separator: string = sep): string | undefined {
  return hasDescriptors(separator) ? `${descriptors}/${descriptor}` : undefined;
}

/**
 * The folders of a PATH that are the same wherever the process is. In an empty or a relative one, another user, or a repository, may
 * have put a program.
 */
export function absoluteFolders(path = ''): readonly string[] {
  return path.split(delimiter).filter((folder) => isAbsolute(folder));
}
