import { existsSync, statSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';

/** Whether a word is manifests rather than a name: by its form, or since there is such a file or folder. */
export function isPath(word: string): boolean {
  return isFileName(word) || (word !== '' && existsSync(word));
}

/** Whether a word can only be a file's or folder's: by its form, or as a file that is there. */
export function isFileName(word: string): boolean {
  if (word === '-' || /\.(ya?ml|json)$/i.test(word)) return true;
  if (word === '' || !existsSync(word)) return false;
  return /^[./~]/.test(word) || !statSync(word).isDirectory();
}

/** Formats that kubectl takes with `-o`. */
const formats = /^(?:text|json|yaml|wide|name|(?:jsonpath|go-template|custom-columns).*)$/i;

/** The folder of `-o`. kubectl's `-o yaml` is refused: it would write a folder called "yaml". */
export function parseOutFolder(folder: string): string {
  if (folder.trim() === '') throw new InvalidArgumentError('It needs the name of a folder.');
  if (!formats.test(folder)) return folder;
  throw new InvalidArgumentError(`It is a folder, not a format; for a folder of this name, write ./${folder}.`);
}
