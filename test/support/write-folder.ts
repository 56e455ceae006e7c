import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Files by their path in a folder. */
export type Files = Readonly<Record<string, string>>;

/** Writes files, with the folders they are in. Returns the folder. */
export function writeFolder(folder: string, files: Files): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}
