import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** Puts a file that all users may read in the place of another, or of none. No reader meets half of it. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const unfinished = `${path}.new`;
  try {
    // What is left of one that was killed, or a link that leads elsewhere.
    rmSync(unfinished, { force: true });
    writeFileSync(unfinished, content, { flag: 'wx' });
    // Whatever the umask.
    chmodSync(unfinished, 0o644);
    renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
}
