// Lets a built program name what it was built from, where its version is not enough: between two releases it stays the same.
// @ts-check
import { createHash } from 'node:crypto';

/** Stands in a program for the name of its build. */
export const buildMark = '@KPC_BUILD@';

/**
 * Names the build: by the SHA-256 of the program, so that the same sources give the same bytes.
 *
 * @param {string} program
 */
export function nameBuild(program) {
  return program.replace(buildMark, createHash('sha256').update(program).digest('hex'));
}
