// Gives each build of a program a name, because the version stays the same between two releases.
// @ts-check
import { createHash } from 'node:crypto';

/** Replaced in a program by the name of its build. */
export const buildMark = '@KPC_BUILD@';

/**
 * Names the build by the program's SHA-256, so that the same sources give the same bytes.
 *
 * @param {string} program
 */
export function nameBuild(program) {
  return program.replace(buildMark, createHash('sha256').update(program).digest('hex'));
}
