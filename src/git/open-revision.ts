import type { FileProblem } from '../base/findings/files.ts';
import { listTree, readBlobs, runGit, type GitObject } from './run-git.ts';
import { join, relative, resolve } from 'node:path';
import { largestFile } from '../base/read-file.ts';
import { UnreadableFile } from '../base/unread.ts';
import { withSlashes } from '../base/system-paths.ts';
import type { FileTree, TreeEntry } from '../input/files/file-tree.ts';

export function openRevision(revision: string): RevisionTree | FileProblem {
  const where = runGit(['rev-parse', '--is-inside-work-tree', '--show-prefix']);
  if ('problem' in where) {
    return where.problem === 'no-program' ? { problem: 'no-git' } : { problem: 'no-repository', why: where };
  }
  const [isInside, prefix = ''] = where.toString('utf8').split('\n');
  if (isInside !== 'true') return { problem: 'no-repository', why: 'no-work-tree' };
  const tree = findTree(revision);
  if (tree === undefined) {
    const near = findTree(`origin/${revision}`) === undefined ? undefined : `origin/${revision}`;
    return { problem: 'no-revision', revision, near };
  }
  const objects = listTree(tree);
  if ('problem' in objects) return { problem: 'git-failed', failure: objects };
  return new RevisionTree(revision, prefix.replace(/\/$/, ''), objects);
}

export function isRevision(word: string): boolean {
  return findTree(word) !== undefined;
}

function findTree(revision: string): string | undefined {
  // git would read a leading dash as an option. No name of a branch, tag or commit has control characters. Refuse both.
  if (!/^[^-\p{Cc}][^\p{Cc}]{0,250}$/u.test(revision)) return undefined;
  const found = runGit(['rev-parse', '--verify', '--quiet', `${revision}^{tree}`]);
  const id = 'problem' in found ? '' : found.toString('latin1').trim();
  return /^[0-9a-f]{40,64}$/.test(id) ? id : undefined;
}

const mostLinks = 40;

/**
 * The files of a commit, which is not checked out. Links are followed only inside the commit. In REVISION:PATH, PATH is relative to the top
 * of the repository. If PATH begins with "./" or "../", it is relative to the working folder, as in git.
 */
export class RevisionTree implements FileTree {
  readonly #revision: string;
  readonly #prefix: string;
  /** Objects keyed by path from the top of the repository, without a slash at the end. "" is the top. */
  readonly #objects: ReadonlyMap<string, GitObject>;
  readonly #folders: ReadonlyMap<string, readonly TreeEntry[]>;
  readonly #bytes = new Map<string, Buffer | 'too-large'>();

  constructor(revision: string, prefix: string, objects: ReadonlyMap<string, GitObject>) {
    this.#revision = revision;
    this.#prefix = prefix;
    this.#objects = objects;
    const folders = new Map<string, TreeEntry[]>();
    for (const [path, { kind }] of objects) {
      if (kind === 'folder' && !folders.has(path)) folders.set(path, []);
      if (path === '') continue;
      const end = path.lastIndexOf('/');
      const entry = {
        name: path.slice(end + 1),
        isDirectory: () => kind === 'folder',
        isFile: () => kind === 'file',
      };
      const folder = path.slice(0, Math.max(0, end));
      const entries = folders.get(folder);
      if (entries) entries.push(entry);
      else folders.set(folder, [entry]);
    }
    this.#folders = folders;
  }

  readonly exists = (path: string): boolean => typeof this.#find(path) === 'object';

  readonly isFolder = (path: string): boolean => this.#get(path).object.kind === 'folder';

  readonly list = (folder: string): readonly TreeEntry[] => {
    return this.#folders.get(this.#get(folder).path) ?? [];
  };

  readonly read = (path: string, most: number = largestFile, check?: (found: string) => void): Buffer => {
    const { object } = this.#get(path);
    if (object.kind === 'folder') throw new UnreadableFile(path, { problem: 'kind', is: 'folder' });
    if (object.kind === 'other') throw new UnreadableFile(path, { problem: 'kind', is: 'submodule' });
    check?.(this.realPath(path));
    const bytes = this.#load([object], most)(object);
    if (bytes !== 'too-large' && bytes.length <= most) return bytes;
    throw new UnreadableFile(path, { problem: 'too-long', of: 'file', most });
  };

  readonly readNamed = (path: string, most?: number): Buffer => this.read(path, most);

  readonly realPath = (path: string): string => {
    const found = this.#find(path);
    return `${this.#revision}:/${typeof found === 'object' ? found.path : this.#fromTop(path)}`;
  };

  /** Always false, because links that lead out of the commit are not followed. */
  readonly isForeignLink = (): boolean => false;

  readonly join = (folder: string, name: string): string => {
    // "/" is the top of the repository. With it, "REVISION:" is a folder above its files, like any other folder.
    return `${this.#revision}:${this.#afterRevision(folder).replace(/(?<!\/)\/+$/, '')}/${name}`;
  };

  readonly locate = (path: string): string => join(this.#top(), this.#fromTop(path));

  readonly pathAt = (located: string): string => `${this.#revision}:${withSlashes(relative(this.#top(), located))}`;

  readonly expect = (paths: readonly string[]): void => {
    let wanted = new Map<string, GitObject>();
    // Load links first, then their targets, round by round.
    for (let round = 0; round <= mostLinks; round++) {
      const next = new Map<string, GitObject>();
      for (const path of paths) {
        const object = this.#nextUnread(path);
        if (object && !wanted.has(object.id)) next.set(object.id, object);
      }
      if (next.size === 0) return;
      this.#load([...next.values()]);
      wanted = new Map([...wanted, ...next]);
    }
  };

  #top(): string {
    return resolve('.', ...this.#prefix.split('/').map((part) => (part === '' ? '' : '..')));
  }

  #afterRevision(path: string): string {
    return path.slice(this.#revision.length + 1);
  }

  /** Returns the path from the top, without resolving links. Begins with ".." if the path leads out of the repository. */
  #fromTop(path: string): string {
    const written = this.#afterRevision(path);
    return normalizePath(/^\.\.?(?:\/|$)/.test(written) ? `${this.#prefix}/${written}` : written);
  }

  #get(path: string) {
    const found = this.#find(path);
    if (typeof found === 'object') return found;
    if (found !== 'missing') throw new UnreadableFile(path, found);
    const written = this.#afterRevision(path);
    const fromHere = `${this.#revision}:./${written}`;
    const isHere = this.#prefix !== '' && typeof this.#find(fromHere) === 'object';
    throw new UnreadableFile(path, {
      problem: 'not-in-revision',
      revision: this.#revision,
      ...(isHere && { here: fromHere }),
    });
  }

  #find(path: string): { readonly path: string; readonly object: GitObject } | LinkFault {
    let rest = this.#fromTop(path);
    for (let links = 0; links <= mostLinks; links++) {
      if (rest === '..' || rest.startsWith('../')) return 'outside';
      const link = this.#firstLink(rest);
      if (link === undefined) {
        const object = this.#objects.get(rest);
        return object ? { path: rest, object } : 'missing';
      }
      const target = this.#load([link.object])(link.object);
      if (target === 'too-large') return 'missing';
      const next = pastLink(link.path, target, rest);
      if (next === undefined) return 'outside';
      rest = next;
    }
    return 'link-loop';
  }

  #firstLink(path: string): { readonly path: string; readonly object: GitObject } | undefined {
    for (let end = path.indexOf('/'); ; end = path.indexOf('/', end + 1)) {
      const part = end < 0 ? path : path.slice(0, end);
      const object = this.#objects.get(part);
      if (object?.kind === 'link') return { path: part, object };
      if (end < 0 || !object) return undefined;
    }
  }

  #nextUnread(path: string): GitObject | undefined {
    let rest = this.#fromTop(path);
    for (let links = 0; links <= mostLinks; links++) {
      const link = this.#firstLink(rest);
      const object = link?.object ?? this.#objects.get(rest);
      if (!object || object.kind === 'folder' || object.kind === 'other') return undefined;
      const bytes = this.#bytes.get(object.id);
      if (bytes === undefined) return object;
      if (!link || bytes === 'too-large') return undefined;
      const next = pastLink(link.path, bytes, rest);
      if (next === undefined) return undefined;
      rest = next;
    }
    return undefined;
  }

  #load(objects: readonly GitObject[], most = largestFile): (object: GitObject) => Buffer | 'too-large' {
    const unread = objects.filter(({ id }) => !this.#bytes.has(id));
    if (unread.length > 0) {
      const read = readBlobs(
        unread.map(({ id }) => id),
        most,
      );
      if ('problem' in read) throw new UnreadableFile(`${this.#revision}:`, { problem: 'git', failure: read });
      for (const [id, bytes] of read) if (bytes !== 'too-large' || most === largestFile) this.#bytes.set(id, bytes);
    }
    return ({ id }) => this.#bytes.get(id) ?? 'too-large';
  }
}

/** Returns a path in which one of its links is replaced by the link's target. Undefined if the target is an absolute path. */
function pastLink(link: string, target: Buffer, path: string): string | undefined {
  const text = target.toString('utf8');
  return text.startsWith('/') ? undefined : normalizePath(`${link}/../${text}/${path.slice(link.length + 1)}`);
}

type LinkFault = 'missing' | 'outside' | 'link-loop';

function normalizePath(path: string): string {
  const normal = join('.', path).replace(/\/$/, '');
  return normal === '.' ? '' : normal;
}
