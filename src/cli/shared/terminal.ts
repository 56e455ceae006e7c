import { largestFile } from '../../base/read-file.ts';
import { UnreadableFile } from '../../base/unread.ts';
import { disarm, unprintable } from '../../base/printable.ts';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { hasCode } from '../../base/system-errors.ts';
import { version } from '../../base/version.ts';

/** The exit statuses. docs/diagnostics.md lists them for users. */
export const exitStatus = {
  /** The command succeeded and found neither a difference nor a problem. */
  ok: 0,
  /** The command found a difference or a problem. */
  negative: 1,
  /** Bad input or usage. Nothing was written. */
  badInput: 2,
  /** The change failed. The node is as it was before. */
  notApplied: 3,
  /** The change failed, and so did the rollback. */
  notRestored: 4,
} as const;

export type ExitStatus = (typeof exitStatus)[keyof typeof exitStatus];

export type Done = (status: ExitStatus) => void;

/** A command's access to its streams and its terminal. Tests replace this object. */
export interface Terminal {
  readonly out: (text: string) => Promise<void>;
  readonly err: (text: string) => Promise<void>;
  /** Replaces the status line on stderr. "" removes it. Called only if stderr is a terminal. */
  readonly status: (text: string) => Promise<void>;
  /** Returns all of standard input, as bytes or as decoded text. Later calls return the same value. */
  readonly readStdin: () => Promise<Uint8Array | string>;
  readonly colour: { readonly out: boolean; readonly err: boolean };
  /** Whether stderr is a terminal. Progress is shown only there. */
  readonly interactive: boolean;
  /** The number of columns of the terminal that results go to. Undefined for a file or a pipe. */
  readonly width?: number | undefined;
  readonly quiet?: boolean;
}

/** Prints the version if the command line asks for nothing else. This loads no command. */
export async function printsVersion(argv: readonly string[], terminal: Terminal): Promise<boolean> {
  const isAsked = argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V');
  if (isAsked) await terminal.out(`${version}\n`);
  return isAsked;
}

/** Prints a text for people. Prints nothing with --quiet. */
export async function say(terminal: Terminal, text: string): Promise<void> {
  if (!terminal.quiet) await terminal.err(text);
}

/**
 * Replaces terminals that have hung up. Node restores each terminal at exit, and would abort at such a terminal. Leaves a descriptor alone
 * if it now belongs to another file.
 */
function leaveHungUp(): void {
  for (const fd of [0, 1, 2]) {
    try {
      if (!fstatSync(fd).isCharacterDevice() || isatty(fd)) continue;
      closeSync(fd);
      // The new descriptor gets the lowest free number, which is that of the descriptor just closed.
      openSync('/dev/null', 'r+');
    } catch {
      // A descriptor that was already closed is ignored, because Node handles it.
    }
  }
}

/**
 * Decides whether to write colours. NO_COLOR (no-color.org) turns a terminal's colours off. FORCE_COLOR overrides NO_COLOR and the
 * terminal: 0 and false mean no, anything else means yes.
 */
function wantsColour(environment: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: none, TERM: term } = environment;
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  return isTerminal && !none && term !== 'dumb';
}

export function processTerminal(): Terminal {
  process.on('exit', leaveHungUp);
  const hasColour = (stream: NodeJS.WriteStream) => wantsColour(process.env, stream.isTTY === true);
  let stdin: Promise<Uint8Array> | undefined;
  return {
    // Control characters are kept from a terminal. A file or another program gets every byte.
    out: (chunk) => writeChunk(process.stdout, process.stdout.isTTY ? makeHarmless(chunk) : chunk),
    // Every line is disarmed: no program reads stderr, but a CI service would act on commands in it.
    err: (chunk) => writeChunk(process.stderr, makeHarmless(chunk).split('\n').map(disarm).join('\n')),
    status: (text) => writeChunk(process.stderr, `\r${text}\u001b[K`),
    readStdin: () => (stdin ??= readToEnd(process.stdin)),
    colour: { out: hasColour(process.stdout), err: hasColour(process.stderr) },
    interactive: process.stderr.isTTY === true,
    width: process.stdout.isTTY ? process.stdout.columns : undefined,
  };
}

/** Reads a whole stream. Throws an UnreadableFile if the stream exceeds the limit for a file. */
async function readToEnd(stream: AsyncIterable<Buffer>): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  let total = 0;
  for await (const piece of stream) {
    total += piece.length;
    if (total > largestFile) throw new UnreadableFile('-', { problem: 'too-long', of: 'file', most: largestFile });
    pieces.push(piece);
  }
  return Buffer.concat(pieces, total);
}

/** The ANSI sequences that chalk writes to start and end a colour or weight. */
const colours: ReadonlySet<string> = new Set([1, 2, 22, 31, 32, 33, 34, 35, 36, 39].map((code) => `\u001b[${code}m`));

/** Replaces characters that a terminal would act on by dots. Keeps line ends, tabs and colours. */
function makeHarmless(text: string): string {
  return text.replace(unprintable, (found, at: number) =>
    found === '\n' || found === '\t' || [4, 5].some((length) => colours.has(text.slice(at, at + length))) ? found : '·',
  );
}

/** Resolves when the whole text is written, because a pipe takes it in pieces. A reader that stops early (head) is not an error. */
function writeChunk(stream: NodeJS.WriteStream, chunk: string): Promise<void> {
  // The stream reports an error both to this callback and by a later event. If nothing listens to the event, it ends the process.
  if (!stream.listeners('error').includes(ignoreError)) stream.on('error', ignoreError);
  return new Promise((resolve, reject) => {
    stream.write(chunk, (error) => {
      if (!error || hasCode(error, 'EPIPE')) resolve();
      else reject(error);
    });
  });
}

function ignoreError(): void {}
