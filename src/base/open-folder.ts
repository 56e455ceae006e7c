// Writes where others may write too: in a folder that is held open, and files that are replaced in it as a whole.
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fsync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
  lstatSync,
  promises,
} from 'node:fs';
import { hasCode, renameInError, isSystemError } from './system-errors.ts';
import { pathOfDescriptor } from './system-paths.ts';
import { basename, dirname } from 'node:path';

/**
 * An open folder. Paths in it go through its descriptor, like openat(2): nobody can put another folder, or a link, in
 * its place between two calls. Without /proc they go by the folder's path.
 * Test: a bundle is written into the folder that was made for it, not into one that a link in its place leads to.
 */
export class OpenFolder {
  readonly #descriptor: number;
  readonly #named: string;
  /** A path of the folder, valid while it is open. */
  readonly path: string;

  /** With `isLink: 'refused'`, a link in the folder's place is refused (ENOTDIR); links above it are followed. */
  constructor(path: string, { isLink }: { readonly isLink: 'followed' | 'refused' }) {
    const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;
    this.#named = path;
    this.#descriptor = openSync(path, O_RDONLY | O_DIRECTORY | (isLink === 'refused' ? O_NOFOLLOW : 0));
    this.path = pathOfDescriptor(this.#descriptor) ?? path;
  }

  /** The path of a file in it. Whether a link there is followed depends on what the caller does with the path. */
  at(name: string): string {
    return `${this.path}/${name}`;
  }

  /** Makes a folder with a new name: `prefix`, and six letters and digits. Returns the name. */
  makeFolder(prefix: string): string {
    const name = `${prefix}${randomBytes(3).toString('hex')}`;
    mkdirSync(this.at(name));
    return name;
  }

  /** Waits until renames in it would survive a power cut. */
  async sync(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      fsync(this.#descriptor, (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** Makes an error of the system name a file in this folder by the path that the folder was opened with. */
  explain(error: unknown): unknown {
    return renameInError(error, this.path, this.#named);
  }
}

/** Opens a folder for `work`, and closes it. Errors name files by `path`. */
export async function withFolder<T>(
  path: string,
  links: ConstructorParameters<typeof OpenFolder>[1],
  work: (folder: OpenFolder) => Promise<T>,
): Promise<T> {
  const folder = new OpenFolder(path, links);
  try {
    return await work(folder);
  } catch (error) {
    throw folder.explain(error);
  } finally {
    folder.close();
  }
}

/**
 * Removes a file, a link, or a folder with all in it, but nothing that a link leads to, even if another user replaces
 * folders by links meanwhile. A missing path is no error.
 * Test: follows no link that is put in the place of a folder while it is being removed.
 */
export function removeTree(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    // Linux says EISDIR of a folder, other systems EPERM.
    if (!hasCode(error, 'EISDIR') && !hasCode(error, 'EPERM')) throw error;
    removeFolder(path);
  }
}

function removeFolder(path: string): void {
  const folder = new OpenFolder(path, { isLink: 'refused' });
  try {
    for (const name of readdirSync(folder.path)) removeTree(folder.at(name));
  } finally {
    folder.close();
  }
  rmdirSync(path);
}

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
