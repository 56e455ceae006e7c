import { randomBytes } from 'node:crypto';
import { constants, lstatSync, promises, readdirSync, unlinkSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { withFolder, type OpenFolder } from './open-folder.ts';
import { isSystemError } from './system-errors.ts';

/** How a file is made. */
export interface FileKind {
  /** Permission bits, whatever the umask. */
  readonly mode: number;
  /** Whether to return only when the file would survive a power cut. */
  readonly isDurable: boolean;
}

/**
 * Writes a file, replacing any other. No reader sees half of it, and the folder may belong to another user: the file
 * is made under a new name, all calls go by its descriptor, and a rename puts it in place. Refuses to replace
 * anything but a regular file, such as a device or a link.
 * Test: does not replace %s.
 */
export async function replaceFile(path: string, content: string | Uint8Array, kind: FileKind): Promise<void> {
  await withFolder(dirname(path), { isLink: 'followed' }, (folder) =>
    replaceFileIn(folder, basename(path), content, kind),
  );
}

/** As replaceFile, in a folder that is open. */
export async function replaceFileIn(
  folder: OpenFolder,
  name: string,
  content: string | Uint8Array,
  { mode, isDurable }: FileKind,
): Promise<void> {
  assertReplaceable(folder, name);
  removeUnfinished(folder);
  const unfinished = folder.at(`.kpc-${randomBytes(8).toString('hex')}.new`);
  try {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
    const file = await promises.open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      await file.writeFile(content);
      await file.chmod(mode);
      if (isDurable) await file.sync();
    } finally {
      await file.close();
    }
    await promises.rename(unfinished, folder.at(name));
  } catch (error) {
    await promises.rm(unfinished, { force: true }).catch(() => undefined);
    // People know the file by its final name. Node names none where writing to an open file fails.
    if (isSystemError(error)) {
      error.path = folder.at(name);
      const message = error.message.replaceAll(unfinished, error.path);
      error.message = message.includes(error.path) ? message : `${message} '${error.path}'`;
    }
    throw error;
  }
  if (isDurable) await folder.sync();
}

function assertReplaceable(folder: OpenFolder, name: string): void {
  const found = lstatSync(folder.at(name), { throwIfNoEntry: false });
  if (!found || found.isFile()) return;
  const what = found.isSymbolicLink() ? 'a link' : found.isDirectory() ? 'a folder' : 'no regular file';
  const path = folder.at(name);
  throw Object.assign(new Error(`${path} is ${what}: only a file is replaced`), {
    code: 'EEXIST',
    syscall: 'rename',
    path,
  });
}

const abandonedMilliseconds = 10 * 60_000;

/**
 * Removes what killed writers left in the folder.
 * Test: removes what a killed writer left, and not what another is writing.
 */
function removeUnfinished(folder: OpenFolder): void {
  for (const name of readdirSync(folder.path)) {
    if (!/^\.kpc-[0-9a-f]{16}\.new$/.test(name)) continue;
    try {
      if (Date.now() - lstatSync(folder.at(name)).mtimeMs > abandonedMilliseconds) unlinkSync(folder.at(name));
    } catch {
      // Another writer was faster, or it is another user's: it stays.
    }
  }
}
