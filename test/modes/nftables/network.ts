import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';

/** What a script in a network of its own left in these files. */
interface Outcome {
  readonly status: number | null;
  readonly stderr: string;
  readonly listed: Readonly<Record<string, string>>;
}

type Texts = Readonly<Record<string, string>>;

/** Runs a script in a network of its own, in a folder with these files. It must succeed without a word. */
export function inNetwork(script: string, files: Texts, results: readonly string[]): Outcome {
  const outcome = tryInNetwork(script, files, results);
  expect(outcome).toMatchObject({ status: 0, stderr: '' });
  return outcome;
}

function tryInNetwork(script: string, files: Texts, results: readonly string[]): Outcome {
  const folder = mkdtempSync(join(tmpdir(), 'kpc-nft-'));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const { status, stderr } = spawnSync('unshare', ['--net', 'sh', '-ec', script], { cwd: folder, encoding: 'utf8' });
    const read = status === 0 ? results : [];
    const listed = Object.fromEntries(read.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
    return { status, stderr, listed };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What this machine lacks to load nftables rules in a network of its own; undefined if nothing. */
export function whyNoNetwork(): string | undefined {
  if (spawnSync('sh', ['-c', 'command -v nft']).status !== 0) return 'no nft here';
  const probe = 'table ip t { chain c { type nat hook postrouting priority 100; fib saddr type local masquerade; }; }';
  const { status, stderr } = tryInNetwork('nft -f probe.nft', { 'probe.nft': `${probe}\n` }, []);
  return status === 0 ? undefined : `no network with nftables here: ${stderr.trim()}`;
}
