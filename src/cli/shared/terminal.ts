import { largestFile, UnreadableFile } from '../../base/read-file.ts';
import { disarm, unprintable } from '../../base/printable.ts';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { hasCode } from '../../base/system-errors.ts';

/** What every command's exit status means (docs/diagnostics.md lists them for users). */
export const exitStatus = {
  /** Done; nothing differs; nothing found. */
  ok: 0,
  /** A difference, or a finding. */
  differs: 1,
  /** Bad input or usage: nothing was written. */
  badInput: 2,
  /** Could not apply, and the node is as it was. */
  notApplied: 3,
  /** Could not apply, nor put everything back. */
  notRestored: 4,
} as const;

/** One of the exit statuses of both programs. */
export type ExitStatus = (typeof exitStatus)[keyof typeof exitStatus];

/** How a command says that it has ended. */
export type Done = (status: ExitStatus) => void;

/** What a command knows of the world around it: handed in, so that tests hand in their own. */
export interface Terminal {
  readonly out: (text: string) => Promise<void>;
  readonly err: (text: string) => Promise<void>;
  /** Shows a line on stderr in the place of the one shown so before; '' takes it away. For a user who watches. */
  readonly status: (text: string) => Promise<void>;
  /** All of standard input: bytes, or a text that was bytes before. The same each time: it is read once. */
  readonly readStdin: () => Promise<Uint8Array | string>;
  readonly colour: { readonly out: boolean; readonly err: boolean };
  /** Whether a user watches stderr: progress is for them only. */
  readonly interactive: boolean;
  /** How many columns the terminal has that results are printed on; undefined for a file or a pipe. */
  readonly width?: number | undefined;
  /** Whether only results and errors are wanted. */
  readonly quiet?: boolean;
}

/** Writes a note or a summary to stderr, unless the user asked for quiet. */
export async function say(terminal: Terminal, text: string): Promise<void> {
  if (!terminal.quiet) await terminal.err(text);
}

/**
 * Node sets each terminal back at its exit to what it was, and aborts where that fails: after the terminal has hung up.
 * What has hung up is neither a terminal any more nor a file, and Node leaves alone what has become another file.
 */
function leaveHungUp(): void {
  for (const fd of [0, 1, 2]) {
    try {
      if (!fstatSync(fd).isCharacterDevice() || isatty(fd)) continue;
      closeSync(fd);
      // The lowest number that is free, which is this one.
      openSync('/dev/null', 'r+');
    } catch {
      // It was closed already, and Node knows that.
    }
  }
}

/**
 * Whether a stream gets colour: a terminal does, but not where NO_COLOR is set (no-color.org). FORCE_COLOR wins over both, as
 * Node and CI services have it: 0 and false say no, anything else yes.
 */
function wantsColour(environment: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: none, TERM: term } = environment;
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  return isTerminal && !none && term !== 'dumb';
}

/** The process's own streams. */
export function processTerminal(): Terminal {
  process.on('exit', leaveHungUp);
  const hasColour = (stream: NodeJS.WriteStream) => wantsColour(process.env, stream.isTTY === true);
  let stdin: Promise<Uint8Array> | undefined;
  return {
    // A terminal gets nothing that it would act on, whatever its source; a file or another program gets every byte.
    out: (chunk) => write(process.stdout, process.stdout.isTTY ? makeHarmless(chunk) : chunk),
    // Nothing on it is for programs, and a CI shows it, and acts on it, too.
    err: (chunk) => write(process.stderr, makeHarmless(chunk).split('\n').map(disarm).join('\n')),
    status: (text) => write(process.stderr, `\r${text}\u001b[K`),
    readStdin: () => (stdin ??= readToEnd(process.stdin)),
    colour: { out: hasColour(process.stdout), err: hasColour(process.stderr) },
    interactive: process.stderr.isTTY === true,
    width: process.stdout.isTTY ? process.stdout.columns : undefined,
  };
}

/** As much as is read of a file, and no more. */
async function readToEnd(stream: AsyncIterable<Buffer>): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  let total = 0;
  for await (const piece of stream) {
    total += piece.length;
    if (total > largestFile) throw new UnreadableFile('-', 'standard input is too large: split it into several files');
    pieces.push(piece);
  }
  return Buffer.concat(pieces, total);
}

/** What chalk writes for the colours and weights that kpc uses, and for their ends. */
const colours: ReadonlySet<string> = new Set([1, 2, 22, 31, 32, 33, 34, 35, 36, 39].map((code) => `\u001b[${code}m`));

/** The text with a dot for each character that a terminal would act on, except for line ends, tabs and colours. */
function makeHarmless(text: string): string {
  return text.replace(unprintable, (found, at: number) =>
    found === '\n' || found === '\t' || [4, 5].some((length) => colours.has(text.slice(at, at + length))) ? found : '·',
  );
}

/**
 * Waits until the text is gone: a pipe takes it in pieces. A reader that left early (head) is no error. Rejects with any
 * other error of the stream.
 */
function write(stream: NodeJS.WriteStream, chunk: string): Promise<void> {
  // The stream reports an error twice: here, and by an event later on, which would end the process without a listener.
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore);
  return new Promise((resolve, reject) => {
    stream.write(chunk, (error) => {
      if (!error || hasCode(error, 'EPIPE')) resolve();
      else reject(error);
    });
  });
}

function ignore(): void {}
