import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** Writes a file that all users may read, replacing any other. No reader sees half of it. */
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
