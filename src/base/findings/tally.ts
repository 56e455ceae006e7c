import { placeAtLine, diagnose, type Finding } from './finding.ts';
import type { FindingCode } from './codes.ts';
import type { Severity } from './rows.ts';

/** How many diagnostics of one code are made of one file: a megabyte of mistakes has a million. */
export const mostOfCode = 300;

/** The same where programs read the diagnostics to the last. */
export const mostForPrograms = 10_000;

/** Counts the diagnostics of one file, so that only the first of each code are made. */
export class Tally {
  readonly #most: number;
  readonly #counts = new Map<FindingCode, Record<Severity, number>>();

  constructor(most: number = mostOfCode) {
    this.#most = most;
  }

  /** Whether one more of that code is to be made; else it is counted. */
  admits(code: FindingCode, severity: Severity): boolean {
    const counts = this.#counts.get(code) ?? { error: 0, warning: 0, note: 0 };
    this.#counts.set(code, counts);
    return ++counts[severity] <= this.#most;
  }

  /** Whether all others of that code are only counted. */
  isFull(code: FindingCode, severity: Severity): boolean {
    return (this.#counts.get(code)?.[severity] ?? 0) >= this.#most;
  }

  /** Says how many were not made. */
  rest(file: string): readonly Finding[] {
    return [...this.#counts].flatMap(([code, counts]) =>
      (['error', 'warning', 'note'] as const).flatMap((severity) => {
        const count = counts[severity] - this.#most;
        return count > 0 ? [diagnose('not-shown', { severity, count, of: code }, placeAtLine(file))] : [];
      }),
    );
  }
}
