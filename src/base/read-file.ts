import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { isatty } from 'node:tty';
import { holdPath, type HeldPath } from './held-path.ts';
import { renameInError } from './system-errors.ts';

/** Bytes. V8 has no longer texts. */
export const largestFile = 2 ** 29 - 24;

/**
 * Explains why a path is not read, without quoting its content. It looks like an error of the system, because the
 * program is not at fault.
 */
export class UnreadableFile extends Error {
  readonly code = 'EUNREADABLE';
  readonly syscall = 'read';
  /** Without the path. */
  readonly reason: string;

  constructor(path: string, reason: string) {
    super(`${path}: ${reason}`);
    this.name = 'UnreadableFile';
    this.reason = reason;
  }
}

/** Why a file was not read, in words that follow its name. */
export function describeUnread(error: unknown): string {
  if (error instanceof UnreadableFile) return error.reason;
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && error.code === 'ENOENT' ? 'there is no such file' : error.message;
}

/**
 * Reads a regular file of at most `most` bytes. Anything else is refused before it is opened: a pipe may have no
 * writer, a device no end, and a file that the kernel makes up may be one message that is gone once it is read. Throws an
 * UnreadableFile, or the system's error. `check` gets the real path of the file, wherever links led to it.
 */
export function readRegularFile(path: string, most: number = largestFile, check?: (found: string) => void): Buffer {
  const { file, size } = openRegularFile(path, (held) => {
    if (held.stats.size > most) throw tooLarge(path, most);
    check?.(held.realPath());
  });
  try {
    return readAll(file, path, size, most);
  } finally {
    closeSync(file);
  }
}

/**
 * The descriptor of a regular file, which the caller closes. What is opened is what was checked, also by `check`, whatever takes
 * its place meanwhile. Throws as readRegularFile.
 */
export function openRegularFile(
  path: string,
  check?: (found: HeldPath) => void,
): { readonly file: number; readonly size: number } {
  const held = holdPath(path);
  try {
    checkKind(path, held.stats);
    check?.(held);
    if (held.isMadeByKernel()) throw new UnreadableFile(path, madeByKernel);
    // If a program holds a lease on the file, opening it does not wait.
    const file = openSync(held.path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0));
    try {
      // Where nothing is held by a descriptor, another thing may be in its place by now.
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

const madeByKernel = 'the kernel makes it up while it is read: copy what it holds to a file first';

/** Bytes of a file in /proc or /sys. */
const largestKernelFile = 2 ** 24;

/**
 * Reads a file in /proc or /sys at once: they are many, short, and safe to open. Throws an UnreadableFile for one that is not short:
 * another thing may be mounted in its place.
 * Test: an endless file in the place of one of the kernel's is refused.
 */
export function readKernelFile(path: string): string {
  const file = openSync(path, constants.O_RDONLY);
  try {
    return readAll(file, path, 0, largestKernelFile).toString('utf8');
  } finally {
    closeSync(file);
  }
}

/** Paths for what a shell passes as a file: `<(command)`, and standard input by name. */
const handedOver = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/**
 * The bytes of such pipes, by path. A pipe can be read once, and a command reads its input twice: to see what it is,
 * then as that. A process gets its pipes once, so this state belongs to the process, not to a run.
 */
const handedOverBytes = new Map<string, Buffer>();

/** As readRegularFile, but also reads what people name instead of a file: standard input, `<(command)`, /dev/null. */
export function readNamedFile(path: string, most: number = largestFile): Buffer {
  if (path === '/dev/null') return Buffer.alloc(0);
  if (!handedOver.test(path)) return readRegularFile(path, most);
  const known = handedOverBytes.get(path);
  if (known) return known;
  const file = openSync(path, constants.O_RDONLY);
  try {
    const found = fstatSync(file);
    if (!found.isFIFO() && !found.isSocket() && !isatty(file)) checkKind(path, found);
    const bytes = readAll(file, path, 0, most);
    if (!found.isFile()) handedOverBytes.set(path, bytes);
    return bytes;
  } finally {
    closeSync(file);
  }
}

function checkKind(path: string, found: Stats): void {
  if (found.isFile()) return;
  throw new UnreadableFile(path, `it is ${nameKind(found)}, not a file`);
}

function nameKind(found: Stats): string {
  if (found.isDirectory()) return 'a folder';
  if (found.isFIFO()) return 'a named pipe';
  return found.isSocket() ? 'a socket' : 'a device';
}

function tooLarge(path: string, most: number): UnreadableFile {
  return new UnreadableFile(path, `it is too large: ${Math.floor(most / 2 ** 20)} MB is the limit`);
}

/** Reads to the end, even if the size is wrong: a file may grow meanwhile, and a pipe has none. */
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
    if (total > most) throw tooLarge(path, most);
  }
  const last = piece.subarray(0, used);
  return full.length === 0 ? last : Buffer.concat([...full, last], total);
}
