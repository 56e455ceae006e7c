import { fork, type ChildProcess } from 'node:child_process';
import { refuseUse } from './refusals.ts';

/** Limits for one question. */
export interface Limits {
  /** Milliseconds until the answer. */
  readonly time: number;
  /** MiB of JavaScript values. */
  readonly memory: number;
  /** Characters of all waiting questions. */
  readonly waiting: number;
}

const usualLimits: Limits = { time: 9000, memory: 320, waiting: 2 ** 23 };

interface Question {
  /** The question as JSON, because a waiting question then takes only the memory of its characters. */
  readonly text: string;
  readonly settle: (answer: string | Promise<never>) => void;
  readonly timer: NodeJS.Timeout;
}

async function excess(reason: string): Promise<never> {
  return refuseUse(reason, 'ask about fewer files, or run kpc itself on them');
}

/**
 * Answers questions one by one in another process, because JavaScript cannot be interrupted and V8 ends a process that runs out of memory.
 * A question beyond the limits ends the process, and the next question starts a new one.
 */
export class Answers {
  readonly #program: string;
  readonly #words: readonly string[];
  readonly #limits: Limits;
  readonly #waiting: Question[] = [];
  #child: ChildProcess | undefined;
  #current: Question | undefined;

  /** `program` and `words` start a process that calls `answerQuestions`. */
  constructor(program: string, words: readonly string[], limits: Limits = usualLimits) {
    this.#program = program;
    this.#words = words;
    this.#limits = limits;
  }

  /** Returns the answer. If there is none within the limits, rejects with a Refusal that names the limit. */
  async ask(question: unknown): Promise<string> {
    const text = JSON.stringify(question);
    const { time, waiting } = this.#limits;
    const size = this.#waiting.reduce((sum, each) => sum + each.text.length, text.length);
    if (size > waiting) refuseUse('kpc-mcp has too many questions to answer', 'ask again later');
    return new Promise<string>((resolve) => {
      const timer = setTimeout(() => this.#end(asked, `this takes longer than ${time / 1000} s`), time);
      const asked: Question = { text, timer, settle: resolve };
      this.#waiting.push(asked);
      this.#next();
    });
  }

  close(): void {
    this.#child?.kill('SIGKILL');
  }

  #next(): void {
    if (this.#current) return;
    this.#current = this.#waiting.shift();
    if (!this.#current) return;
    this.#child ??= this.#start();
    this.#child.ref();
    this.#child.send(this.#current.text, () => {});
  }

  #start(): ChildProcess {
    const child = fork(this.#program, this.#words, {
      execArgv: [`--max-old-space-size=${this.#limits.memory}`, '--max-semi-space-size=4'],
      // Discard the output that V8 prints when it runs out of memory.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // The child does not keep the server running.
    child.unref();
    child.channel?.unref();
    child.on('message', (answer) => {
      if (child === this.#child && this.#current) this.#settle(this.#current, String(answer));
    });
    child.on('error', () => {});
    child.on('exit', () => {
      if (child !== this.#child) return;
      this.#child = undefined;
      if (this.#current) this.#settle(this.#current, excess('this takes more memory than kpc-mcp may use'));
    });
    return child;
  }

  #end(question: Question, reason: string): void {
    if (question === this.#current) {
      const child = this.#child;
      this.#child = undefined;
      child?.kill('SIGKILL');
    } else this.#waiting.splice(this.#waiting.indexOf(question), 1);
    this.#settle(question, excess(reason));
  }

  #settle(question: Question, answer: string | Promise<never>): void {
    clearTimeout(question.timer);
    question.settle(answer);
    if (question !== this.#current) return;
    this.#current = undefined;
    this.#child?.unref();
    this.#next();
  }
}

export function answerQuestions(answer: (question: unknown) => Promise<string>): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (text) => void answer(JSON.parse(String(text))).then((said) => process.send?.(said)));
}
