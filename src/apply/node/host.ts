import type { PathLevel } from '../../base/held-path.ts';
import type { KeepsLine, Room } from './output.ts';

/**
 * Everything that kpc-apply asks of the node it runs on. Nothing else in this folder touches processes, files or
 * clocks, so that a test can replace a node and fail wherever it likes.
 */
export interface Host {
  /** The process id, which names the holder of the lock. */
  readonly pid: number;
  /** The variable that all tools of this process have in their environment, "NAME=value": of no other process. */
  readonly toolMark: string;
  /** Who runs this, and who became that user by sudo or pkexec to run it. */
  readonly user: { readonly uid: number; readonly invoker: { readonly uid: number; readonly gid: number } | undefined };
  /** Says who could change what a path leads to, and holds that. */
  examine(path: string): Promise<ExaminedPath>;
  /** How to start this program anew: Node and its file, or the one file that is both. Undefined if that is unknown. */
  readonly program?: readonly string[] | undefined;
  /** Where tools are looked for, as a PATH. */
  readonly toolPath?: string | undefined;
  /** Runs a tool to its end, with its output in the C locale. Throws a Failure for one that does not end in time. */
  run(command: Command, patience?: Patience): Promise<CommandResult>;
  /**
   * Starts a process that outlives this one, its terminal and its process group: in a session of its own. Returns when
   * it has said its first word, and throws if it ends before.
   */
  startApart(command: Command): Promise<void>;
  /** Ends a process at once, whatever it does. One that has gone is as good as ended. */
  kill(pid: number): Promise<void>;
  /**
   * Undefined if there is no such file. Throws a Failure for a listing of the kernel that has no room; `listing` goes for files of
   * /proc.
   */
  readFile(path: string, listing?: Listing): Promise<string | undefined>;
  /** Writes into a file that is there, as /proc and /sys want it. */
  writeFile(path: string, text: string): Promise<void>;
  /** Whether a file is there and this process may write into it. */
  isWritable(path: string): Promise<boolean>;
  /** Writes a whole file, replacing any other, and returns only when it would survive a power cut. */
  replaceFile(path: string, text: string): Promise<void>;
  /** Renames, and returns only when that would survive a power cut. */
  renameFile(from: string, to: string): Promise<void>;
  /** Removes a file or a folder with all in it; one that is not there is as good as removed. */
  remove(path: string): Promise<void>;
  /** The names in a folder; none if there is no such folder. */
  list(path: string): Promise<readonly string[]>;
  /** What a symbolic link points to; undefined if there is none. Throws where it may not be read. */
  readLink(path: string): Promise<string | undefined>;
  sleep(milliseconds: number): Promise<void>;
  /** Milliseconds since 1970, for people to read: that clock may be set, forward or back. */
  now(): number;
  /** Milliseconds since the node booted, to measure time by: they only grow, and mean the same to every process. */
  uptime(): number;
}

/** What a path leads to, held by a descriptor, and who could change that. */
export interface ExaminedPath {
  /** It, what leads to it, and all folders above both. Only those above where the path leads to no file or folder. */
  readonly levels: readonly PathLevel[];
  /** The path by which to read it: of the very thing that was examined, until it is closed. */
  readonly path: string;
  /** The same for what is in this folder, by its name: the levels below the folder. */
  examine(name: string): Promise<ExaminedPath>;
  close(): void;
}

/** What is kept of a listing whose length others choose. A host may keep all: the rest must mean nothing to who reads it. */
export interface Listing {
  /** Sees each line once, in order; undefined keeps all. */
  readonly keeps?: KeepsLine | undefined;
  /** What it shares with other listings. */
  readonly room?: Room | undefined;
}

/** A tool with its arguments, and what it is to read. With `room` it lists, and a listing that is cut is of no use. */
export interface Command extends Listing {
  readonly tool: string;
  readonly args: readonly string[];
  readonly stdin?: string | undefined;
}

/** How long a tool is waited for, and who hears of it. */
export interface Patience {
  /** Milliseconds until the tool is ended; undefined leaves that to the host. */
  readonly limit?: number | undefined;
  /** Called when the tool takes long, and again each minute: with how long it has taken, and may take, in milliseconds. */
  readonly onWaiting?: ((taken: number, limit: number) => void) | undefined;
  /** Once it is aborted, a tool has a few seconds left to end. */
  readonly signal?: AbortSignal | undefined;
}

/** How a tool ended. `status` is undefined if a signal ended it. */
export type CommandResult =
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'ended';
      readonly status: number | undefined;
      readonly signal?: string | undefined;
      readonly stdout: string;
      readonly stderr: string;
      /** Which of the two was too long, and is cut: what is there is its beginning. */
      readonly cut?: 'stdout' | 'stderr' | undefined;
    };

/** "ipset restore", as people would type it. */
export function formatCommand(command: Command): string {
  return [command.tool, ...command.args].join(' ');
}

/** How a tool ended that failed: `"ipset restore" exited with status 1`. */
export function describeEnd(command: Command, { status, signal }: CommandResult & { readonly kind: 'ended' }): string {
  const how = status === undefined ? `was killed by ${signal ?? 'a signal'}` : `exited with status ${status}`;
  return `"${formatCommand(command)}" ${how}`;
}

const mostLines = 5;
const mostCharacters = 200;

/** What a tool says of its trouble, cut short: a broken one may say anything. */
export function excerptOf(output: string): string {
  const lines = output
    .trim()
    .replace(/(?:[^\P{Cc}\n\t]|\ufffd)+/gu, '\ufffd')
    .split('\n')
    .map((line) => (line.length > mostCharacters ? `${line.slice(0, mostCharacters)}…` : line));
  return [...lines.slice(0, mostLines), ...(lines.length > mostLines ? ['…'] : [])].join('\n');
}
