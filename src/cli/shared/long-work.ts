import { Worker } from 'node:worker_threads';
import type { Terminal } from './terminal.ts';

/**
 * The values of the first item in the memory that the threads share. This item says which thread may write the terminal's line. The second
 * item says whether the line shows the time.
 */
const free = 0;
const writing = 1;
const taken = 2;

/** Writes the line, after the first second. This code runs in another thread, because timers do not fire while kpc compiles. */
const ticking = new URL(
  `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from 'node:fs';
  import { workerData } from 'node:worker_threads';
  const { shared, name } = workerData;
  const start = Date.now();
  setInterval(() => {
    const seconds = Math.floor((Date.now() - start) / 1000);
    if (seconds < 1 || Atomics.compareExchange(shared, 0, ${free}, ${writing}) !== ${free}) return;
    try {
      writeSync(2, '\\r' + name + ': ' + seconds + ' s\\x1b[K');
      Atomics.store(shared, 1, 1);
    } catch {
    } finally {
      Atomics.store(shared, 0, ${free});
    }
  }, 250);
`)}`,
);

/** On a terminal, shows how long the work has taken, after the first second. Stops when the work prints its result or its own progress. */
export async function showTimeTaken<Result>(
  name: string,
  terminal: Terminal,
  run: (terminal: Terminal) => Promise<Result>,
): Promise<Result> {
  if (!terminal.interactive) return run(terminal);
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(ticking, { workerData: { shared, name } });
  worker.unref();
  // Errors of the thread are ignored, because the work does not need the line.
  worker.on('error', () => {});
  const takeLine = async (): Promise<void> => {
    while (Atomics.compareExchange(shared, 0, free, taken) === writing) Atomics.wait(shared, 0, writing, 10);
    if (Atomics.exchange(shared, 1, 0) === 1) await terminal.status('');
  };
  let isOver = false;
  const giveBack = (): void => {
    if (!isOver) Atomics.store(shared, 0, free);
  };
  /** Hides the line while a text is written. Once a part of the result is written, the line does not return. */
  const around = (write: (text: string) => Promise<void>, isResult: boolean) => async (text: string) => {
    isOver ||= isResult;
    await takeLine();
    await write(text);
    giveBack();
  };
  try {
    return await run({
      ...terminal,
      out: around(terminal.out, true),
      status: around(terminal.status, true),
      err: around(terminal.err, false),
      readStdin: async () => {
        // The time is not shown while a user types input on the line.
        await takeLine();
        const input = await terminal.readStdin();
        giveBack();
        return input;
      },
    });
  } finally {
    await takeLine();
    await worker.terminate();
  }
}
