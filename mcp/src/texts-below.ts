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

/** Refuses a path that a client may not read or that is unreadable. */
function refusePath(path: string, reason: string): never {
  return refuse({ problem: 'unreadable', path, reason });
}

interface Wanted {
  readonly endings: readonly string[];
  readonly isExcluded: ReturnType<typeof excludedBy>;
}

/** Reads files below one folder only: refuses links out of it. */
export class TextsBelow {
  readonly #root: string;

  /** Throws if the folder does not exist. */
  constructor(folder: string) {
    this.#root = realpathSync(folder);
    readdirSync(this.#root);
  }

  /** The text of a file in the folder itself; undefined if missing. */
  find(name: string): string | undefined {
    const path = resolve(this.#root, name);
    return existsSync(path) ? this.read(name, [''])[0]?.text : undefined;
  }

  /** The text of a file, or of all files below a folder with one of these endings, except excluded ones. */
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

  /** The real path of the client's path. */
  #inside(path: string): string {
    const named = resolve(this.#root, path);
    let real: string;
    try {
      real = realpathSync(named);
    } catch {
      // Do not reveal whether something exists outside.
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

  /** What was opened counts: a folder on the way may have been replaced by a link. */
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
