// Runs git without hooks and without network, and with a time limit.
import { largestFile } from '../base/read-file.ts';
import type { GitFailure } from '../base/unread.ts';
import { run } from '../programs/run-program.ts';

/** Limits for one run of git. Reading a tree takes a second in the largest repositories. */
const limits = { mostBytes: largestFile, longestRun: 60_000 };

/**
 * Git settings that override the repository's own, because the repository may be hostile. kpc calls only rev-parse, ls-tree and cat-file.
 * These run no hooks, filters or pagers, but a fetch for a partial clone could still run a program, so no protocol is allowed. A bare
 * repository inside the working tree is not used either.
 */
const settings = ['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'safe.bareRepository=explicit'];

const environment = {
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_NO_LAZY_FETCH: '1',
  // Read the revision itself, even if refs/replace names a replacement.
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_TERMINAL_PROMPT: '0',
  LC_ALL: 'C',
};

export function runGit(words: readonly string[], input = ''): Buffer | GitFailure {
  const options = settings.flatMap((each) => ['-c', each]);
  const user = { ...process.env, ...environment };
  const printed = run(['git', '--no-pager', ...options, ...words], { ...limits, input, environment: user }, 1);
  if (Buffer.isBuffer(printed)) return printed;
  const { problem, said } = printed;
  return { problem, said: said.replace(/^(?:fatal|error): /, '') };
}

export interface GitObject {
  /** `other` is a submodule. */
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly id: string;
}

function kindOfMode(mode: string): GitObject['kind'] {
  if (mode.startsWith('100')) return 'file';
  if (mode === '120000') return 'link';
  return mode === '040000' ? 'folder' : 'other';
}

/**
 * The most bytes in a listing. The largest repositories need a tenth of this. Without a limit, a few objects could stand for any number of
 * files.
 */
const largestListing = 2 ** 28;

const mostEntries = 1_000_000;

const mostLevels = 200;

export function listTree(tree: string): ReadonlyMap<string, GitObject> | GitFailure {
  const printed = runGit(['ls-tree', '-r', '-t', '-z', '--full-tree', tree]);
  if (!Buffer.isBuffer(printed)) return printed;
  if (printed.length > largestListing) return { problem: 'too-large', said: '' };
  const objects = new Map<string, GitObject>([['', { kind: 'folder', id: tree }]]);
  for (let at = 0; at < printed.length;) {
    const end = printed.indexOf(0, at);
    const line = printed.toString('utf8', at, end < 0 ? undefined : end);
    at = end < 0 ? printed.length : end + 1;
    const [, mode = '', id = '', path] = /^(\d{6}) [a-z]+ ([0-9a-f]+)\t(.*)$/s.exec(line) ?? [];
    if (path === undefined) continue;
    if (path.length > 2 * mostLevels && path.split('/').length > mostLevels) return { problem: 'too-large', said: '' };
    objects.set(path, { kind: kindOfMode(mode), id });
    if (objects.size > mostEntries) return { problem: 'too-large', said: '' };
  }
  return objects;
}

const largestBatch = 2 ** 29;

/** Reads blobs. If a blob has more than `most` bytes, does not read it and returns "too-large" for it. */
export function readBlobs(
  ids: readonly string[],
  most: number,
): ReadonlyMap<string, Buffer | 'too-large'> | GitFailure {
  const sizes = runGit(['cat-file', '--batch-check=%(objectname) %(objectsize)'], joinLines(ids));
  if (!Buffer.isBuffer(sizes)) return sizes;
  const found = new Map<string, Buffer | 'too-large'>();
  const wanted: string[] = [];
  let total = 0;
  for (const line of sizes.toString('latin1').split('\n')) {
    const [id = '', size = ''] = line.split(' ');
    if (id === '') continue;
    if (size === 'missing') return { problem: 'no-object', said: id };
    if (Number(size) > most) found.set(id, 'too-large');
    else {
      wanted.push(id);
      total += Number(size);
    }
  }
  if (total > largestBatch) return { problem: 'too-large', said: '' };
  if (wanted.length === 0) return found;
  const printed = runGit(['cat-file', '--batch'], joinLines(wanted));
  if (!Buffer.isBuffer(printed)) return printed;
  for (let at = 0; at < printed.length;) {
    const end = printed.indexOf('\n', at);
    const [id = '', type, size = ''] = printed.subarray(at, end).toString('latin1').split(' ');
    if (type !== 'blob') return { problem: 'no-object', said: id };
    found.set(id, printed.subarray(end + 1, end + 1 + Number(size)));
    at = end + 1 + Number(size) + 1;
  }
  return found;
}

function joinLines(ids: readonly string[]): string {
  return ids.map((id) => `${id}\n`).join('');
}
