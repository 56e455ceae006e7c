import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-node-words-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
}

const services = write(
  'services.yaml',
  `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, clusterIP: 10.96.0.80, ports: [{port: 80, nodePort: 30080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.244.1.10], nodeName: worker-1}]
ports: [{port: 8080}]
`,
);

const nodes = write(
  'nodes.yaml',
  ['worker-1', 'worker-2']
    .map(
      (name, i) => `apiVersion: v1
kind: Node
metadata: {name: ${name}}
status: {addresses: [{type: InternalIP, address: 192.168.50.1${i}}]}
`,
    )
    .join('---\n'),
);

const hostAddresses = write(
  'ip-addr.json',
  JSON.stringify([
    { ifname: 'lo', addr_info: [{ family: 'inet', local: '127.0.0.1', prefixlen: 8 }] },
    { ifname: 'eth1', addr_info: [{ family: 'inet', local: '10.99.0.7', prefixlen: 24 }] },
  ]),
);

async function say(...args: string[]): Promise<string> {
  const run = await runKpc(['compile', '-f', services, ...args, '--print', 'iptables']);
  expect(run.status, run.stderr).toBe(0);
  return run.stderr;
}

async function rules(...args: string[]): Promise<readonly string[]> {
  const run = await runKpc(['compile', '-f', services, ...args, '--print', 'iptables']);
  return run.stdout.split('\n').filter((line) => line.endsWith('-j KUBE-NODEPORTS') && line.includes('KUBE-SERVICES'));
}

describe('what is said of a node that is not known', () => {
  const noAddress = 'node ports have no address to listen on';

  test('iptables mode serves node ports on every local address, and has no hairpin set', async () => {
    for (const named of [[], ['--node', 'worker-9']]) {
      const said = await say('--proxy-mode', 'iptables', ...named);
      expect(said).toContain('[no-node');
      expect(said).not.toContain(noAddress);
      expect(said).not.toContain('hairpin');
    }
    expect(await rules('--proxy-mode', 'iptables')).toHaveLength(1);
  });

  test('iptables mode needs the addresses where --nodeport-addresses picks some of them', async () => {
    const picks = ['--proxy-mode', 'iptables', '--nodeport-addresses', '192.168.50.0/24'];
    expect(await say(...picks)).toContain(noAddress);
    expect(await say(...picks, '--node', 'worker-9')).toContain(noAddress);
    expect(await rules(...picks)).toHaveLength(0);
  });

  test('IPVS mode has no address for node ports, unless --host-addresses names some', async () => {
    const ipvs = ['--proxy-mode', 'ipvs'];
    expect(await say(...ipvs)).toContain(noAddress);
    expect(await say(...ipvs, '--host-addresses', hostAddresses)).not.toContain(noAddress);
    expect(await say(...ipvs, '--host-addresses', hostAddresses)).toContain('hairpin');
  });

  test('Nodes that are in the input are not asked for again', async () => {
    const said = await say('-f', nodes, '--proxy-mode', 'ipvs');
    expect(said).toContain('none of the 2 nodes is named with --node');
    expect(said).not.toContain('give the Node object');
  });
});

describe('node ports that --nodeport-addresses leaves without an address', () => {
  const node = ['-f', nodes, '--node', 'worker-1'];

  test.each(['ipvs', 'iptables'])('a warning says so in mode %s', async (mode) => {
    const said = await say(...node, '--proxy-mode', mode, '--nodeport-addresses', '10.99.0.0/16');
    expect(said).toContain('192.168.50.10');
    expect(said).toContain('10.99.0.0/16');
    expect(said).toContain('[no-node-port-address]');
  });

  test.each([
    ['compile', '--all-nodes', '-o', 'unused'],
    ['compile', '--node', 'worker-1', '--node', 'worker-2', '-o', 'unused'],
    ['lint'],
    ['migrate'],
  ])('%s %s says so of all its nodes', async (command, ...more) => {
    const flags = ['--proxy-mode', 'ipvs', '--nodeport-addresses', '10.99.0.0/16', '--output', 'json'];
    const run = await runKpc([command, '-f', services, '-f', nodes, ...more, ...flags], { cwd: scratch });
    const found = JSON.parse(run.stdout).findings.filter(
      (one: { code: string }) => one.code === 'no-node-port-address',
    );
    expect(found.flatMap((one: { arguments: { nodes: string[] } }) => one.arguments.nodes)).toContain('worker-1');
  });

  test.each([
    ['an address of the node is in it', ['--nodeport-addresses', '192.168.50.0/24']],
    ['--host-addresses has one in it', ['--nodeport-addresses', '10.99.0.0/16', '--host-addresses', hostAddresses]],
    ['it is of the other family', ['--nodeport-addresses', 'fd00::/64']],
    ['it is not given', []],
  ])('none where %s', async (_, args) => {
    for (const mode of ['ipvs', 'iptables']) {
      expect(await say(...node, '--proxy-mode', mode, ...args)).not.toContain('no-node-port-address');
    }
  });

  test('none where no Service has a node port', async () => {
    const plain = write(
      'plain.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: 10.96.0.81, ports: [{port: 80}]}\n',
    );
    const run = await runKpc([
      'compile',
      '-f',
      plain,
      ...node,
      '--nodeport-addresses',
      '10.99.0.0/16',
      '--print',
      'iptables',
    ]);
    expect(run.stderr).not.toContain('no-node-port-address');
  });
});

describe('--nodeport-addresses 127.0.0.0/8 without --host-addresses', () => {
  const loopback = ['-f', nodes, '--node', 'worker-1', '--nodeport-addresses', '127.0.0.0/8'];

  test('iptables mode serves node ports on 127.0.0.1, which every node has', async () => {
    const jumps = await rules(...loopback, '--proxy-mode', 'iptables');
    expect(jumps).toHaveLength(1);
    expect(jumps[0]).toContain('-d 127.0.0.1');
    expect(await say(...loopback, '--proxy-mode', 'iptables')).not.toContain('no-node-port-address');
    const told = await rules(...loopback, '--proxy-mode', 'iptables', '--host-addresses', hostAddresses);
    expect(told).toEqual(jumps);
  });

  test('--host-addresses without it is believed', async () => {
    const without = write(
      'eth.json',
      JSON.stringify([{ ifname: 'eth0', addr_info: [{ family: 'inet', local: '192.168.50.10', prefixlen: 24 }] }]),
    );
    expect(await rules(...loopback, '--proxy-mode', 'iptables', '--host-addresses', without)).toHaveLength(0);
  });

  test('IPVS mode serves no node ports on loopback addresses, and says so', async () => {
    expect(await say(...loopback, '--proxy-mode', 'ipvs')).toContain('[no-node-port-address]');
    const told = await say(...loopback, '--proxy-mode', 'ipvs', '--host-addresses', hostAddresses);
    expect(told).toContain('[no-node-port-address]');
  });
});
