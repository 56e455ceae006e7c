import { randomBytes } from 'node:crypto';
import { nameKind } from './read-file.ts';
import { UnreadableFile } from './unread.ts';
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
 * Paths start at the folder's descriptor (needs /proc), so nobody can replace the folder between calls. Test: base/replace-file.test.ts.
 */
export class OpenFolder {
  readonly #descriptor: number;
  readonly #named: string;
  /** The folder's path, which is valid while the folder is open. */
  readonly path: string;

  /** With 'refused', throws ENOTDIR if the path itself is a link, but follows links above it. */
  constructor(path: string, { isLink }: { readonly isLink: 'followed' | 'refused' }) {
    const { O_RDONLY, O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants;
    this.#named = path;
    this.#descriptor = openSync(path, O_RDONLY | O_DIRECTORY | (isLink === 'refused' ? O_NOFOLLOW : 0));
    this.path = pathOfDescriptor(this.#descriptor) ?? path;
  }

  /** Returns the path of a file in the folder. The caller decides whether to follow links there. */
  at(name: string): string {
    return `${this.path}/${name}`;
  }

  /** Makes a folder whose name is `prefix` and six hex digits. Returns the name. */
  makeFolder(prefix: string): string {
    const name = `${prefix}${randomBytes(3).toString('hex')}`;
    mkdirSync(this.at(name));
    return name;
  }

  /** Waits until renames in the folder would survive a power cut. */
  async sync(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      fsync(this.#descriptor, (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  explain(error: unknown): unknown {
    return renameInError(error, this.path, this.#named);
  }
}

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
 * Removes a file, a link, or a folder with its content, but nothing behind a link, even if another user replaces folders by links
 * meanwhile. A missing path is no error. Test: base/remove-tree.test.ts.
 */
export function removeTree(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    // For a folder, Linux reports EISDIR, other systems EPERM.
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

export interface FileKind {
  /** Permission bits, to which the umask is not applied. */
  readonly mode: number;
  /** Whether to return only once the file would survive a power cut. */
  readonly isDurable: boolean;
}

/**
 * Writes a file as a whole, replacing any other, in a folder that may be another user's. Writes under a new name, by descriptor, then
 * renames. Refuses to replace anything but a regular file. Test: base/replace-file.test.ts.
 */
export async function replaceFile(path: string, content: string | Uint8Array, kind: FileKind): Promise<void> {
  await withFolder(dirname(path), { isLink: 'followed' }, (folder) =>
    replaceFileIn(folder, basename(path), content, kind),
  );
}

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
    // Users know the file by its final name, and Node's write errors name no file.
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
  throw new UnreadableFile(folder.at(name), { problem: 'kind', is: nameKind(found) });
}

const abandonedMilliseconds = 10 * 60_000;

/** Removes files that killed writers left in the folder. Test: base/replace-file.test.ts. */
function removeUnfinished(folder: OpenFolder): void {
  for (const name of readdirSync(folder.path)) {
    if (!/^\.kpc-[0-9a-f]{16}\.new$/.test(name)) continue;
    try {
      if (Date.now() - lstatSync(folder.at(name)).mtimeMs > abandonedMilliseconds) unlinkSync(folder.at(name));
    } catch {
      // Ignore the error, because another writer removed the file, or another user owns it.
    }
  }
}
