import { closeSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openRegularFile, readRegularFile } from '../../base/read-file.ts';
import { UnreadableFile } from '../../base/unread.ts';
import { hasCode } from '../../base/system-errors.ts';
import { findPacked } from '../../base/odd-texts.ts';
import { bundleOfPath } from '../../dumps/support-bundles.ts';

export interface SupportFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

const largestBundle = 2 ** 28;
/** The most files and folders of a support bundle to look at. A sosreport has about ten thousand. */
const mostEntries = 200_000;

const heads: ReadonlySet<string> = new Set(
  'networking sysctls var_log sos_commands var systeminfo k8s rke k3s rke2 kubeadm'.split(' '),
);

/** Reads the files about a node's network from a support bundle. Undefined for any other path. May throw an UnreadableFile. */
export async function readSupportFiles(path: string, isFolder: boolean): Promise<readonly SupportFile[] | undefined> {
  const files = isFolder ? readBundleFolder(path) : await readBundleArchive(path);
  const folders = new Set(files.map((file) => bundleOfPath(file.path)?.folder));
  if (folders.size > 1) {
    const [one] = folders;
    throw new UnreadableFile(path, { problem: 'several-nodes', example: one });
  }
  return files.length > 0 ? files : undefined;
}

function limited(path: string): (bytes: number) => void {
  let total = 0;
  return (bytes) => {
    total += bytes;
    if (total > largestBundle)
      throw new UnreadableFile(path, { problem: 'too-long', of: 'network', most: largestBundle });
  };
}

/** Reports whether a folder may lead to files of a support bundle. Any top-level folder may, and so may any folder below `heads`. */
function mayLead(path: string): boolean {
  const [top = '', next] = path.split('/');
  return next === undefined || heads.has(top) || heads.has(next);
}

/** Reads a bundle's folder. Skips links to files and folders, because the bundle's author could otherwise make kpc read any other file. */
function readBundleFolder(root: string): readonly SupportFile[] {
  const files: SupportFile[] = [];
  const count = limited(root);
  let entries = 0;
  const visit = (folder: string): void => {
    for (const entry of unlessGone(() => readdirSync(join(root, folder), { withFileTypes: true })) ?? []) {
      if (++entries > mostEntries) return;
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() && mayLead(path)) visit(path);
      else if (entry.isFile() && bundleOfPath(path)) {
        const bytes = unlessGone(() => readRegularFile(join(root, path), largestBundle));
        if (!bytes) continue;
        count(bytes.length);
        files.push({ path, bytes });
      }
    }
  };
  visit('');
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function formOfArchive(path: string): 'packed' | 'plain' | undefined {
  // Only regular files are examined, because a pipe can be read only once.
  if (!statSync(path).isFile()) return undefined;
  const start = readFirstBytes(path, 262);
  if (start[0] === 0x1f && start[1] === 0x8b) return 'packed';
  return start.toString('latin1', 257) === 'ustar' ? 'plain' : undefined;
}

/** Returns the name of the first file in an archive. Undefined if the path is not an archive or cannot be read. */
export async function firstOfArchive(path: string): Promise<string | undefined> {
  const form = formOfArchive(path);
  if (!form) return undefined;
  const { readTar } = await import('../../bundle/pack/read-tar.ts');
  let first: string | undefined;
  await readTar(path, form === 'packed', (inside) => {
    first = inside;
    return 'stop';
  }).catch(() => undefined);
  return first;
}

async function readBundleArchive(path: string): Promise<readonly SupportFile[]> {
  const by = /\.t(?:ar\.)?(?:xz|bz2|zst)$/.test(path) ? findPacked(readFirstBytes(path, 8)) : undefined;
  if (by) throw new UnreadableFile(path, { problem: 'packed', by, isTar: true });
  const form = formOfArchive(path);
  if (!form) return [];
  const { readTar } = await import('../../bundle/pack/read-tar.ts');
  const count = limited(path);
  const files = await readTar(path, form === 'packed', (inside, bytes) => {
    if (!bundleOfPath(inside)) return false;
    count(bytes);
    return true;
  });
  return [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function readFirstBytes(path: string, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const { file } = openRegularFile(path);
  try {
    return bytes.subarray(0, readSync(file, bytes, 0, length, 0));
  } finally {
    closeSync(file);
  }
}
