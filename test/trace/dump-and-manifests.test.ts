// What manifests beside a dump add to it, and what the dump itself does not show.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-dump-and-manifests-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const dumps = join(fixturesFolder, 'dumps');
const textOf = (path: string): string => readFileSync(join(dumps, path), 'utf8');
const ipvs = join(dumps, 'kube-proxy-ipvs-loadbalancer-source-ranges');
const ruleset = textOf('kube-proxy-nftables-no-endpoints-external/nft-ruleset');
const cluster = textOf('kube-proxy-ipvs-loadbalancer-source-ranges/cluster.yaml');
const addresses =
  '1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n    inet 127.0.0.1/8 scope host lo\n2: eth0: <UP>\n    inet 192.168.50.11/24 scope global eth0\n';
const flushed =
  '*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n';

writeFolder(cwd, {
  'nft-ruleset': ruleset,
  'cluster.yaml': cluster,
  'web.yaml': textOf('kube-proxy-nftables-no-endpoints-external/cluster.yaml'),
  'without-node-port.nft': ruleset.replaceAll(/^.*31080.*\n/gm, ''),
  flushed: `$ iptables-save\n${flushed}$ nft list ruleset\ntable inet firewall {\n}\n$ ip addr\n${addresses}`,
  'flushed-nat': `$ iptables-save -t nat\n${flushed.slice(flushed.indexOf('*nat'))}`,
});

async function tracesOf(words: readonly string[]) {
  const run = await runKpc(['trace', '-q', ...words, '--output', 'json'], { cwd });
  return resultOf(run.stdout).traces[0];
}

describe('a node port at an address of a Service', () => {
  test.each([
    ['only kube-ipvs0 has it', ipvs, '12.12.12.12:30938'],
    ['only kube-ipvs0 has it, beside manifests', [ipvs, '-f', 'cluster.yaml'], '12.12.12.12:30938'],
  ])('is not served, where %s', async (_title, dump, to) => {
    const trace = await tracesOf([dump, '--from', '203.0.113.9', '--to', to].flat());
    expect(trace).toMatchObject({ verdict: 'refused', cause: { kind: 'unserved-port' } });
    expect(trace.to.servicePort).toBeUndefined();
    expect(trace.notes.join()).toMatch(/12\.12\.12\.12 .*has no port 30938\/TCP \(has 80\/TCP\)/);
  });

  test('is served, where the node has the address itself', async () => {
    const own = await tracesOf([ipvs, '--from', '203.0.113.9', '--to', 'node:30938']);
    expect(own).toMatchObject({ verdict: 'delivered' });
    expect(own.to.servicePort).toMatch(/30938/);
  });
});

describe('the kind of an address that rules do not show', () => {
  test.each([
    ['manifests', ['nft-ruleset', '-f', 'web.yaml'], '203.0.113.9'],
    ['the cluster IP beside it', ['nft-ruleset'], '198.51.100.9'],
    ['the cluster IP beside it, without a node port', ['without-node-port.nft'], '198.51.100.9'],
  ])('is known from %s: a client outside uses that address', async (_title, inputs, address) => {
    const { to } = await tracesOf([...inputs, '--from', 'external', '--to', 'svc/web']);
    expect(to).toMatchObject({ address, port: 80 });
  });

  test('is described as manifests have it', async () => {
    const run = await runKpc(['describe', '-q', 'nft-ruleset', '-f', 'web.yaml', 'svc/web'], { cwd });
    expect(run.stdout).toMatch(/external IP 198\.51\.100\.9 .*\n.*load balancer address 203\.0\.113\.9 /);
  });
});

describe('a node whose rules were flushed', () => {
  test('has no rule for the Services of the manifests', async () => {
    const call = ['describe', '-q', 'flushed', '-f', 'cluster.yaml'];
    expect(await runKpc(call, { cwd })).toMatchObject({
      status: 1,
      stdout: 'no rule for 1 Service port in the manifests: default/nginx\n',
      stderr: expect.stringContaining('it holds no chains, sets or virtual servers of a kube-proxy') as string,
    });
    const json = await runKpc([...call, '--output', 'json'], { cwd });
    expect(resultOf(json.stdout)).toMatchObject({ servicePorts: [], withoutRules: ['default/nginx'] });
  });

  test('may have rules that table nat does not show', async () => {
    const run = await runKpc(['describe', '-q', 'flushed-nat', '-f', 'cluster.yaml'], { cwd });
    expect(run).toMatchObject({ status: 1, stdout: '' });
  });
});

const natTable = /\*nat\n.*?COMMIT\n/s.exec(textOf('kube-proxy-iptables-session-affinity/iptables-save'))?.[0] ?? '';

test.each([
  ['iptables-save', { 'iptables-save': natTable }],
  [
    'ipset save',
    Object.fromEntries(
      ['iptables-save', 'ip6tables-save', 'ipvsadm-save', 'ip-addr.json'].map((name) => [
        name,
        textOf(`kube-proxy-ipvs-dual-stack-nodeport/${name}`),
      ]),
    ),
  ],
])('kpc test --init names the listings without which nothing is known: %s', async (commands, files) => {
  writeFolder(join(cwd, commands), files);
  const { stderr, status } = await runKpc(['test', '--init', '-q', commands], { cwd });
  expect(status).toBe(2);
  expect(stderr).toContain(`help: add the output of ${commands}\n`);
});
