import type { CommandEnd } from '../../base/findings/apply.ts';
import type { PathLevel } from '../../base/held-path.ts';
import type { KeepsLine, Room } from './output.ts';

/** All that kpc-apply asks of the node: tests replace it. Nothing else here touches processes, files or clocks. */
export interface Host {
  readonly pid: number;
  /** "NAME=value" in the environment of this process's tools, and of no other process. */
  readonly toolMark: string;
  readonly user: { readonly uid: number; readonly invoker: { readonly uid: number; readonly gid: number } | undefined };
  /** Finds out who could change what a path leads to, and holds it open. */
  examine(path: string): Promise<ExaminedPath>;
  /** How to start this program again: Node and its file, or one binary. Undefined if unknown. */
  readonly program?: readonly string[] | undefined;
  readonly toolPath?: string | undefined;
  /** Runs a tool to its end, in the C locale. Throws a Failure if it does not end in time. */
  run(command: ToolCommand, patience?: Patience): Promise<CommandResult>;
  /** Starts a process that outlives this one and its terminal. Returns at its first output, or throws. */
  startApart(command: ToolCommand): Promise<void>;
  kill(pid: number): Promise<void>;
  /** Undefined if there is no such file. Throws a Failure if a listing has no room; `listing` is for files of /proc. */
  readFile(path: string, listing?: Listing): Promise<string | undefined>;
  writeFile(path: string, text: string): Promise<void>;
  isWritable(path: string): Promise<boolean>;
  /** Writes a whole file, replacing any other, and returns once it would survive a power cut. */
  replaceFile(path: string, text: string): Promise<void>;
  /** Renames, and returns once that would survive a power cut. */
  renameFile(from: string, to: string): Promise<void>;
  /** Removes a file or a folder with its content; a missing one is fine. */
  remove(path: string): Promise<void>;
  list(path: string): Promise<readonly string[]>;
  /** The target of a symbolic link; undefined if there is none. Throws if it may not be read. */
  readLink(path: string): Promise<string | undefined>;
  sleep(milliseconds: number): Promise<void>;
  /** Milliseconds since 1970, only for display: that clock may be set forward or back. */
  now(): number;
  /** Milliseconds since boot, to measure time with: never goes back, and is the same for all processes. */
  uptime(): number;
}

/** The file that a path leads to, held by a descriptor, and who could change it. */
export interface ExaminedPath {
  /** The target, its links, and all folders above; only folders if the path leads to no file or folder. */
  readonly levels: readonly PathLevel[];
  /** Reads exactly what was examined, until it is closed. */
  readonly path: string;
  /** Examines an entry of this folder by name: the levels below the folder. */
  examine(name: string): Promise<ExaminedPath>;
  close(): void;
}

/** The part to keep of a listing whose length others choose. A host may keep more, so the reader must ignore the rest. */
export interface Listing {
  /** Sees each line once, in order; undefined keeps all. */
  readonly keeps?: KeepsLine | undefined;
  /** The room that it shares with other listings. */
  readonly room?: Room | undefined;
}

export interface ToolCommand extends Listing {
  readonly tool: string;
  readonly args: readonly string[];
  readonly stdin?: string | undefined;
}

export interface Patience {
  /** Milliseconds until the tool is killed; undefined leaves that to the host. */
  readonly limit?: number | undefined;
  /** Called when the tool takes long, then each minute, with its time so far and its limit in milliseconds. */
  readonly onWaiting?: ((taken: number, limit: number) => void) | undefined;
  /** Once aborted, a tool has a few seconds left. */
  readonly signal?: AbortSignal | undefined;
}

/** `status` is undefined if a signal ended it. */
export type CommandResult =
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'ended';
      readonly status: number | undefined;
      readonly signal?: string | undefined;
      readonly stdout: string;
      readonly stderr: string;
      readonly cut?: 'stdout' | 'stderr' | undefined;
    };

export function formatCommand(command: ToolCommand): string {
  return [command.tool, ...command.args].join(' ');
}

export function endOf(command: ToolCommand, { status, signal, stderr }: CommandResult & { kind: 'ended' }): CommandEnd {
  return { command: formatCommand(command), status, signal, said: excerptOf(stderr) };
}

const mostLines = 5;
const mostCharacters = 200;

/** A tool's message, cut short: a broken one may print anything. */
export function excerptOf(output: string): string {
  const lines = output
    .trim()
    .replace(/(?:[^\P{Cc}\n\t]|\ufffd)+/gu, '\ufffd')
    .split('\n')
    .map((line) => (line.length > mostCharacters ? `${line.slice(0, mostCharacters)}…` : line));
  return [...lines.slice(0, mostLines), ...(lines.length > mostLines ? ['…'] : [])].join('\n');
}
