// Comments of other programs that look like the name of a Service port, as kube-router and Calico write them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-foreign-comments-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const clusterIP =
  '-A KUBE-SERVICES -d 10.96.0.80/32 -p tcp -m comment --comment "shop/web cluster IP" -m tcp --dport 80';

function save(policy: readonly string[]): string {
  return [
    '*nat',
    ':PREROUTING ACCEPT [0:0]',
    ':KUBE-SERVICES - [0:0]',
    ':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]',
    '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    `${clusterIP} -j KUBE-SVC-AAAAAAAAAAAAAAAA`,
    'COMMIT',
    '*filter',
    ':FORWARD ACCEPT [0:0]',
    ':cali-pi-web - [0:0]',
    '-A FORWARD -j cali-pi-web',
    ...policy.map((rule) => `-A cali-pi-web ${rule}`),
    'COMMIT',
    '',
  ].join('\n');
}

const policy = [
  '-s 192.0.2.7/32 -m comment --comment "Policy shop/web ingress" -j ACCEPT',
  '-s 192.0.2.0/24 -m comment --comment "Policy shop/web ingress" -j DROP',
];

writeFolder(cwd, { 'one.txt': save(policy), 'other.txt': save(policy.toReversed()) });

test('a rule of another program belongs to no Service', async () => {
  const run = await runKpc(['describe', 'cali-pi-web', 'one.txt'], { cwd });
  expect(run.stdout).toMatch(/^Chain cali-pi-web \(filter\): 2 rules\n/);
});

test('--foreign tells of another order of such rules', async () => {
  const run = await runKpc(['diff', 'one.txt', 'other.txt', '--foreign'], { cwd });
  expect(run.stdout).toContain('~ chain cali-pi-web (filter): ');
  expect(run.status).toBe(1);
});
