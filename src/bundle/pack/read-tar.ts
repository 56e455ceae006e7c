import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { mostLines } from '../../base/bounds.ts';
import { openRegularFile } from '../../base/read-file.ts';
import { UnreadableFile, type Unread } from '../../base/unread.ts';

const block = 512;

/** The most bytes in an unpacked archive. A larger archive is taken as an attempt to fill the disk. */
const largestArchive = 2 ** 31;
const mostEntries = 200_000;

const longestName = 2 ** 14;

/** The most line ends in the files that are kept. Unlike elsewhere, empty lines count too. */
const mostLineEnds = 10 * mostLines;

export interface TarFile {
  readonly path: string;
  readonly bytes: Buffer;
}

type Wants = (path: string, bytes: number) => boolean | 'stop';

/**
 * Reads the regular files of a tar archive that GNU tar, BSD tar or Python wrote, gzipped or not. Writes nothing to disk. Skips links,
 * devices and paths that lead out of the archive. Calls `wants` with each file's path and size first; `wants` may end the reading. Returns
 * no files if the source is not an archive. Throws an UnreadableFile for an archive that is damaged, cut off or too large.
 */
export async function readTar(
  source: string,
  isPacked: boolean,
  wants: Wants,
  limit = largestArchive,
): Promise<readonly TarFile[]> {
  const raw = createReadStream(source, { fd: openRegularFile(source).file, highWaterMark: 1 << 17 });
  const stream = isPacked ? raw.pipe(createGunzip()) : raw;
  raw.on('error', (error) => stream.destroy(error));
  try {
    const pieces = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    return await readEntries(source, takerOf(source, pieces, limit), wants);
  } finally {
    stream.destroy();
    raw.destroy();
  }
}

/** Takes the next `count` bytes. Undefined at the end. If `isKept` is false, skips the bytes. */
type Take = (count: number, isKept?: boolean) => Promise<Buffer | undefined>;

function takerOf(source: string, pieces: AsyncIterator<Buffer>, limit: number): Take {
  let [piece, total, lineEnds]: [Buffer, number, number] = [Buffer.alloc(0), 0, 0];
  return async (count, isKept = true) => {
    const taken = Buffer.allocUnsafe(isKept ? count : 0);
    for (let missing = count; missing > 0;) {
      if (piece.length === 0) {
        const next = await pieces.next().catch(() => refuseArchive(source, 'damaged'));
        if (next.done === true) {
          if (missing === count) return undefined;
          return refuseArchive(source, 'damaged');
        }
        piece = next.value;
        total += piece.length;
        if (total > limit) refuseArchive(source, { problem: 'too-long', of: 'archive', most: limit });
      }
      const part = piece.subarray(0, missing);
      if (isKept) {
        part.copy(taken, count - missing);
        lineEnds += countLineEnds(part);
        if (lineEnds > mostLineEnds) refuseArchive(source, { problem: 'too-long', of: 'lines', most: mostLines });
      }
      piece = piece.subarray(part.length);
      missing -= part.length;
    }
    return taken;
  };
}

function countLineEnds(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === 10) count++;
  return count;
}

function refuseArchive(source: string, reason: Unread): never {
  throw new UnreadableFile(source, reason);
}

async function readEntries(source: string, take: Take, wants: Wants): Promise<readonly TarFile[]> {
  const files: TarFile[] = [];
  let longName: string | undefined;
  for (let entries = 0; ; entries++) {
    const header = await take(block);
    if (!header || header.every((byte) => byte === 0)) return files;
    if (entries === mostEntries) refuseArchive(source, { problem: 'too-long', of: 'files', most: mostEntries });
    const size = sizeOf(header);
    if (size === undefined || !hasChecksum(header)) {
      return entries === 0 ? files : refuseArchive(source, 'damaged');
    }
    const content = async (isKept: boolean): Promise<Buffer> => {
      const taken = await take(size + (-size & (block - 1)), isKept);
      return taken?.subarray(0, size) ?? refuseArchive(source, 'damaged');
    };
    const kind = String.fromCharCode(header[156] ?? 0);
    if (kind === 'L' || kind === 'x') {
      if (size > longestName) refuseArchive(source, { problem: 'too-long', of: 'name', most: longestName });
      const name = await content(true);
      longName = kind === 'L' ? textOfBytes(name) : (paxPath(name.toString('utf8')) ?? longName);
      continue;
    }
    const path = cleanPath(longName ?? nameOfMember(header));
    longName = undefined;
    // Links, devices and similar entries are skipped.
    const answer = (kind === '0' || kind === '\0' || kind === '7') && path !== undefined && wants(path, size);
    if (answer === 'stop') return files;
    const bytes = await content(answer);
    if (answer && path !== undefined) files.push({ path, bytes });
  }
}

function textOfBytes(bytes: Buffer): string {
  const [text = ''] = bytes.toString('utf8').split('\0');
  return text;
}

function nameOfMember(header: Buffer): string {
  const prefix =
    header.toString('latin1', 257, 262) === 'ustar' && header[263] === 0x30
      ? textOfBytes(header.subarray(345, 500))
      : '';
  const name = textOfBytes(header.subarray(0, 100));
  return prefix === '' ? name : `${prefix}/${name}`;
}

function paxPath(records: string): string | undefined {
  return /(?:^|\n)\d{1,6} path=([^\n]*)/.exec(records)?.[1];
}

/** Returns a relative path without "./". Undefined if the path leads out of the archive. */
function cleanPath(name: string): string | undefined {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return name.startsWith('/') || parts.includes('..') || parts.length === 0 ? undefined : parts.join('/');
}

function sizeOf(header: Buffer): number | undefined {
  if ((header[124] ?? 0) & 0x80) {
    const size = Number(header.readBigUInt64BE(128));
    return size <= largestArchive ? size : undefined;
  }
  const text = textOfBytes(header.subarray(124, 136)).trim();
  return /^[0-7]{1,12}$/.test(text) ? Number.parseInt(text, 8) : undefined;
}

function hasChecksum(header: Buffer): boolean {
  const written = Number.parseInt(textOfBytes(header.subarray(148, 156)).trim(), 8);
  let sum = 0;
  for (const [i, byte] of header.entries()) sum += i >= 148 && i < 156 ? 0x20 : byte;
  return sum === written;
}
