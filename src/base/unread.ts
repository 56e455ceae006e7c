import type { Exceeded } from './bounds.ts';
import { describeError } from './system-errors.ts';

export type ProgramProblem = 'no-program' | 'too-large' | 'too-slow' | 'failed';

/** Why git could not read. `said`: git's stderr, or the id of an object that the clone lacks. */
export interface GitFailure {
  readonly problem: ProgramProblem | 'no-object';
  readonly said: string;
}

/** A format that kpc does not unpack. */
export type Packed = 'gzip' | 'zstd' | 'xz' | 'bzip2' | 'zip';

/** The reason for not reading a path. */
export type Unread =
  | PlainUnread
  | { readonly problem: 'within'; readonly path: string; readonly reason: Unread }
  | { readonly problem: 'said'; readonly said: string }
  | ({ readonly problem: 'too-long' } & Exceeded)
  | { readonly problem: 'kind'; readonly is: 'folder' | 'named pipe' | 'socket' | 'device' | 'link' | 'submodule' }
  /** `folder` is undefined for a repository. */
  | { readonly problem: 'link-outside'; readonly folder?: string }
  /** `isTar` means that kpc could read the content after unpacking. */
  | { readonly problem: 'packed'; readonly by: Packed; readonly isTar?: boolean }
  | { readonly problem: 'several-nodes'; readonly example: string | undefined }
  /** `type` is the type of the key that was found instead. */
  | { readonly problem: 'no-key'; readonly of: 'private' | 'public'; readonly type?: string | undefined }
  | { readonly problem: 'git'; readonly failure: GitFailure }
  | RevisionLacks;

export type PlainUnread =
  | 'made-by-kernel'
  | 'outside'
  | 'link-loop'
  | 'damaged'
  | 'no-pack'
  | 'not-signed'
  | 'passphrase'
  | 'private-key'
  | 'more-than-keys';

/** `here` is a path that exists in the revision. */
interface RevisionLacks {
  readonly problem: 'not-in-revision';
  readonly revision: string;
  readonly here?: string;
}

/** An error that quotes no content of the file. Has the shape of a system error, because it is not a bug in kpc. */
export class UnreadableFile extends Error {
  readonly code = 'EUNREADABLE';
  readonly syscall = 'read';
  readonly path: string;
  readonly reason: Unread;

  constructor(path: string, reason: Unread) {
    super(`${path}: ${JSON.stringify(reason)}`);
    this.name = 'UnreadableFile';
    this.path = path;
    this.reason = reason;
  }
}

/** Returns why a path was not read. `named`: the path that the message already names. */
export function unreadOf(error: unknown, named?: string): Unread {
  if (!(error instanceof UnreadableFile)) return { problem: 'said', said: describeError(error) };
  const { path, reason } = error;
  return path === named ? reason : { problem: 'within', path, reason };
}
