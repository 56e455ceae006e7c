import type { CommandEnd } from '../../base/findings/apply.ts';
import type { PathLevel } from '../../base/held-path.ts';
import type { KeepsLine, Room } from './output.ts';

/** The node as kpc-apply uses it. Tests replace it. Nothing else in src/apply touches processes, files or clocks. */
export interface Host {
  readonly pid: number;
  /** A variable, as "NAME=value", that only the tools of this process have in their environment. */
  readonly toolMark: string;
  readonly user: { readonly uid: number; readonly invoker: { readonly uid: number; readonly gid: number } | undefined };
  /** Finds out who could change the file or folder at this path, and holds it open. */
  examine(path: string): Promise<ExaminedPath>;
  /** The command that starts this program again: Node and its file, or one binary. Undefined if unknown. */
  readonly program?: readonly string[] | undefined;
  readonly toolPath?: string | undefined;
  /** Runs a tool in the C locale until it ends. Throws a Failure if the tool does not end in time. */
  run(command: ToolCommand, patience?: Patience): Promise<CommandResult>;
  /** Starts a process that outlives this process and its terminal. Returns at the new process's first output, or throws. */
  startApart(command: ToolCommand): Promise<void>;
  kill(pid: number): Promise<void>;
  /** Returns undefined for a missing file. Throws a Failure if a listing exceeds its memory limit. `listing` is for files in /proc. */
  readFile(path: string, listing?: Listing): Promise<string | undefined>;
  writeFile(path: string, text: string): Promise<void>;
  isWritable(path: string): Promise<boolean>;
  /** Writes a whole file, replacing any other. Returns once the file would survive a power cut. */
  replaceFile(path: string, text: string): Promise<void>;
  /** Renames a file. Returns once the new name would survive a power cut. */
  renameFile(from: string, to: string): Promise<void>;
  /** Removes a file, or a folder with its content. Does nothing if the path does not exist. */
  remove(path: string): Promise<void>;
  list(path: string): Promise<readonly string[]>;
  /** Returns the target of a symbolic link; undefined if the link does not exist. Throws if it cannot be read. */
  readLink(path: string): Promise<string | undefined>;
  sleep(milliseconds: number): Promise<void>;
  /** Milliseconds since 1970. Only for display, because this clock may be changed. */
  now(): number;
  /** Milliseconds since boot, for measuring time. Never goes back, and is the same for all processes. */
  uptime(): number;
}

export interface ExaminedPath {
  /** The target, the symbolic links to it and all parent folders; only the folders if the target is missing. */
  readonly levels: readonly PathLevel[];
  /** Leads to the examined file itself until `close`, even if the original path is replaced. */
  readonly path: string;
  examine(name: string): Promise<ExaminedPath>;
  close(): void;
}

export interface Listing {
  /** Called once for each line, in order; undefined keeps all lines. */
  readonly keeps?: KeepsLine | undefined;
  readonly room?: Room | undefined;
}

export interface ToolCommand extends Listing {
  readonly tool: string;
  readonly args: readonly string[];
  readonly stdin?: string | undefined;
}

export interface Patience {
  /** Milliseconds until the tool is killed. If undefined, the host decides. */
  readonly limit?: number | undefined;
  /** Called when the tool takes long, then each minute. Both arguments are milliseconds. */
  readonly onWaiting?: ((taken: number, limit: number) => void) | undefined;
  /** After an abort, the tool has a few seconds to end. */
  readonly signal?: AbortSignal | undefined;
}

/** `status` is undefined if a signal ended the tool. */
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

/** Shortens a tool's message and replaces control characters, because a broken tool may print anything. */
export function excerptOf(output: string): string {
  const lines = output
    .trim()
    .replace(/(?:[^\P{Cc}\n\t]|\ufffd)+/gu, '\ufffd')
    .split('\n')
    .map((line) => (line.length > mostCharacters ? `${line.slice(0, mostCharacters)}…` : line));
  return [...lines.slice(0, mostLines), ...(lines.length > mostLines ? ['…'] : [])].join('\n');
}
