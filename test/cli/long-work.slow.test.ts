import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { showTimeTaken } from '../../src/cli/shared/long-work.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';
import { kpcProgram, runProgram } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-long-work-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const manifest = `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }\n`;

/** kpc, which waits for its input as long as the pipe of this name has not been written. */
function waitingKpc(name: string): { readonly command: string; readonly pipe: string; readonly out: string } {
  const pipe = join(scratch, name);
  const out = `${pipe}.out`;
  const program = `'${process.execPath}' '${kpcProgram}'`;
  execFileSync('mkfifo', [pipe]);
  const command = `${program} compile --quiet -f <(cat '${pipe}') --proxy-mode iptables --print iptables >'${out}'`;
  return { command, pipe, out };
}

test('who waits on a terminal sees how long it takes, and nothing of it is left; elsewhere nothing is shown', async () => {
  const piped = waitingKpc('piped');
  const elsewhere = runProgram('bash', ['-c', piped.command]);
  const shown = waitingKpc('shown');
  const watched = spawn('script', ['-qec', `bash -c "${shown.command}"`, '/dev/null'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let seen = '';
  for await (const chunk of watched.stdout.setEncoding('utf8')) {
    const before = seen;
    seen += String(chunk);
    if (/kpc compile: \d+ s/.test(before) || !/kpc compile: \d+ s/.test(seen)) continue;
    for (const { pipe } of [shown, piped]) writeFileSync(pipe, manifest);
  }
  // The last thing on that line is that it was cleared.
  expect(seen.trimEnd().endsWith('\r\u001b[K')).toBe(true);
  expect(readFileSync(shown.out, 'utf8')).toContain('10.96.0.1');
  expect(readFileSync(shown.out, 'utf8')).not.toContain('kpc compile:');
  expect(await elsewhere).toMatchObject({ status: 0, stderr: '' });
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
