import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { realHost } from '../../src/apply/node/real-host.ts';
import { runTool } from '../../src/apply/node/run-tool.ts';

/** So long that no machine is busy enough to reach them. */
const limits = { fed: 250_000, unfed: 250_000, closing: 250_000 };
const shell = (script: string, stdin?: string) => ({ tool: 'sh', args: ['-c', script], stdin });

test('gives what a tool prints and how it ends', async () => {
  expect(await runTool(shell('cat; echo no >&2; exit 3', 'fed\n'), limits)).toEqual({
    kind: 'ended',
    status: 3,
    signal: undefined,
    stdout: 'fed\n',
    stderr: 'no\n',
  });
  expect(await runTool(shell('kill -9 $$'), limits)).toMatchObject({ status: undefined, signal: 'SIGKILL' });
  expect(await runTool({ tool: 'no-such-tool', args: [] }, limits)).toEqual({ kind: 'missing' });
});

const failed = (details: object) => ({ finding: { code: 'tool-failed', arguments: details } });

test('does not wait for ever for a tool that does not end', async () => {
  const late = { problem: 'late', command: 'sh -c exec sleep 60', tool: 'sh', seconds: 0.1 };
  await expect(runTool(shell('exec sleep 60'), { ...limits, unfed: 100 })).rejects.toMatchObject(failed(late));
  await expect(runTool(shell('exec sleep 60', ''), { ...limits, fed: 100 })).rejects.toMatchObject(failed(late));
});

test('ends a tool that has had its time with all that it has started', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpc-real-host-'));
  try {
    const script = `sleep 600 & echo $! >${folder}/pid; wait`;
    // On a busy machine, the tool may not have come that far.
    for (let seconds = 1; !existsSync(join(folder, 'pid')); seconds *= 2) {
      const running = runTool(shell(script), limits, { limit: seconds * 1000 });
      await expect(running).rejects.toMatchObject(failed({ problem: 'late', seconds }));
    }
    // If process 1 has not waited for it yet, it is a zombie.
    const stat = await realHost.readFile(`/proc/${readFileSync(join(folder, 'pid'), 'utf8').trim()}/stat`);
    expect(stat ?? '(sh) Z').toMatch(/\) Z/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a signal cuts a tool short that does not end by itself', async () => {
  const controller = new AbortController();
  const running = runTool(shell('exec sleep 600'), { ...limits, closing: 200 }, { signal: controller.signal });
  controller.abort();
  await expect(running).rejects.toMatchObject(failed({ problem: 'not-stopped', command: 'sh -c exec sleep 600' }));
});

test('tells its tools from those of other processes', async () => {
  const result = await realHost.run(shell('env'));
  expect(realHost.toolMark).toMatch(/^KPC_APPLY_RUN=[\da-f-]{36}$/);
  expect(result.kind === 'ended' && result.stdout.split('\n')).toContain(realHost.toolMark);
});

test('does not wait for ever for output that stays open, nor take what there is of it for all', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpc-real-host-'));
  try {
    const script = `echo half; sleep 600 & echo $! >${folder}/pid`;
    await expect(runTool(shell(script), { ...limits, closing: 200 })).rejects.toMatchObject(
      failed({ problem: 'open-output' }),
    );
    // Throws if there is no such process any more: then it has been waited for.
    process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('says so where no more files may be open', () => {
  const { stderr } = spawnSync('sh', ['-c', `ulimit -n 24 && exec "${process.execPath}" dist/kpc-apply.js doctor`], {
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^error: .*EMFILE.* \[system-error\]\n/);
});

test('does its work where stderr cannot be written', () => {
  const { status } = spawnSync('sh', ['-c', `exec "${process.execPath}" dist/kpc-apply.js doctor 2>/dev/full /none`]);
  expect(status).toBe(2);
});

test('time goes on evenly, and the same for every process', async () => {
  const before = realHost.uptime();
  const here = Number((await realHost.readFile('/proc/uptime'))?.split(' ')[0]) * 1000;
  const after = realHost.uptime();
  // /proc/uptime counts hundredths of a second.
  expect(here).toBeGreaterThan(before - 20);
  expect(here).toBeLessThan(after + 20);
});
