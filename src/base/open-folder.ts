import { randomBytes } from 'node:crypto';
import { closeSync, constants, fsync, mkdirSync, openSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import { hasCode, renameInError } from './system-errors.ts';
import { pathOfDescriptor } from './system-paths.ts';

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
