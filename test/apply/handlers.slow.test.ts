import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runTool } from '../../src/apply/node/run-tool.ts';
import { runsAsRoot } from '../support/other-user.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-handlers-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** In a network and a state folder of its own. The first transaction says something on both streams, and takes a second. */
const script = `
mount -t tmpfs -o mode=0755 tmpfs /run && ip link set lo up && mkdir /run/bin || exit 90
printf '#!/bin/sh\\ncase "$*" in *-f*) echo said; echo said >&2; sleep 1;; esac\\nexec %s "$@"\\n' "$(command -v nft)" > /run/bin/nft
chmod +x /run/bin/nft
PATH=/run/bin:$PATH
"$NODE" dist/kpc-apply.js apply fixtures/quickstart/expected-nftables --state-dir /run/state || exit 91
before=$(nft list ruleset)
NODE_OPTIONS="--require $PRELOAD" timeout 100 "$NODE" dist/kpc-apply.js $COMMAND fixtures/dual-stack/expected-nftables --state-dir /run/state
echo "status $?"
[ "$before" = "$(nft list ruleset)" ] && echo "as before"
ls /run/state
`;

const canChange =
  runsAsRoot && spawnSync('unshare', ['-n', 'nft', 'add', 'table', 'ip', 'kpc-test'], { stdio: 'ignore' }).status === 0;

const onStreams = ['stdout, data', 'exit', 'close', 'error', 'stderr, data'];
const handlers = ['a timer', ...onStreams, 'a signal', 'a socket of the monitor'];

test.runIf(canChange).each(handlers)(
  'an error in a handler of %s puts the node back, with exit status 3',
  { timeout: 120_000 },
  (where) => {
    const port = 20_000 + (process.pid % 20_000);
    const isMonitor = where === 'a socket of the monitor';
    const { stdout, stderr } = spawnSync('unshare', ['-n', '-m', 'bash', '-c', script], {
      encoding: 'utf8',
      env: {
        ...process.env,
        NODE: process.execPath,
        PRELOAD: resolve('test/apply/throw-in-handler.cjs'),
        KPC_TEST_HANDLER: where,
        KPC_TEST_PORT: `${port}`,
        COMMAND: isMonitor ? `watch --metrics ${port}` : 'apply',
      },
    });
    expect(stderr).toMatch(/^error: Error: a fault of the test \[internal-error\]$/m);
    expect(stderr).not.toMatch(/^ +at /m);
    // A watch ends after its round is put back: it cannot say how the node is when it ends.
    expect(stdout).toContain(isMonitor ? 'status 4\nas before\n' : 'status 3\nas before\n');
    expect(stdout).not.toContain('journal.json');
  },
);

const limits = { fed: 250_000, unfed: 250_000, closing: 250_000 };
const shell = (text: string) => ({ tool: 'sh', args: ['-c', text] });
const fail = (): never => {
  throw new Error('a fault of the test');
};

test('an error in the handler of a line ends the tool, and is thrown', async () => {
  const file = join(scratch, 'pid');
  const running = runTool({ ...shell(`echo $$ > ${file}; echo line; exec sleep 600`), keeps: fail }, limits);
  await expect(running).rejects.toThrow('a fault of the test');
});

test('work that an error has aborted starts no tool that is waited for', async () => {
  const { Failure } = await import('../../src/apply/state/failure.ts');
  const fault = new Failure('internal-error', { reason: 'a fault of the test' });
  const running = runTool(shell('exec sleep 600'), limits, { signal: AbortSignal.abort(fault) });
  await expect(running).rejects.toBe(fault);
});
