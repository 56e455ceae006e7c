import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export type Files = Readonly<Record<string, string>>;

export function writeFolder(folder: string, files: Files): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}
