import { existsSync } from 'node:fs';
import { hasDrive } from '../base/system-paths.ts';

/** The revision of REVISION:PATH; undefined for any other word. What exists as a file is a file. */
export function revisionOf(word: string): string | undefined {
  const [revision] = /^[^:]+(?=:)/.exec(word) ?? [];
  if (revision === undefined || word.startsWith(`${revision}://`) || existsSync(word) || hasDrive(word))
    return undefined;
  return revision;
}
