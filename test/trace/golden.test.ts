import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

/** UPDATE_GOLDEN=1 writes what comes out over what is expected; the difference is then read in git. */
const update = process.env['UPDATE_GOLDEN'] === '1';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-trace-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const cwd = join(projectFolder, 'test/kernel-lab/packets');
const input = ['-f', 'before', '-f', 'more', '-f', 'node.yaml', '--config', 'config.yaml'];

/** The file that holds the answer, and the question: what operators ask. */
const questions: readonly (readonly [file: string, args: readonly string[]])[] = [
  ['cluster-ip-iptables.txt', ['--from', 'pod', '--to', 'svc/web', '--proxy-mode', 'iptables']],
  [
    'cluster-ip-nftables.txt',
    ['--from', 'external', '--to', 'web.default.svc.cluster.local:80', '--proxy-mode', 'nftables'],
  ],
  ['cluster-ip-ipvs.json', ['--from', 'node', '--to', '10.96.0.10:80', '--proxy-mode', 'ipvs', '--output', 'json']],
  ['itself-iptables.json', ['--from', '10.1.1.10', '--to', 'web', '--proxy-mode', 'iptables', '--output', 'json']],
  ['ping-ipvs.txt', ['--from', 'pod', '--to', '10.96.0.10', '--proto', 'icmp', '--proxy-mode', 'ipvs']],
  ['source-ranges-iptables.txt', ['--from', '192.168.0.200', '--to', '203.0.113.20', '--proxy-mode', 'iptables']],
  ['localhost-nftables.txt', ['--from', 'node', '--to', '127.0.0.1:30080', '--proxy-mode', 'nftables']],
  ['local-elsewhere-ipvs.txt', ['--from', 'external', '--to', '203.0.113.23:80', '--proxy-mode', 'ipvs']],
  ['ipv6-nftables.txt', ['--from', 'remote-pod', '--to', '[fd00:192::1]:30080', '--proxy-mode', 'nftables']],
  ['affinity-iptables.txt', ['--from', 'pod', '--to', 'svc/sticky', '--proxy-mode', 'iptables']],
  ['health-check-ipvs.txt', ['--from', 'external', '--to', '192.168.0.1:32100', '--proxy-mode', 'ipvs']],
  ['cluster-ip-iptables.svg', ['--from', 'pod', '--to', 'svc/web', '--proxy-mode', 'iptables', '--output', 'svg']],
  [
    'local-elsewhere-ipvs.svg',
    ['--from', 'external', '--to', '203.0.113.23:80', '--proxy-mode', 'ipvs', '--output', 'svg'],
  ],
  ['matrix-ipvs.txt', ['--all', 'balanced-local', '--proxy-mode', 'ipvs']],
  ['matrix-nftables.txt', ['--all', 'balanced-local', '--proxy-mode', 'nftables']],
  ['matrix-iptables.json', ['--all', 'host-network', '--proxy-mode', 'iptables', '--output', 'json']],
];

describe.concurrent('kpc trace', () => {
  test.for(questions)('%s', async ([name, args]) => {
    const run = await runKpc(['trace', ...input, ...args], { cwd });
    const file = join(projectFolder, 'test/trace/expected', name);
    if (update) writeFileSync(file, run.stdout);
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
  });
});

describe.concurrent('what kpc trace cannot answer', () => {
  test.for([
    [['--from', 'pod', '--to', 'svc/wbe'], 'no Service wbe here: did you mean default/web?'],
    [['--from', 'pod', '--to', 'web:81'], 'default/web has no port 81 (has 80/TCP)'],
    [['--from', 'missing', '--to', 'web'], 'no Pod default/missing in the input'],
    [['--from', 'fd00::1', '--to', '10.96.0.10:80'], 'fd00::1 cannot reach an address of the other family'],
    [['--from', 'pod', '--to', '10.9.9.9'], 'which port of 10.9.9.9? Write 10.9.9.9:80'],
    [['--all', 'web', '--from', 'missing'], 'no Pod default/missing in the input'],
    [['--all', 'web', '--output', 'svg'], '--output svg draws the way of a packet'],
    [['--from', 'pod'], 'no packet is named\n  help: write --from SOURCE --to DESTINATION, or --all SERVICE'],
  ] as const)('%s', async ([args, message]) => {
    const run = await runKpc(['trace', ...input, ...args], { cwd });
    expect(run.status).toBe(2);
    expect(run.stdout).toBe('');
    expect(run.stderr).toContain(message);
  });
});

test('on each node: where an address of policy Local works', async () => {
  const other = join(scratch, 'node2.yaml');
  writeFileSync(
    other,
    '{apiVersion: v1, kind: Node, metadata: {name: node2}, spec: {podCIDRs: [10.1.2.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.0.2}]}}\n',
  );
  const question = ['--from', 'external', '--to', '203.0.113.23:80', '--all-nodes', '--output', 'json'];
  const { stdout } = await runKpc(['trace', ...input, '-f', other, '--proxy-mode', 'nftables', ...question], { cwd });
  const answers = JSON.parse(stdout) as readonly {
    readonly node: string;
    readonly trace: { readonly verdict: string };
  }[];
  expect(answers.map(({ node, trace }) => [node, trace.verdict])).toEqual([
    ['node1', 'dropped'],
    ['node2', 'delivered'],
  ]);
});

test('a Pod by its name, with the node that it is on', async () => {
  const pods = join(scratch, 'pods.yaml');
  const pod = (name: string, node: string, address: string): string =>
    `{apiVersion: v1, kind: Pod, metadata: {name: ${name}, namespace: shop}, spec: {nodeName: ${node}}, status: {podIPs: [{ip: ${address}}]}}\n`;
  writeFileSync(pods, `${pod('here', 'node1', '10.1.1.77')}---\n${pod('there', 'node2', '10.1.2.77')}`);
  const ask = (from: string) => runKpc(['trace', ...input, '-f', pods, '--from', from, '--to', 'default/web'], { cwd });
  const [here, there] = await Promise.all([ask('shop/here'), ask('pod/shop/there')]);
  expect(here.stdout).toContain('from Pod shop/here (10.1.1.77), on node node1');
  expect(there.stdout).toContain('from Pod shop/there on another node (10.1.2.77)');
});

describe.concurrent('kpc trace over what a node has', () => {
  test.for([
    ['kube-proxy-iptables-session-affinity', 'nginx-service', '2 '],
    ['kube-proxy-ipvs-dual-stack-nodeport', '10.96.7.7:80', '2 '],
    ['kube-proxy-nftables-loadbalancer-source-ranges', 'nginx', '3 '],
  ] as const)('a dump: %s', async ([name, service, cell]) => {
    const dump = join(projectFolder, 'fixtures/dumps', name);
    const to = service.includes(':') ? ['--from', 'node', '--to', service] : ['--all', service];
    const run = await runKpc(['trace', dump, ...to], { cwd });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain(cell);
  });

  test('a bundle says the same as what it was compiled from', async () => {
    const question = ['--all', 'balanced-local', '--output', 'json'];
    const bundle = join(scratch, 'bundle');
    await runKpc(['compile', ...input, '-o', bundle], { cwd });
    const [fromBundle, fromManifests] = await Promise.all([
      runKpc(['trace', bundle, ...question], { cwd }),
      runKpc(['trace', ...input, ...question], { cwd }),
    ]);
    expect(fromBundle, fromBundle.stderr).toMatchObject({ status: 0, stdout: fromManifests.stdout });
  });
});
