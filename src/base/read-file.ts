import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, statSync, type Stats } from 'node:fs';
import { isatty } from 'node:tty';

/** The most bytes that become one text: V8 has no longer ones. */
export const largestFile = 2 ** 29 - 24;

/**
 * Why a path is not read, in words that quote nothing of what is there. It has the marks of a system's error: no program is
 * at fault.
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

/** Why a file was not read, in words that go behind its name. */
export function describeUnread(error: unknown): string {
  if (error instanceof UnreadableFile) return error.reason;
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && error.code === 'ENOENT' ? 'there is no such file' : error.message;
}

/**
 * The bytes of a file of at most `most` bytes. Anything else is refused before it is opened, for a pipe may have no
 * writer, and a device no end. Throws an UnreadableFile, or what the system says.
 */
export function readRegularFile(path: string, most: number = largestFile): Buffer {
  checkKind(path, statSync(path));
  // Where a pipe has taken the file's place meanwhile, opening it does not wait.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0));
  try {
    const found = fstatSync(file);
    checkKind(path, found);
    if (found.size > most) throw tooLarge(path, most);
    return readAll(file, path, found.size, most);
  } finally {
    closeSync(file);
  }
}

/** The text of a file of the kernel's own, in /proc or /sys. They are many, short, and safe to open: Node reads one in one go. */
export function readKernelFile(path: string): string {
  return readFileSync(path, 'utf8');
}

/** What the shell hands over in a file's place: `<(command)`, and standard input by name. */
const handedOver = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/**
 * What such a pipe held, by its path. The system gives it once, and a command reads its input twice: to see what it is, then as
 * that. The process is handed its pipes once, so this is its state and no run's.
 */
const handedOverBytes = new Map<string, Buffer>();

/** As readRegularFile, and also what a person may name in a file's place: standard input, `<(command)`, /dev/null. */
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

/** To the end, which is not always where the size says: files of /proc have none. */
function readAll(file: number, path: string, size: number, most: number): Buffer {
  const full: Buffer[] = [];
  // A file without a size is most often a short one of /proc.
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
