import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the content of all files by their path below the folder, including hidden files. */
export function readTree(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => statSync(join(folder, path)).isFile())
      .toSorted()
      .map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
  );
}
