import { formatCount } from '../../base/format-count.ts';
import type { Terminal } from '../shared/terminal.ts';

/** Shows on a terminal how far a long run is; elsewhere nothing. */
export interface Progress {
  readonly step: () => Promise<void>;
  /** Clears the line. */
  readonly end: () => Promise<void>;
}

/** How often the line is written anew, in milliseconds. */
const interval = 100;

export function showProgress(total: number, terminal: Terminal): Progress {
  if (!terminal.interactive) return { step: async () => {}, end: async () => {} };
  const start = Date.now();
  let shown = start;
  let done = 0;
  return {
    step: async () => {
      done++;
      const now = Date.now();
      if (now - shown < interval) return;
      shown = now;
      const left = Math.ceil(((now - start) / done) * (total - done) * 0.001);
      await terminal.status(`${formatCount(done)} of ${formatCount(total)} nodes, ${left} s left`);
    },
    end: () => terminal.status(''),
  };
}
