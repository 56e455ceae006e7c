import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const cwd = join(projectFolder, 'test/describe');
const nftables = ['-f', 'input', '--proxy-mode', 'nftables'] as const;

describe('a line of nft list ruleset', () => {
  test.for([
    ['elements = { 10.96.0.80 . tcp . 80 : goto service-R3TCM6SG-store/web/tcp/,', 'this is its cluster IP'],
    ['elements = { 10.96.0.80 . tcp . 80 : goto service-R3TCM6SG-store/web/tcp/ }', 'this is its cluster IP'],
    ['tcp . 30080 : goto external-R3TCM6SG-store/web/tcp/ }', 'this is its node port'],
    ['elements = { tcp . 30080 : goto external-R3TCM6SG-store/web/tcp/ }', 'this is its node port'],
    ['elements = { 10.244.1.80 . 10.244.1.80 . tcp . 8080 }', 'this is its endpoint 10.244.1.80:8080'],
    ['elements = { 10.96.0.80 }', 'this is its cluster IP'],
    ['10.96.0.80 }', 'this is its cluster IP'],
    [
      'ip saddr 10.244.0.0/16 goto service-R3TCM6SG-store/web/tcp/ comment "short-circuit pod traffic"',
      'service-R3TCM6SG-store/web/tcp/ is one of its chains',
    ],
  ] as const)('%s', async ([what, because]) => {
    const run = await runKpc(['describe', what, ...nftables], { cwd });
    expect(run, run.stderr).toMatchObject({ status: 0, stderr: '' });
    const [title, reason] = run.stdout.split('\n');
    expect(title).toContain('Service store/web ');
    expect(reason?.trim()).toBe(because);
  });

  test.for([
    ['ct state new jump firewall-check', 'Chain firewall-check \\(nftables\\): '],
    ['ip daddr . meta l4proto . th dport vmap @service-ips', 'Map service-ips \\(nftables\\), '],
  ] as const)('%s leads to what all Services share', async ([what, title]) => {
    const run = await runKpc(['describe', what, ...nftables], { cwd });
    expect(run, run.stderr).toMatchObject({ status: 0, stderr: '' });
    expect(run.stdout).toMatch(new RegExp(`^${title}`, 'm'));
  });

  test.for([
    'elements = { 10.96.0.80, 10.96.0.99 }',
    'elements = { 10.96.0.80 . tcp . 80 : goto service-R3TCM6SG-store/web/tcp/, 10.96.0.99 . tcp . 80 : drop }',
    'numgen random mod 2 vmap { 0 : goto endpoint-A-store/web/tcp/__a/1, 1 : goto endpoint-B-store/web/tcp/__b/1 }',
  ])('%s means several, and none of them is taken for it', async (what) => {
    expect(await runKpc(['describe', what, ...nftables], { cwd })).toMatchObject({ status: 1, stdout: '' });
  });
});

const scratch = mkdtempSync(join(tmpdir(), 'kpc-nft-lines-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('of a dump, the cluster IP is told first, in whatever order the kernel lists the elements', async () => {
  const elements = [
    '203.0.113.1 . tcp . 80 : goto external-R3TCM6SG-store/web/tcp/',
    '10.96.0.80 . tcp . 80 : goto service-R3TCM6SG-store/web/tcp/',
    '198.51.100.1 . tcp . 80 : goto external-R3TCM6SG-store/web/tcp/',
  ];
  const tableOf = (list: readonly string[]) => `table ip kube-proxy {
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { ${list.join(',\n      ')} }
  }
  chain service-R3TCM6SG-store/web/tcp/ {
    meta l4proto tcp dnat ip to numgen random mod 1 map { 0 : 10.244.1.80 . 8080 }
  }
  chain external-R3TCM6SG-store/web/tcp/ {
    goto service-R3TCM6SG-store/web/tcp/
  }
}
`;
  const answers = [elements, elements.toReversed()].map(async (list, i) => {
    const file = join(scratch, `dump-${i}.txt`);
    writeFileSync(file, tableOf(list));
    return [await runKpc(['describe', file]), await runKpc(['describe', 'store/web', file])];
  });
  const [[table, service] = [], other] = await Promise.all(answers);
  expect(table?.stdout).toMatch(/^store\/web .* 10\.96\.0\.80, 198\.51\.100\.1, 203\.0\.113\.1 /m);
  expect(service?.stdout).toMatch(/^store\/web\n {2}cluster IP 10\.96\.0\.80 port 80\/TCP\n/);
  expect(other).toEqual([table, service]);
});
