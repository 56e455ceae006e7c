import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { loadBundle } from '../../src/apply/open/load-bundle.ts';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { triesAll } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-written-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const flags: readonly (readonly string[])[] = [
  [],
  ['--masquerade-all', '--iptables-masquerade-bit', '5', '--ipvs-scheduler', 'mh', '--ipvs-strict-arp'],
  ['--cluster-cidr', '10.244.0.0/16,fd00:244::/48', '--nodeport-addresses', 'primary', '--ipvs-tcp-timeout', '10m'],
  ['--detect-local-mode', 'InterfaceNamePrefix', '--pod-interface-name-prefix', 'veth', '--ip-family', 'ipv4'],
  ['--detect-local-mode', 'NodeCIDR', '--iptables-localhost-nodeports=false', '--ipvs-exclude-cidrs', '10.0.0.0/8'],
];

describe.each(['ipvs', 'iptables'])('kpc-apply takes what kpc compiles of any cluster, mode %s', (mode) => {
  // In `npm test` each cluster with two of the options, in turn.
  const pairs = [1, 2, 3, 4, 5].flatMap((seed) => flags.map((options, i) => [seed, options, (seed + i) % 5] as const));
  test.each(pairs.filter(([, , turn]) => triesAll || turn < 2))('seed %d, options %j', async (seed, options) => {
    const file = join(scratch, `${mode}-${seed}.json`);
    const items = makeCluster(20, makeRandom(seed));
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    const out = join(scratch, `${mode}-${seed}-${flags.indexOf(options)}`);
    const node = `node-${1 + (seed % 3)}`;
    const args = ['compile', '-f', file, '--node', node, '--proxy-mode', mode, ...options, '-o', out];
    const ranges = [
      '--service-cluster-ip-range',
      '10.97.0.0/16,fd00:97::/108',
      '--service-node-port-range',
      '31000-32767',
    ];
    expect(await runKpc([...args, ...ranges], { cwd: scratch })).toMatchObject({ status: 0 });
    await expect(loadBundle(out)).resolves.toBeDefined();
  });
});
