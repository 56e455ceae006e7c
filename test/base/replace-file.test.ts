import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { replaceFile } from '../../src/base/open-folder.ts';
import { readOwnFile, replaceFolder, writeQuickly } from '../../src/bundle/folder.ts';
import { otherUser, runAsOther, runsAsRoot } from '../support/other-user.ts';
import { rounds } from '../support/rounds.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-write-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
chmodSync(scratch, 0o755);

let folders = 0;
function makeFolder(): string {
  const folder = join(scratch, `${++folders}`);
  mkdirSync(folder);
  return folder;
}

const readable = { mode: 0o644, isDurable: false };

test('replaces a file as a whole, with the mode that was asked for, and leaves nothing else', async () => {
  const folder = makeFolder();
  const umask = process.umask(0o077);
  try {
    for (const text of ['old', 'new']) await replaceFile(join(folder, 'file'), text, { mode: 0o644, isDurable: true });
  } finally {
    process.umask(umask);
  }
  expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('new');
  expect(statSync(join(folder, 'file')).mode & 0o7777).toBe(0o644);
  expect(readdirSync(folder)).toEqual(['file']);
});

test.each([
  ['link', (path: string) => symlinkSync(join(scratch, 'secret'), path)],
  ['folder', (path: string) => mkdirSync(path)],
] as const)('does not replace a %s', async (what, make) => {
  const path = join(makeFolder(), 'out');
  make(path);
  await expect(replaceFile(path, 'text', readable)).rejects.toThrow(`${path}: {"problem":"kind","is":"${what}"}`);
  expect(existsSync(join(scratch, 'secret'))).toBe(false);
});

test('names the file that cannot be written by the path that it was given', async () => {
  const path = join(scratch, 'none', 'file');
  await expect(replaceFile(path, 'text', readable)).rejects.toThrow(
    `ENOENT: no such file or directory, open '${join(scratch, 'none')}'`,
  );
});

test('removes what a killed writer left, and not what another is writing', async () => {
  const folder = makeFolder();
  const [left, fresh] = ['.kpc-0123456789abcdef.new', '.kpc-fedcba9876543210.new'];
  for (const name of [left, fresh]) writeFileSync(join(folder, name), '');
  utimesSync(join(folder, left), 1, 1);
  await replaceFile(join(folder, 'file'), 'text', readable);
  expect(readdirSync(folder).toSorted()).toEqual([fresh, 'file']);
});

/** Replaces each new file of the folder by a link to a file of root's, as fast as it can. */
const replaceNewFiles = `
  chdir $ARGV[0]; $| = 1; print "ready\\n";
  while (1) {
    opendir my $folder, '.'; my @new = grep { $_ ne 'kpc.prom' && !/^evil/ && -f } readdir $folder;
    for (@new) { symlink $ARGV[1], "evil"; rename 'evil', $_ }
  }`;

test.runIf(runsAsRoot)(
  "writing into another user's folder changes no file of root's, whatever that user does meanwhile",
  async () => {
    const [folder, secret] = [makeFolder(), join(makeFolder(), 'shadow')];
    chownSync(folder, otherUser, otherUser);
    writeFileSync(secret, 'secret', { mode: 0o600 });
    const other = await runAsOther(replaceNewFiles, folder, secret);
    try {
      for (let i = 0; i < rounds(1500); i++) {
        await replaceFile(join(folder, 'kpc.prom'), 'metrics', readable).catch(() => undefined);
      }
    } finally {
      other.kill('SIGKILL');
    }
    expect(statSync(secret).mode & 0o7777).toBe(0o600);
    expect(readFileSync(secret, 'utf8')).toBe('secret');
  },
);

/** Makes a name a link to a file of root's, and a file again. */
const flipLink = `
  chdir $ARGV[0]; $| = 1; print "ready\\n";
  while (1) { symlink $ARGV[1], 'x'; rename 'x', 'ip.batch'; open my $f, '>', 'y'; close $f; rename 'y', 'ip.batch' }`;

test.runIf(runsAsRoot)("a file of another user's folder is never one that a link in it leads out to", async () => {
  const [folder, secret] = [makeFolder(), join(makeFolder(), 'shadow')];
  chownSync(folder, otherUser, otherUser);
  writeFileSync(secret, 'secret', { mode: 0o600 });
  const other = await runAsOther(flipLink, folder, secret);
  const seen = new Set<string>();
  try {
    for (let i = 0; i < rounds(20_000, 20); i++) {
      try {
        seen.add(readOwnFile(folder, 'ip.batch').toString());
      } catch (error) {
        seen.add(String(error));
      }
    }
  } finally {
    other.kill('SIGKILL');
  }
  expect(seen).not.toContain('secret');
  expect(seen).toContain('');
});

test('a bundle is written into the folder that was made for it, not into one that a link in its place leads to', async () => {
  const [folder, kept] = [makeFolder(), makeFolder()];
  mkdirSync(join(kept, 'new'));
  const exchange = (): void => {
    for (const name of readdirSync(folder).filter((each) => each.startsWith('.bundle.'))) {
      renameSync(join(folder, name), join(folder, 'moved'));
      symlinkSync(kept, join(folder, name));
    }
  };
  await replaceFolder(join(folder, 'bundle'), new Map([['ip.batch', 'text']]), async (path, text) => {
    exchange();
    await writeQuickly(path, text);
  });
  expect(readdirSync(kept, { recursive: true })).toEqual(['new']);
});
