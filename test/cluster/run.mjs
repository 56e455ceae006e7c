// Runs the tests beside a real cluster: npm run test:cluster [-- VITEST-ARGUMENT…]. As root on Linux, with Go.
//
// All of it, the API server too, is in a network of its own, which ends with it: nothing of this machine's network changes.
// @ts-check
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildPrograms } from './build-programs.mjs';

const root = join(import.meta.dirname, '../..');

if (process.getuid?.() !== 0) {
  console.error('the tests beside a cluster need root, for a network of their own');
  process.exit(2);
}
const programs = buildPrograms();
if (process.argv.includes('--build')) process.exit(0);
const vitest = [process.execPath, join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'cluster'];
// The lock of iptables, and what kpc-apply locks, are in /run.
const script = 'mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@"';
const network = ['--net', '--mount', 'bash', '-c', script, 'in-network'];
const env = { ...process.env, KPC_CLUSTER_PROGRAMS: programs };
// Each run has a cluster of its own, and one of them changes what is in it.
const changing = 'test/cluster/changes.cluster.ts';
const asked = process.argv.slice(2);
const runs = asked.length > 0 ? [asked] : [['--exclude', changing], [changing]];
for (const words of runs) {
  const { status } = spawnSync('unshare', [...network, ...vitest, ...words], { cwd: root, env, stdio: 'inherit' });
  if (status !== 0) process.exitCode = status ?? 1;
}
