/**
 * Whether all is tried, as in `npm run test:slow`, or a part, as in `npm test`. vitest.config.ts runs each test file that imports
 * this module in both, but for slow ones.
 */
export const triesAll = process.env['KPC_ALL_ROUNDS'] === '1';

/** Whether products of what is tried are gone through whole, as in `npm run test:all`. */
export const isFull = process.env['KPC_FULL'] === '1';

/** How many rounds a test with random input takes: all of them, or a share, which is a fifth. */
export function rounds(all: number, share = 5): number {
  return triesAll ? all : Math.ceil(all / share);
}

/** Cases that show the same, each dear: all of them, or the first few. */
export function some<T>(cases: readonly T[], few = 1): readonly T[] {
  return triesAll ? cases : cases.slice(0, few);
}
