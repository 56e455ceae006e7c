import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { showTimeTaken } from '../../src/cli/shared/long-work.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';
import { kpcProgram, spawnKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-long-work-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A manifest that takes seconds. */
const manifest = join(scratch, 'many.yaml');

function writeManifest(services: number): void {
  const one = (i: number) =>
    `apiVersion: v1\nkind: Service\nmetadata: { name: web-${i} }\nspec: { clusterIP: 10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}, ports: [{ port: 80 }] }\n`;
  writeFileSync(manifest, Array.from({ length: services }, (_, i) => one(i + 1)).join('---\n'));
}

test('who waits on a terminal sees how long it takes, and nothing of it is left', () => {
  writeManifest(90_000);
  const out = join(scratch, 'out.txt');
  const command = `'${process.execPath}' '${kpcProgram}' compile -f '${manifest}' --proxy-mode iptables --print iptables >'${out}'`;
  const seen = execFileSync('script', ['-qec', command, '/dev/null'], { input: '' }).toString();
  const lines = seen.split('\r').filter((each) => /^kpc compile: \d+ s/.test(each));
  expect(lines.length).toBeGreaterThan(0);
  // The last thing on that line is that it was cleared.
  expect(seen.trimEnd().endsWith('\r\u001b[K')).toBe(true);
  expect(readFileSync(out, 'utf8')).not.toContain('kpc compile:');
});

test('elsewhere nothing is shown', async () => {
  const { status, stderr } = await spawnKpc([
    'compile',
    '-f',
    manifest,
    '--proxy-mode',
    'iptables',
    '--print',
    'iptables',
  ]);
  expect(status).toBe(0);
  expect(stderr).not.toContain('kpc compile:');
});

test('without a terminal no thread is started', async () => {
  const terminal: Terminal = {
    out: async () => {},
    err: async () => {},
    status: async () => {},
    readStdin: async () => '',
    colour: { out: false, err: false },
    interactive: false,
  };
  await showTimeTaken('kpc', terminal, async (given) => expect(given).toBe(terminal));
});
