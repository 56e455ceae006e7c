/**
 * Whether to try all cases, as in `npm run test:slow`, or only a part, as in `npm test`. vitest.config.ts runs each test file that imports
 * this module in both, except slow ones.
 */
export const triesAll = process.env['KPC_ALL_ROUNDS'] === '1';

/** Whether to try all combinations, as in `npm run test:all`. */
export const isFull = process.env['KPC_FULL'] === '1';

/** Returns how many rounds a test with random input runs: all, or a share of them. */
export function rounds(all: number, share = 10): number {
  return triesAll ? all : Math.ceil(all / share);
}

/** Returns all of these cases, or only the first few. For slow cases that all check the same. */
export function some<T>(cases: readonly T[], few = 1): readonly T[] {
  return triesAll ? cases : cases.slice(0, few);
}
