import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

/** UPDATE_GOLDEN=1 writes what comes out over what is expected; the difference is then read in git. */
const update = process.env['UPDATE_GOLDEN'] === '1';

const cwd = join(projectFolder, 'test/describe');
const nftables = ['-f', 'input', '--proxy-mode', 'nftables'] as const;

describe('kpc describe in nftables mode', () => {
  test.for([
    ['load-balancer-nftables.txt', ['web']],
    ['load-balancer-nftables.json', ['web', '--output', 'json']],
    ['dual-stack-nftables.txt', ['cache/redis-master']],
    ['no-endpoints-nftables.txt', ['10.96.0.99']],
    ['shared-map.txt', ['service-ips']],
    ['shared-nftables-chain.txt', ['services']],
    ['shared-nftables-set.txt', ['cluster-ips']],
  ] as const)('%s', async ([name, args]) => {
    const rules = name.endsWith('.txt') && !name.startsWith('shared') ? ['--rules'] : [];
    const run = await runKpc(['describe', ...args, ...rules, ...nftables], { cwd });
    const file = join(cwd, 'expected', name);
    if (update) writeFileSync(file, run.stdout);
    expect(run).toMatchObject({ status: 0, stderr: '' });
    expect(run.stdout).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
  });

  test.for([
    ['service-R3TCM6SG-store/web/tcp/', 'store/web', 'service-R3TCM6SG-store/web/tcp/ is one of its chains'],
    ['chain local-R3TCM6SG-store/web/tcp/ {', 'store/web', 'local-R3TCM6SG-store/web/tcp/ is one of its chains'],
    ['goto external-R3TCM6SG-store/web/tcp/', 'store/web', 'external-R3TCM6SG-store/web/tcp/ is one of its chains'],
    [
      'endpoint-FT3EZOOQ-store/web/tcp/__10.244.2.80/8080',
      'store/web',
      'endpoint-FT3EZOOQ-store/web/tcp/__10.244.2.80/8080 is its chain for endpoint 10.244.2.80:8080',
    ],
    [
      '@affinity-FT3EZOOQ-store/web/tcp/__10.244.2.80/8080',
      'store/web',
      'affinity-FT3EZOOQ-store/web/tcp/__10.244.2.80/8080 is the set of the clients of endpoint 10.244.2.80:8080',
    ],
    ['10.96.0.80 . tcp . 80', 'store/web', 'this is its cluster IP'],
    ['10.96.0.80 . tcp . 80 : goto service-R3TCM6SG-store/web/tcp/,', 'store/web', 'this is its cluster IP'],
    ['10.96.0.99 . tcp . 80 comment "store/idle" : goto reject-chain', 'store/idle', 'this is its cluster IP'],
    ['203.0.113.80 . tcp . 80', 'store/web', "this is its load balancer's address"],
    ['tcp . 30080 : goto external-R3TCM6SG-store/web/tcp/', 'store/web', 'this is its node port'],
    ['10.244.1.80 . 10.244.1.80 . tcp . 8080', 'store/web', 'this is its endpoint 10.244.1.80:8080'],
    ['fd00:96::11 . tcp . 6379', 'cache/redis-master', 'this is its cluster IP'],
  ] as const)('%s', async ([what, service, because]) => {
    const run = await runKpc(['describe', what, ...nftables], { cwd });
    expect(run, run.stderr).toMatchObject({ status: 0, stderr: '' });
    const [title, reason] = run.stdout.split('\n');
    expect(title).toMatch(new RegExp(`^Service ${service}  \\(input/services\\.yaml:\\d+\\)$`));
    expect(reason?.trim()).toBe(because);
  });

  test('a chain that is not there, and one of another mode', async () => {
    const none = await runKpc(['describe', 'service-R3TCM6SH-store/web/tcp/', ...nftables], { cwd });
    expect(none).toMatchObject({ status: 1, stdout: '' });
    for (const [what, mode, maker] of [
      ['service-R3TCM6SG-store/web/tcp/', 'iptables', 'nftables'],
      ['KUBE-SVC-4PSDO5LE5GAPCHKW', 'nftables', 'iptables'],
    ] as const) {
      const run = await runKpc(['describe', what, '-f', 'input', '--proxy-mode', mode], { cwd });
      expect(run).toMatchObject({ status: 1, stdout: '' });
      expect(run.stderr).toContain(
        `${mode} mode has no chain of that kind, so this may be one that --proxy-mode ${maker} makes [not-found]\n`,
      );
    }
  });
});

describe('kpc describe --from-dump of what nft printed', () => {
  const dump = join(projectFolder, 'fixtures/dumps/kube-proxy-nftables-affinity-external-policy-local');
  test.for([
    'web',
    'default/web:http',
    '31080',
    '31080/tcp',
    '10.96.7.7',
    '203.0.113.9:80/tcp',
    '10.244.2.9',
    '10.96.7.7 . tcp . 80 : goto service-SUSTUHLJ-default/web/tcp/http',
    'tcp . 31080 : goto external-SUSTUHLJ-default/web/tcp/http',
    'service-SUSTUHLJ-default/web/tcp/http',
    'jump local-SUSTUHLJ-default/web/tcp/http',
    'endpoint-4B5NXM7Z-default/web/tcp/http__10.244.1.9/8080',
    '@affinity-4B5NXM7Z-default/web/tcp/http__10.244.1.9/8080',
  ])('%s', async (what) => {
    const run = await runKpc(['describe', what, '--from-dump', dump]);
    expect(run.status, run.stderr).toBe(0);
    expect(run.stdout.split('\n')[0]).toBe('default/web:http');
  });
});
