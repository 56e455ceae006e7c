import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { isatty } from 'node:tty';
import { getSystemErrorMap } from 'node:util';
import { holdPath, type HeldPath } from './held-path.ts';
import { isSystemError, renameInError } from './system-errors.ts';
import { unreadOf, UnreadableFile, type Unread } from './unread.ts';

/** The largest file in bytes, which is the length of V8's longest text. */
export const largestFile = 2 ** 29 - 24;

/** Like unreadOf, but drops the path and the code from the system's message. */
export function shortUnreadOf(error: unknown, named: string): Unread {
  const [, words] = (isSystemError(error) && getSystemErrorMap().get(error.errno ?? 0)) || [];
  return words === undefined ? unreadOf(error, named) : { problem: 'said', said: words };
}

/**
 * Reads a regular file of at most `most` bytes. Refuses any other kind before opening it: a pipe may have no writer, a device may never
 * end, and reading a kernel file may consume a message. Throws an UnreadableFile, or the system's error. `check` gets the file's real path.
 */
export function readRegularFile(path: string, most: number = largestFile, check?: (found: string) => void): Buffer {
  const { file, size } = openRegularFile(path, (held) => {
    if (held.stats.size > most) throw fileTooLarge(path, most);
    check?.(held.realPath());
  });
  try {
    return readAll(file, path, size, most);
  } finally {
    closeSync(file);
  }
}

/**
 * Opens a regular file, and guarantees that it is the file that was checked. The caller closes the descriptor. Throws like readRegularFile.
 */
export function openRegularFile(path: string, check?: (found: HeldPath) => void) {
  const held = holdPath(path);
  try {
    checkKind(path, held.stats);
    check?.(held);
    if (held.isMadeByKernel()) throw new UnreadableFile(path, 'made-by-kernel');
    // Do not wait for a program that holds a lease on the file.
    const file = openSync(held.path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0));
    try {
      // Check the kind again, because without descriptors another file may be here by now.
      checkKind(path, fstatSync(file));
      return { file, size: held.stats.size };
    } catch (error) {
      closeSync(file);
      throw error;
    }
  } catch (error) {
    throw renameInError(error, held.path, path);
  } finally {
    held.close();
  }
}

const largestKernelFile = 2 ** 24;

/** Reads a short file in /proc or /sys. Refuses a long one, which may be another mount. Test: apply/real-networks.slow.test.ts. */
export function readKernelFile(path: string): string {
  const file = openSync(path, constants.O_RDONLY);
  try {
    return readAll(file, path, 0, largestKernelFile).toString('utf8');
  } finally {
    closeSync(file);
  }
}

const handedOver = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/**
 * Bytes read from a shell's pipes, because a command may read its input twice, but a pipe only once. The pipes belong to the process, so
 * one map is enough.
 */
const handedOverBytes = new Map<string, Buffer>();

/** Like readRegularFile, but also reads standard input and `<(command)`, both of any size, and /dev/null. */
export function readNamedFile(path: string, most: number = largestFile): Buffer {
  if (path === '/dev/null') return Buffer.alloc(0);
  if (!handedOver.test(path)) return readRegularFile(path, most);
  const known = handedOverBytes.get(path);
  if (known) return known;
  const file = openSync(path, constants.O_RDONLY);
  try {
    const found = fstatSync(file);
    if (!found.isFIFO() && !found.isSocket() && !isatty(file)) checkKind(path, found);
    const bytes = readAll(file, path, 0, largestFile);
    if (!found.isFile()) handedOverBytes.set(path, bytes);
    return bytes;
  } finally {
    closeSync(file);
  }
}

function checkKind(path: string, found: Stats): void {
  if (found.isFile()) return;
  throw new UnreadableFile(path, { problem: 'kind', is: nameKind(found) });
}

export function nameKind(found: Stats) {
  if (found.isDirectory()) return 'folder';
  if (found.isSymbolicLink()) return 'link';
  if (found.isFIFO()) return 'named pipe';
  return found.isSocket() ? 'socket' : 'device';
}

function fileTooLarge(path: string, most: number): UnreadableFile {
  return new UnreadableFile(path, { problem: 'too-long', of: 'file', most });
}

/** Reads to the end instead of trusting `size`, because a file may grow and a pipe has no size. */
function readAll(file: number, path: string, size: number, most: number): Buffer {
  const full: Buffer[] = [];
  let piece = Buffer.allocUnsafe(size > 0 ? size + 1 : 4000);
  let [total, used] = [0, 0];
  for (;;) {
    if (used === piece.length) {
      full.push(piece);
      piece = Buffer.allocUnsafe(Math.min(Math.max(1 << 16, 2 * used), 1 << 22));
      used = 0;
    }
    const count = readSync(file, piece, used, piece.length - used, null);
    if (count === 0) break;
    used += count;
    total += count;
    if (total > most) throw fileTooLarge(path, most);
  }
  const last = piece.subarray(0, used);
  return full.length === 0 ? last : Buffer.concat([...full, last], total);
}
