import type { Answer, Question } from './questions.ts';
import { scriptUrl } from './script-url.ts';
import type { Answered, Asked } from './worker.ts';

/** Asks the compiler. A newer question replaces a waiting one of the same kind. */
export interface Asker {
  readonly ask: (question: Question, use: (answer: Answer) => void) => void;
}

interface Waiting {
  readonly question: Question;
  readonly use: (answer: Answer) => void;
}

/** Milliseconds after which a busy worker is stopped if a newer question comes. */
const patience = 5_000;

export function startAsker(onBusy: (isBusy: boolean) => void): Asker {
  let worker = start();
  let id = 0;
  let current: (Waiting & { readonly id: number; readonly since: number }) | undefined;
  const waiting = new Map<Question['kind'], Waiting>();

  function start(): Worker {
    const started = new Worker(scriptUrl('worker.js'));
    started.addEventListener('message', ({ data }: MessageEvent<Answered>) => {
      if (data.id !== current?.id) return;
      const { question, use } = current;
      current = undefined;
      // Do not show an answer that is already out of date.
      if (!waiting.has(question.kind)) use(data.answer);
      next();
    });
    started.addEventListener('error', () => {
      const use = current?.use;
      current = undefined;
      use?.({ kind: 'wrong', text: 'the compiler could not be loaded: reload the page' });
      next();
    });
    return started;
  }

  function next(): void {
    const [kind] = waiting.keys();
    const first = kind === undefined ? undefined : waiting.get(kind);
    onBusy(first !== undefined);
    if (kind === undefined || !first) return;
    waiting.delete(kind);
    id += 1;
    current = { ...first, id, since: performance.now() };
    worker.postMessage({ id, question: first.question } satisfies Asked);
  }

  return {
    ask: (question, use) => {
      waiting.set(question.kind, { question, use });
      if (current && performance.now() - current.since > patience) {
        worker.terminate();
        worker = start();
        current = undefined;
      }
      if (!current) next();
    },
  };
}
