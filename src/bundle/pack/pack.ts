import { stat } from 'node:fs/promises';
import { gunzipSync, gzipSync, inflateRawSync } from 'node:zlib';
import { readRegularFile, UnreadableFile } from '../../base/read-file.ts';
import { knownNames } from '../folder.ts';
import type { BundleFiles } from '../make-bundle.ts';
import { signatureFile } from './signature.ts';

/** The most bytes that a pack holds, unpacked. A few bytes of gzip can become any number of them. */
export const largestPack = 2 ** 28;

/** The most that the files of a bundle may have together to fit in a pack. */
export const largestBundle = largestPack - 2 ** 16;

/** The files that a pack may hold, in their order. */
const packNames: readonly string[] = [signatureFile, ...[...knownNames].toSorted()];

/** What gzip writes before and after the compressed bytes: here no name, comment or time, and an unknown system; then checks. */
const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
const gzipTail = 8;

/** The bytes of a pack: a gzipped tar archive, the same for the same files. */
export function packFiles(files: BundleFiles): Buffer {
  const ordered = packNames.flatMap((name) => {
    const text = files.get(name);
    return text === undefined ? [] : [[name, text] as const];
  });
  const packed = gzipSync(writeTar(new Map(ordered)), { level: 9 });
  gzipHead.copy(packed);
  return packed;
}

/** The files of a pack, with its signature; undefined if the path is no file that gzip wrote. */
export async function readPack(path: string): Promise<BundleFiles | undefined> {
  const found = await stat(path).catch(() => undefined);
  const packed = found?.isFile() ? readRegularFile(path, largestPack) : undefined;
  if (!packed?.subarray(0, 2).equals(gzipHead.subarray(0, 2))) return undefined;
  const unpacked = unzip(path, packed);
  const files = readTar(unpacked, packNames);
  if (files && packed.subarray(0, gzipHead.length).equals(gzipHead) && measureStream(packed) === packed.length)
    return files;
  throw new UnreadableFile(path, 'it is not a pack that "kpc bundle pack" wrote');
}

function unzip(path: string, packed: Buffer): Buffer {
  try {
    return gunzipSync(packed, { maxOutputLength: largestPack });
  } catch (error) {
    const isTooLarge = error instanceof RangeError;
    throw new UnreadableFile(
      path,
      isTooLarge ? `it unpacks to more than ${largestPack / 2 ** 20} MB` : 'it is damaged, or was not copied whole',
    );
  }
}

/** Where the first stream of a gzipped file ends: gunzip reads any number of them, and skips zeros after them. */
function measureStream(packed: Buffer): number {
  // With `info`, Node also returns the stream, which its types do not declare.
  const { engine } = inflateRawSync(packed.subarray(gzipHead.length), { info: true }) as unknown as {
    readonly engine: { readonly bytesWritten: number };
  };
  return gzipHead.length + engine.bytesWritten + gzipTail;
}

/** The unit of an archive: each header is one, and contents are padded to it. */
const block = 512;

/** Where a header has its parts: ustar, as POSIX.1-1988 has it. */
const nameLength = 100;
const size = { start: 124, end: 135 };
const checksum = { start: 148, length: 8 };

/**
 * Files as a tar archive, in their order. Each is a regular file of root's that all users may read, and of the first moment of 1970: the
 * same files give the same bytes.
 */
export function writeTar(files: ReadonlyMap<string, string>): Buffer {
  const parts = [...files].flatMap(([name, text]) => {
    const content = Buffer.from(text);
    return [writeHeader(name, content.length), content, Buffer.alloc(-content.length & (block - 1))];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function writeHeader(name: string, length: number): Buffer {
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  const fields = [
    octal(0o644, 7),
    octal(0, 7),
    octal(0, 7),
    octal(length, 11),
    octal(0, 11),
    ' '.repeat(checksum.length),
  ];
  const header = Buffer.alloc(block);
  header.write(`${name.padEnd(nameLength, '\0')}${fields.join('')}0`, 'latin1');
  header.write(`ustar\0${'00'}root${'\0'.repeat(28)}root`, 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)} `, checksum.start, 'latin1');
  return header;
}

/**
 * The files of an archive that may hold files of these names, in this order; undefined unless writeTar would write the same
 * bytes. So no link, folder, path, owner or odd header comes through, and each reader of tar finds the same files in it.
 */
function readTar(bytes: Buffer, names: readonly string[]): ReadonlyMap<string, string> | undefined {
  const files = new Map<string, string>();
  let [at, next] = [0, 0];
  while (at + block <= bytes.length && bytes[at] !== 0) {
    const [name = ''] = bytes.toString('latin1', at, at + nameLength).split('\0');
    const found = names.indexOf(name, next);
    if (found < 0) return undefined;
    next = found + 1;
    const length = Number.parseInt(bytes.toString('latin1', at + size.start, at + size.end), 8);
    const start = at + block;
    if (!(start + length <= bytes.length)) return undefined;
    files.set(name, bytes.toString('utf8', start, start + length));
    at = start + Math.ceil(length / block) * block;
  }
  return writeTar(files).equals(bytes) ? files : undefined;
}
