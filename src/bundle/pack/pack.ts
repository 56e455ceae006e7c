import { stat } from 'node:fs/promises';
import { createInflateRaw, gunzipSync, gzipSync } from 'node:zlib';
import { readRegularFile, UnreadableFile } from '../../base/read-file.ts';
import { knownNames } from '../folder.ts';
import type { BundleFiles } from '../make-bundle.ts';
import { signatureFile } from './signature.ts';
import { readTar, writeTar } from './tar.ts';

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
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  const packed = isFile ? readRegularFile(path, largestPack) : undefined;
  if (!packed?.subarray(0, 2).equals(gzipHead.subarray(0, 2))) return undefined;
  const unpacked = unzip(path, packed);
  const files = readTar(unpacked, packNames);
  if (files && packed.subarray(0, gzipHead.length).equals(gzipHead) && (await measureStream(packed)) === packed.length)
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
async function measureStream(packed: Buffer): Promise<number> {
  const inflate = createInflateRaw();
  await new Promise((resolve, reject) => {
    inflate.resume().on('end', resolve).on('error', reject).end(packed.subarray(gzipHead.length));
  });
  return gzipHead.length + inflate.bytesWritten + gzipTail;
}
