import { text } from 'node:stream/consumers';

/** What a command knows of the world around it: handed in, so that tests hand in their own. */
export interface Terminal {
  readonly out: (text: string) => Promise<void>;
  readonly err: (text: string) => Promise<void>;
  /** All of standard input. */
  readonly readStdin: () => Promise<string>;
  readonly colour: { readonly out: boolean; readonly err: boolean };
  /** Whether somebody watches stderr: progress is for them only. */
  readonly interactive: boolean;
}

/** The process's own streams. Colour on a terminal only, and not where NO_COLOR is set (no-color.org). */
export function processTerminal(): Terminal {
  const allowed = !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';
  return {
    out: (chunk) => write(process.stdout, chunk),
    err: (chunk) => write(process.stderr, chunk),
    readStdin: () => text(process.stdin),
    colour: { out: allowed && process.stdout.isTTY === true, err: allowed && process.stderr.isTTY === true },
    interactive: process.stderr.isTTY === true,
  };
}

/** Waits until the text is gone: a pipe takes it in pieces. A reader that left early (head) is no error. */
function write(stream: NodeJS.WriteStream, chunk: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.once('error', onError);
    stream.write(chunk, (error) => {
      stream.off('error', onError);
      if (!error || isBrokenPipe(error)) resolve();
      else reject(error);
    });
    function onError(error: Error): void {
      if (isBrokenPipe(error)) resolve();
      else reject(error);
    }
  });
}

function isBrokenPipe(error: Error): boolean {
  return 'code' in error && error.code === 'EPIPE';
}
