import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { kpcYaml } from '../../src/base/names.ts';
import { readRegularFile, UnreadableFile } from '../../src/base/read-file.ts';
import { excludedBy } from '../../src/input/files/list-files.ts';
import type { NamedText } from '../../src/library/index.ts';
import { Refusal, refuse } from '../../src/library/refusal.ts';

const mebibyte = 1024 * 1024;
const largestFile = 32 * mebibyte;
const largestTotal = 64 * mebibyte;
const mostFiles = 5000;

const absent = 'no such file or folder below the folder of this server';

/** Refuses a path that a client may not read, or that cannot be read. */
function refusePath(path: string, reason: string): never {
  return refuse({ problem: 'unreadable', path, reason });
}

/** Which files of folders are read. */
interface Wanted {
  readonly endings: readonly string[];
  readonly isExcluded: ReturnType<typeof excludedBy>;
}

/** Reads files below one folder, and nothing else: links that lead out of it are refused. */
export class TextsBelow {
  readonly #root: string;

  /** Throws if the folder is not there. */
  constructor(folder: string) {
    this.#root = realpathSync(folder);
    readdirSync(this.#root);
  }

  /** The text of a file of this name in the folder itself; undefined if there is none. */
  find(name: string): string | undefined {
    const path = resolve(this.#root, name);
    return existsSync(path) ? this.read(name, [''])[0]?.text : undefined;
  }

  /** The text of a file, or the texts of all files below a folder whose names end in one of `endings`, but for those that are excluded. */
  read(path: string, endings: readonly string[], exclude: readonly string[] = []): readonly NamedText[] {
    const found: string[] = [];
    const real = this.#inside(path);
    this.#collect(real, { endings, isExcluded: excludedBy(exclude, real) }, found);
    if (found.length > mostFiles) refusePath(path, `it holds more than ${mostFiles} files: name a smaller folder`);
    let total = 0;
    return found.toSorted().map((file) => {
      const text = this.#readFile(file);
      total += text.length;
      if (total > largestTotal) refusePath(path, 'it holds more than 64 MiB: name a smaller folder');
      return { name: relative(this.#root, file).split(sep).join('/'), text };
    });
  }

  /** The real path of what a client names. */
  #inside(path: string): string {
    const named = resolve(this.#root, path);
    let real: string;
    try {
      real = realpathSync(named);
    } catch {
      // Whether something is outside is not said, either.
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

  /** What was opened counts, as a folder on the way may be replaced by a link since it was listed. */
  #readFile(path: string): string {
    const name = relative(this.#root, path);
    try {
      const bytes = readRegularFile(path, largestFile, (opened) => this.#assertInside(opened, name));
      return bytes.toString('utf8').replace(/^\uFEFF/, '');
    } catch (error) {
      if (error instanceof Refusal) throw error;
      return refusePath(name, error instanceof UnreadableFile ? error.reason : 'it cannot be read');
    }
  }

  #collect(path: string, wanted: Wanted, found: string[]): void {
    let entries;
    try {
      entries = readdirSync(path, { withFileTypes: true });
    } catch {
      found.push(path);
      return;
    }
    for (const entry of entries) {
      if (found.length > mostFiles) return;
      if (entry.name.startsWith('.') || entry.name === 'node_modules' || entry.name === kpcYaml) continue;
      const inner = join(path, entry.name);
      if (wanted.isExcluded(inner, entry.isDirectory())) continue;
      if (entry.isDirectory()) this.#collect(inner, wanted, found);
      else if (entry.isFile() && wanted.endings.some((ending) => entry.name.endsWith(ending))) found.push(inner);
    }
  }
}
