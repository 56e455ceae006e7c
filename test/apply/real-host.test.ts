import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { realHost, runTool } from '../../src/apply/real-host.ts';

const limits = { fed: 10_000, unfed: 10_000, closing: 200 };
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

test('does not wait for ever for a tool that does not end', async () => {
  await expect(runTool(shell('exec sleep 60'), { ...limits, unfed: 100 })).rejects.toThrow(
    '"sh -c exec sleep 60" has not ended within 0.1 s',
  );
  await expect(runTool(shell('exec sleep 60', ''), { ...limits, fed: 100 })).rejects.toThrow('within 0.1 s');
});

test('does not wait for ever for output that stays open, nor take what there is of it for all', async () => {
  const started = performance.now();
  await expect(runTool(shell('echo half; sleep 3 & exit 0'), limits)).rejects.toMatchObject({
    code: 'tool-failed',
    message: expect.stringMatching(/has ended, and something that it started keeps its output open$/),
  });
  expect(performance.now() - started).toBeLessThan(2500);
});

test('says so where no more files may be open', () => {
  const { stderr } = spawnSync('sh', ['-c', `ulimit -n 24 && exec "${process.execPath}" dist/kpc-apply.js doctor`], {
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^kpc-apply: error: .*EMFILE.* \[system-error\]\n/);
});

test('does its work where stderr cannot be written', () => {
  const { status } = spawnSync('sh', ['-c', `exec "${process.execPath}" dist/kpc-apply.js doctor 2>/dev/full /none`]);
  expect(status).toBe(2);
});

test('time goes on evenly, and the same for every process', async () => {
  const [before, here] = [realHost.uptime(), await realHost.readFile('/proc/uptime')];
  expect(Math.abs(before - Number(here?.split(' ')[0]) * 1000)).toBeLessThan(1000);
});
