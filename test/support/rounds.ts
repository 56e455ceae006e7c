/**
 * How many rounds a test with random input takes: all of them in `npm run test:slow`, a fifth in `npm test`. vitest.config.ts
 * runs each test file that imports this in both.
 */
export function rounds(all: number): number {
  return process.env['KPC_ALL_ROUNDS'] === '1' ? all : Math.ceil(all / 5);
}
