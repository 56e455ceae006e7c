// Compiles in its own thread, so that a large paste does not block the page.
import { startCompiler } from './compiler.ts';
import type { Answer, Question } from './questions.ts';

export interface Asked {
  readonly id: number;
  readonly question: Question;
}

export interface Answered {
  readonly id: number;
  readonly answer: Answer;
}

const answer = startCompiler();

self.addEventListener('message', ({ data }: MessageEvent<Asked>) => {
  const { id, question } = data;
  self.postMessage({ id, answer: tryAnswer(question) } satisfies Answered);
});

function tryAnswer(question: Question): Answer {
  try {
    return answer(question);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'wrong', text: `this is a bug of kpc, please report it with the text: ${reason}` };
  }
}
