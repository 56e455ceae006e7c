import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

/** UPDATE_GOLDEN=1 writes what comes out over what is expected; the difference is then read in git. */
const update = process.env['UPDATE_GOLDEN'] === '1';

const cwd = join(projectFolder, 'test/describe');

const ipvs = ['--proxy-mode', 'ipvs'] as const;

/** The file that holds the answer, and the question. */
const questions: readonly (readonly [file: string, args: readonly string[]])[] = [
  ['table.txt', []],
  ['table.json', ['--output', 'json']],
  ['dual-stack-ipvs.txt', ['cache/redis-master']],
  ['port-iptables.txt', ['redis-master:redis', '--proxy-mode', 'iptables']],
  ['load-balancer-ipvs.txt', ['web']],
  ['load-balancer-iptables.txt', ['web', '--proxy-mode', 'iptables']],
  ['load-balancer-iptables.json', ['web', '--proxy-mode', 'iptables', '--output', 'json']],
  ['headless.txt', ['db.store.svc.cluster.local', '--cluster-domain', 'example.org']],
  ['external-name.txt', ['store/billing']],
  ['no-endpoints-ipvs.txt', ['10.96.0.99:80']],
  ['no-endpoints-iptables.txt', ['10.96.0.99', '--proxy-mode', 'iptables']],
  ['shared-set.txt', ['KUBE-CLUSTER-IP']],
  ['shared-chain.txt', ['KUBE-NODEPORTS', '--proxy-mode', 'iptables']],
];

/** A Service is described with its rules. */
const rulesFor = (name: string, args: readonly string[]) =>
  name.endsWith('.txt') && args.length > 0 && !args[0]?.startsWith('-') ? ['--rules'] : [];

describe('kpc describe', () => {
  test.for(questions)('%s', async ([name, args]) => {
    const run = await runKpc(
      ['describe', '-f', 'input', ...rulesFor(name, args), ...(args.includes('--proxy-mode') ? [] : ipvs), ...args],
      {
        cwd,
      },
    );
    const file = join(cwd, 'expected', name);
    if (update) writeFileSync(file, run.stdout);
    expect(run).toMatchObject({ status: 0, stderr: '' });
    expect(run.stdout).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
  });
});

describe('what leads to a Service port', () => {
  test.for([
    ['30080', 'store/web', 'this is its node port'],
    ['192.168.10.11:30080', 'store/web', 'this is its node port'],
    ['32000', 'store/web', 'this is its health check node port'],
    ['192.168.10.11:32000', 'store/web', 'this is its health check node port'],
    ['203.0.113.80:80/tcp', 'store/web', "this is its load balancer's address"],
    ['10.244.3.80:8080', 'store/web', 'this is its endpoint 10.244.3.80:8080'],
    ['10.96.0.80', 'store/web', 'this is its cluster IP'],
    ['[fd00:96::11]:6379', 'cache/redis-master', 'this is its cluster IP'],
    ['fd00:244:1::11', 'cache/redis-master', 'this is its endpoint [fd00:244:1::11]:6379'],
    ['10.244.1.54', 'store/db', 'this is its endpoint 10.244.1.54'],
    ['web.store', 'store/web', 'type LoadBalancer'],
    ['web.store.svc:80', 'store/web', 'type LoadBalancer'],
    ['10.96.0.80,tcp:80', 'store/web', 'this is its cluster IP'],
    ['add KUBE-LOOP-BACK 10.244.3.80,tcp:8080,10.244.3.80', 'store/web', 'this is its endpoint 10.244.3.80:8080'],
    ['fd00:96::11,tcp:6379', 'cache/redis-master', 'this is its cluster IP'],
  ] as const)('%s', async ([what, service, because]) => {
    const run = await runKpc(['describe', what, '-f', 'input', '--rules', ...ipvs], { cwd });
    expect(run).toMatchObject({ status: 0, stderr: '' });
    const [title, reason] = run.stdout.split('\n');
    expect(title).toMatch(new RegExp(`^Service ${service}  \\(input/services\\.yaml:\\d+\\)$`));
    expect(reason?.trim()).toBe(because);
  });

  test('a chain, and a line of iptables-save in the form that iptables prints', async () => {
    const whole = await runKpc(['describe', 'web', '--rules', '--proxy-mode', 'iptables', '-f', 'input'], { cwd });
    const chain = /chain (KUBE-SEP-\w+)/.exec(whole.stdout)?.[1] ?? '';
    const ofChain = await runKpc(['describe', chain, '--rules', '--proxy-mode', 'iptables', '-f', 'input'], { cwd });
    expect(ofChain.stdout).toContain(`${chain} is its chain for endpoint 10.244.1.80:8080`);
    const line = `-A ${chain} -p tcp -m comment --comment "store/web" -m tcp -m recent --set --name ${chain} --mask 255.255.255.255 --rsource -j DNAT --to-destination 10.244.1.80:8080`;
    const ofLine = await runKpc(['describe', line, '--rules', '--proxy-mode', 'iptables', '-f', 'input'], { cwd });
    expect(ofLine.stdout).toContain(`this is rule 2 of chain ${chain} (nat)`);
  });

  test('a bundle tells the same, but for the places', async () => {
    const { mkdtempSync, rmSync } = await import('node:fs');
    const { tmpdir } = await import('node:os');
    const bundle = join(mkdtempSync(join(tmpdir(), 'kpc-describe-')), 'bundle');
    await runKpc(['compile', '-f', 'input', '-o', bundle], { cwd });
    const ofBundle = await runKpc(['describe', 'web', '-f', bundle], { cwd });
    const ofInput = await runKpc(['describe', 'web', '-f', 'input'], { cwd });
    rmSync(bundle, { recursive: true });
    expect(ofBundle.status).toBe(0);
    // A bundle has its mode.
    const expected = ofInput.stdout
      .replace(/ {2}\(input\/[^)]*\)$/gm, '')
      .replace(/^mode \w+ \(nothing names a mode\); /m, '');
    expect(ofBundle.stdout).toBe(expected);
  });
});

test('manifests are not described as if they were a dump', async () => {
  const run = await runKpc(['describe', '--from-dump', 'input'], { cwd });
  expect(run).toMatchObject({ status: 2, stdout: '' });
  expect(run.stderr).toContain('error: input is not a dump [bad-call]\n');
});

describe('what is not found', () => {
  test.for([
    ['wbe', 'did you mean store/web?'],
    ['store/wev', 'did you mean store/web?'],
    ['cache/redis-master:rediss', 'did you mean cache/redis-master:redis or cache/redis-master:metrics?'],
    ['10.96.0.12', '"10.96.0.12" [not-found]\n'],
    ['30081', '"30081" [not-found]\n'],
    ['KUBE-SVC-4PSDO5LE5GAPCHKW', 'may be one that --proxy-mode iptables makes [not-found]\n'],
  ] as const)('%s', async ([what, hint]) => {
    const run = await runKpc(['describe', what, '-f', 'input'], { cwd });
    expect(run).toMatchObject({ status: 1, stdout: '' });
    expect(run.stderr).toContain(hint);
  });
});
