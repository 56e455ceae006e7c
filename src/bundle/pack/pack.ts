import { readRegularFile } from '../../base/read-file.ts';
import { UnreadableFile } from '../../base/unread.ts';
import { knownNames, largestBundle } from '../folder.ts';
import type { BundleFiles } from '../make-bundle.ts';
import { ArchiveError, isGzip, readArchive, writeArchive } from './archive.ts';
import { readTar } from './read-tar.ts';
import { bytesOf, readSignature, signatureFile } from './signature.ts';

/** The most bytes in a pack, because the whole pack is in memory before it is checked. Compression shrinks rules to a tenth. */
export const largestPack = 2 ** 25;

const largestOf = new Map([
  [signatureFile, 4096],
  // The manifest has a few lines for each health check. The largest clusters have thousands of health checks.
  ['manifest.json', 2 ** 23],
]);

/** The files of a pack, in order. The signature and the manifest come first, because the other files are checked against these two. */
const packNames: readonly string[] = [...new Set([signatureFile, 'manifest.json', ...[...knownNames].toSorted()])];

export function beginsPack(name: string): boolean {
  return packNames.includes(name);
}

/** Reports whether a file begins like a pack. The rest of the file, and who made it, may still be wrong. */
export async function isPack(path: string): Promise<boolean> {
  let first = '';
  await readTar(path, true, (name) => {
    first = name;
    return 'stop';
  }).catch(() => undefined);
  return beginsPack(first);
}

export function packFiles(files: BundleFiles): Buffer {
  const ordered = packNames.flatMap((name) => {
    const text = files.get(name);
    return text === undefined ? [] : [[name, text] as const];
  });
  return writeArchive(new Map(ordered));
}

export function isPackable(files: BundleFiles, pack: Buffer): boolean {
  const fits = [...largestOf].every(([name, most]) => Buffer.byteLength(files.get(name) ?? '') <= most);
  return fits && bytesOf(files) <= largestBundle && pack.length <= largestPack;
}

/**
 * Reads a pack. Undefined if gzip did not write the file. Before anything else is unpacked, `check` gets the signature and the manifest,
 * which lists the SHA-256 of the other files. If `check` throws, nothing more is read. Throws an UnreadableFile for an archive that
 * packFiles would not write, and if the files are larger than the signed size.
 */
export async function readPack(
  path: string,
  check: (head: BundleFiles) => Promise<void> = async () => {},
): Promise<BundleFiles | undefined> {
  return unpack(path, readRegularFile(path, largestPack), check);
}

/** Like readPack, but takes bytes. `path` appears only in messages. */
export async function unpack(
  path: string,
  packed: Buffer,
  check: (head: BundleFiles) => Promise<void> = async () => {},
): Promise<BundleFiles | undefined> {
  if (!isGzip(packed)) return undefined;
  try {
    return await unpackFiles(packed, check);
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    const { problem } = error;
    throw new UnreadableFile(
      path,
      problem === 'too-large' ? { problem: 'too-long', of: 'bundle', most: largestBundle } : problem,
    );
  }
}

async function unpackFiles(packed: Buffer, check: (head: BundleFiles) => Promise<void>): Promise<BundleFiles> {
  const files = new Map<string, string>();
  let [next, total, signed] = [0, 0, undefined as number | undefined];
  const admit = (name: string, bytes: number): void => {
    const place = packNames.indexOf(name, next);
    if (place < 0 || bytes > (largestOf.get(name) ?? largestBundle)) throw new ArchiveError('no-pack');
    next = place + 1;
    if (name !== signatureFile) total += bytes;
    if (total > largestBundle) throw new ArchiveError('too-large');
    if (!largestOf.has(name) && !files.has('manifest.json')) throw new ArchiveError('no-pack');
    if (total > (signed ?? total)) throw new ArchiveError('not-signed');
  };
  for await (const [name, text] of readArchive(packed, admit)) {
    files.set(name, text);
    if (name !== 'manifest.json') continue;
    await check(new Map(files));
    const signature = readSignature(files);
    signed = typeof signature === 'object' ? signature.bytes : undefined;
  }
  if (!files.has('manifest.json')) throw new ArchiveError('no-pack');
  if (total !== (signed ?? total)) throw new ArchiveError('not-signed');
  return files;
}
