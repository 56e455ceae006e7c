import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { readBundle } from '../../../src/bundle/read-bundle.ts';
import { compileState } from '../../../src/snapshot/open/compile-node.ts';
import { kpcProgram, projectFolder, runKpc, runProgram } from '../../support/run-kpc.ts';
import { readTree } from '../../support/read-tree.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-large-fleet-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let folders = 0;
const freshPath = () => join(scratch, `out-${++folders}`);

/** Manifests of many nodes. */
async function makeFleet(...size: readonly string[]): Promise<string> {
  const folder = freshPath();
  const script = join(projectFolder, 'scripts', 'make-fleet.mjs');
  const made = await runProgram(process.execPath, [script, folder, ...size]);
  expect(made.status, made.stderr).toBe(0);
  return folder;
}

const finished = (out: string) => (existsSync(out) ? readdirSync(out).filter((name) => !name.startsWith('.')) : []);

/** Starts a run of 150 nodes, and kills it in the middle. Gives the folder, and the nodes that it had finished. */
async function killHalfway(
  input: string,
): Promise<{ readonly out: string; readonly args: readonly string[]; readonly left: readonly string[] }> {
  // Where this process waits long for its turn, the run is over before it is killed: then once more.
  for (;;) {
    const out = freshPath();
    const args = ['compile', '-f', input, '--all-nodes', '-o', out];
    const child = spawn(process.execPath, [kpcProgram, ...args], { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.on('close', resolve));
    while (finished(out).length < 20 && child.exitCode === null) await sleep(2);
    child.kill('SIGKILL');
    await ended;
    const left = finished(out);
    if (left.length < 150) return { out, args, left };
  }
}

test('a run finds whole folders after a kill, and does the rest', async () => {
  const input = await makeFleet('--services', '200', '--endpoints', '10', '--nodes', '150');
  const { out, args, left } = await killHalfway(input);
  expect(left.length).toBeGreaterThan(0);
  for (const node of left) {
    const names = readdirSync(join(out, node));
    const files = new Map(names.map((name) => [name, readFileSync(join(out, node, name), 'utf8')]));
    expect(readBundle(files, compileState).kind).toBe('bundle');
  }
  const again = await runKpc(args);
  expect(again).toMatchObject({ status: 0, stderr: expect.stringContaining(`${left.length} unchanged`) });
  const fresh = freshPath();
  await runKpc(['compile', '-f', input, '--all-nodes', '-o', fresh]);
  // The stamp that was being written is another writer's for ten minutes, as far as the next run knows.
  const isUnfinished = (path: string) => /^\.compiled\/\.kpc-[0-9a-f]{16}\.new$/.test(path);
  const found = Object.fromEntries(Object.entries(readTree(out)).filter(([path]) => !isUnfinished(path)));
  expect(found).toEqual(readTree(fresh));
  expect(readdirSync(out).filter((name) => name.startsWith('.'))).toEqual(['.compiled']);
});

test('the memory of a run does not grow with the number of nodes', async () => {
  const input = await makeFleet('--services', '200', '--endpoints', '10', '--nodes', '300', '--local-nodes', '300');
  // What is written of these nodes is 45 MB where they differ, and each node's state takes more.
  const args = ['compile', '-f', input, '--all-nodes', '-o', freshPath()];
  const run = await runProgram(process.execPath, ['--max-old-space-size=40', kpcProgram, ...args]);
  expect(run).toMatchObject({ status: 0, stderr: expect.stringContaining('300 nodes: 300 written') });
});
