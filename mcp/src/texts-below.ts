import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { readRegularFile } from '../../src/base/read-file.ts';
import { UnreadableFile } from '../../src/base/unread.ts';
import { largestPack, unpack } from '../../src/bundle/pack/pack.ts';
import { signatureFile } from '../../src/bundle/pack/signature.ts';
import type { FolderOrigin } from '../../src/input/documents/text-file.ts';
import { disk, type FileTree, type TreeEntry } from '../../src/input/files/file-tree.ts';
import { isInside, listFolder, type ListedFile } from '../../src/input/files/list-files.ts';
import type { NamedText } from '../../src/library/index.ts';
import { Refusal, refuse } from '../../src/library/refusal.ts';
import { isDocument } from '../../src/snapshot/open/recognise-texts.ts';

const mebibyte = 1024 * 1024;
const largestFile = 32 * mebibyte;
const largestTotal = 64 * mebibyte;
const mostFiles = 5000;

const absent = 'no such file or folder below the folder of this server';

function refusePath(path: string, said: string): never {
  return refuse({ problem: 'unreadable', path, reason: { problem: 'said', said } });
}

/** Leaves out pipes and links, because links may lead out of the folder. */
function listPlain(folder: string): readonly TreeEntry[] {
  return disk.list(folder).filter((entry) => entry.isDirectory() || entry.isFile());
}

/** Reads files below one folder only. Refuses links out of the folder. */
export class TextsBelow {
  readonly #root: string;
  /** The files below the folder, for listing. Listing also reads files: .kpcignore and Chart.yaml. */
  readonly #tree: FileTree = {
    ...disk,
    list: listPlain,
    read: (path, most) => readRegularFile(path, most, (opened) => this.#assertInside(opened, path)),
  };

  constructor(folder: string) {
    this.#root = realpathSync(folder);
    readdirSync(this.#root);
  }

  /** Reads a file in the folder itself; undefined if missing. */
  find(name: string): string | undefined {
    const path = resolve(this.#root, name);
    return existsSync(path) ? this.read(name)[0]?.text : undefined;
  }

  /** Reads a file, or the manifests in and below a folder, as kpc lists them. */
  readManifests(path: string, exclude: readonly string[]): readonly NamedText[] {
    const real = this.#inside(path);
    if (!disk.isFolder(real)) return this.#readAll(path, [{ path: real }]);
    const { files } = listFolder(real, exclude, this.#tree);
    return this.#readAll(
      path,
      files.filter((file) => isInside(file.path, real, this.#tree)),
    );
  }

  /** Reads a file, or all files below a folder except documents, which may quote the output of tools. */
  read(path: string): readonly NamedText[] {
    const found: string[] = [];
    const real = this.#inside(path);
    this.#collect(real, found);
    const origin = disk.isFolder(real) ? { folder: real, chart: undefined } : undefined;
    return this.#readAll(
      path,
      found.toSorted().map((each) => ({ path: each, ...(origin && { origin }) })),
    );
  }

  /** Reads the files of a pack; undefined if the path is not a pack. */
  async readPack(path: string): Promise<readonly NamedText[] | undefined> {
    if (!/\.(?:tgz|tar\.gz)$/.test(path)) return undefined;
    const real = this.#inside(path);
    if (disk.isFolder(real)) return undefined;
    try {
      const bytes = readRegularFile(real, largestPack, (opened) => this.#assertInside(opened, path));
      const files = [...((await unpack(path, bytes)) ?? [])].filter(([name]) => name !== signatureFile);
      return files.map(([name, text]) => ({ name: `${this.#nameOf(real)}/${name}`, text }));
    } catch (error) {
      return this.#refuseFile(path, error);
    }
  }

  #readAll(path: string, files: readonly (Pick<ListedFile, 'path'> & Partial<ListedFile>)[]): readonly NamedText[] {
    if (files.length > mostFiles) refusePath(path, `it holds more than ${mostFiles} files: name a smaller folder`);
    let total = 0;
    return files.map(({ path: file, origin }) => {
      const text = this.#readFile(file);
      total += text.length;
      if (total > largestTotal) refusePath(path, 'it holds more than 64 MiB: name a smaller folder');
      return { name: this.#nameOf(file), text, origin: origin && this.#named(origin) };
    });
  }

  #nameOf(path: string): string {
    return relative(this.#root, path).split(sep).join('/');
  }

  #named({ folder, chart, ...origin }: FolderOrigin): FolderOrigin {
    return { ...origin, folder: this.#nameOf(folder) || '.', chart: chart && (this.#nameOf(chart) || '.') };
  }

  #inside(path: string): string {
    const named = resolve(this.#root, path);
    let real: string;
    try {
      real = realpathSync(named);
    } catch {
      // Do not reveal whether something exists outside the folder.
      return refusePath(path, absent);
    }
    this.#assertInside(real, path);
    return real;
  }

  #assertInside(real: string, path: string): void {
    const inside = relative(this.#root, real);
    if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) {
      refusePath(path, absent);
    }
  }

  /** Checks the opened file, because a folder on the way may have been replaced by a link. */
  #readFile(path: string): string {
    const name = relative(this.#root, path);
    try {
      const bytes = readRegularFile(path, largestFile, (opened) => this.#assertInside(opened, name));
      return bytes.toString('utf8').replace(/^\uFEFF/, '');
    } catch (error) {
      return this.#refuseFile(name, error);
    }
  }

  #refuseFile(name: string, error: unknown): never {
    if (error instanceof Refusal) throw error;
    if (error instanceof UnreadableFile) return refuse({ problem: 'unreadable', path: name, reason: error.reason });
    return refusePath(name, 'it cannot be read');
  }

  #collect(path: string, found: string[]): void {
    if (!disk.isFolder(path)) found.push(path);
    else
      for (const entry of listPlain(path).filter(({ name }) => !name.startsWith('.') && name !== 'node_modules')) {
        if (found.length > mostFiles) return;
        const inner = join(path, entry.name);
        if (entry.isDirectory()) this.#collect(inner, found);
        else if (!isDocument.test(entry.name)) found.push(inner);
      }
  }
}
