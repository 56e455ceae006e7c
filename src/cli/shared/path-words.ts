import { existsSync, statSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { withSlashes } from '../../base/system-paths.ts';

export function isPath(word: string): boolean {
  return isFileName(word) || (word !== '' && existsSync(word));
}

export function isFileName(word: string): boolean {
  if (word === '-' || /\.(?:ya?ml|json)$|^(?:\.{0,2}|~)\/|^[a-z][a-z0-9+.-]*:\/\//i.test(word)) return true;
  if (word === '' || !existsSync(word)) return false;
  return /^[.~]/.test(word) || !statSync(word).isDirectory();
}

/** Counts the words before "--". No flags come after "--". */
export function countBeforeEnd(words: readonly string[]): number {
  return words.includes('--') ? words.indexOf('--') : words.length;
}

const formats = /^(?:text|json|yaml|wide|name|(?:jsonpath|go-template|custom-columns).*)$/i;

/** Refuses kubectl's `-o yaml`, because kpc would write a folder called "yaml". */
export function parseOutFolder(folder: string): string {
  if (!formats.test(folder)) return withSlashes(folder);
  throw new InvalidArgumentError(`This names a folder, not a format; for a folder of this name, write ./${folder}.`);
}
