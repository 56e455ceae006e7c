// Nodes that kpc does not follow, and addresses of another node.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compile, lint, testPackets, trace } from '../../src/library/index.ts';
import { runKpc } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-nodes-'));
afterAll(() => rmSync(folder, { recursive: true }));

const service = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, clusterIP: 10.96.7.1, ports: [{ port: 80, nodePort: 30080 }] }
---
`;
const node = (name: string, more: string, address: string) => `apiVersion: v1
kind: Node
metadata: { name: ${name}${more} }
status: { addresses: [{ type: InternalIP, address: ${address} }], nodeInfo: { operatingSystem: ${name === 'w2' ? 'windows' : '""'} } }
---
`;
const manifests = {
  'cluster.yaml': `${service}${node('n1', '', '192.168.50.11')}${node('w1', ', labels: { kubernetes.io/os: windows }', '192.168.50.12')}${node('w2', '', '192.168.50.13')}`,
};
const listing = (address: string) => ({
  name: 'ip.txt',
  text: `2: eth0: <UP> mtu 1500\n    inet ${address}/24 scope global eth0\n`,
});

const leftOut = { code: 'no-node', severity: 'note', arguments: { problem: 'windows', names: ['w1', 'w2'] } };

test('Windows nodes are left out and named', () => {
  const { snapshots, diagnostics } = trace({ manifests, allNodes: true, from: '192.0.2.1', to: '10.96.7.1:80' });
  expect(snapshots.map((each) => each.node)).toEqual(['n1']);
  expect(diagnostics).toContainEqual(expect.objectContaining(leftOut));
  expect(lint({ manifests }).diagnostics).toContainEqual(expect.objectContaining(leftOut));
});

test.each(['w1', 'w2'])('%s is refused by name', (name) => {
  const error = expect.objectContaining({ code: 'no-node', arguments: { problem: 'named-windows', names: [name] } });
  expect(compile({ manifests, node: name, proxyMode: 'iptables' }).diagnostics).toContainEqual(error);
  const alone = { 'w.yaml': `${service}${node(name, ', labels: { kubernetes.io/os: windows }', '192.168.50.12')}` };
  expect(compile({ manifests: alone, node: name, proxyMode: 'iptables' }).diagnostics).toContainEqual(error);
});

test('a list of addresses that has none of the Node is of another node', () => {
  const found = (address: string) =>
    compile({ manifests, node: 'n1', proxyMode: 'iptables', hostAddresses: listing(address) }).diagnostics.filter(
      ({ code }) => code === 'bad-host-addresses',
    );
  expect(found('192.168.50.11')).toEqual([]);
  const details = { problem: 'other-node', node: 'n1', addresses: ['192.168.50.11'] };
  expect(found('192.168.50.99')).toMatchObject([{ severity: 'warning', arguments: details }]);
});

test('a fleet has no folder for them, and names swapped lists', async () => {
  const file = join(folder, 'cluster.yaml');
  writeFileSync(file, manifests['cluster.yaml']);
  const hosts = mkdtempSync(join(folder, 'hosts-'));
  writeFileSync(join(hosts, 'n1.json'), listing('192.168.50.99').text);
  const out = join(folder, 'fleet');
  const { status, stderr } = await runKpc(['compile', file, '--all-nodes', '-o', out, '--host-addresses', hosts]);
  expect([status, readdirSync(out).filter((name) => !name.startsWith('.'))]).toEqual([0, ['n1']]);
  expect(stderr).toContain('[bad-host-addresses]');
  const refused = await runKpc(['migrate', out, '--from', 'ipvs', '--to', 'nftables']);
  expect(refused.stderr).toContain(`${out} is a fleet, not manifests`);
});

test('a sender that chooses its node leaves no note that none is named', () => {
  const given = {
    'in.yaml': [
      ...['n1', 'n2'].map((name) => `{apiVersion: v1, kind: Node, metadata: {name: ${name}}}`),
      '{apiVersion: v1, kind: Pod, metadata: {name: client}, spec: {nodeName: n2, containers: [{name: c, image: c}]}, status: {podIP: 10.244.2.9}}',
      '{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}}',
    ].join('\n---\n'),
  };
  const tests = (from: string) => ({ 't.yaml': `tests: [{from: ${from}, to: db, expect: unknown}]` });
  const isNoted = ({ diagnostics }: { readonly diagnostics: readonly { readonly code: string }[] }): boolean =>
    diagnostics.some(({ code }) => code === 'no-node');
  const noted = (from: string) =>
    [trace({ manifests: given, from, to: 'db' }), testPackets({ manifests: given, tests: tests(from) })].map(isNoted);
  expect(noted('client')).toEqual([false, false]);
  expect(noted('node')).toEqual([true, true]);
});
