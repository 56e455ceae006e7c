import { stat } from 'node:fs/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { readRegularFile, UnreadableFile } from '../../base/read-file.ts';
import { isBundleFile } from '../folder.ts';
import type { BundleFiles } from '../make-bundle.ts';
import { signatureFile } from './signature.ts';
import { readTar, writeTar } from './tar.ts';

/** The most bytes that a pack holds, unpacked. A few bytes of gzip can become any number of them. */
export const largestPack = 2 ** 28;

/** The bytes of a pack: a gzipped tar archive, the same for the same files. */
export function packFiles(files: BundleFiles): Buffer {
  const packed = gzipSync(writeTar(files), { level: 9 });
  // The system that it was written on: unknown.
  packed[9] = 255;
  return packed;
}

/** The files of a pack, with its signature; undefined if the path is no file that gzip wrote. */
export async function readPack(path: string): Promise<BundleFiles | undefined> {
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  const packed = isFile ? readRegularFile(path, largestPack) : undefined;
  if (!packed?.subarray(0, 2).equals(gzipMark)) return undefined;
  const files = readTar(unzip(path, packed));
  if (files && [...files.keys()].every((name) => name === signatureFile || isBundleFile(name))) return files;
  throw new UnreadableFile(path, 'it is not a pack that "kpc bundle pack" wrote');
}

const gzipMark = Buffer.from([0x1f, 0x8b]);

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
