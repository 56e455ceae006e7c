// The addresses that kpc chooses for senders that stand for others.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { traceMatrix } from '../../src/ask/trace/matrix.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { open, trace } from '../../src/library/index.ts';
import { linesUnder } from '../../src/say/trace-answer.ts';
import { projectFolder } from '../support/run-kpc.ts';

const node = readFileSync(join(projectFolder, 'test/trace/two-endpoints.txt'), 'utf8');

/** Replaces a text, which must be there. */
function changed(old: string | RegExp, by: string): string {
  expect(node).toMatch(old);
  return node.replace(old, by);
}

function traced(dump: string, from: string, to: string) {
  const [side] = open({ 'node.txt': dump }).snapshots;
  return side && trace({ side, from, to }).trace?.traces[0];
}

test.each([
  ['listed as broadcast', '', 'broadcast 10.244.1.255 dev cni0 table local proto kernel scope link src 10.244.1.1'],
  ['the last of its network', 'inet 10.244.1.1/25', '10.244.1.128/32 dev cni0'],
])('no pod has an address that is %s', (_, link, route) => {
  const base = link === '' ? changed(/^1: lo[^]*?^default/m, 'default') : changed('inet 10.244.1.1/24', link);
  const found = traced(`${base}${route}\n`, 'pod', '10.96.0.80:80');
  expect(found?.from.address).toMatch(/^10\.244\.1\.(?!0$|127$|128$|255$)/);
});

test('rules that name a network that no pod here is in: the table says that no example address is known', () => {
  const [side] = open({ 'node.txt': node.replaceAll('10.244.0.0/16', '10.200.0.0/16') }).snapshots;
  const scene = side && sceneOf(side);
  const matrix = scene && traceMatrix(scene.side.ports, scene);
  const asked = matrix?.open.map(({ from, why }) => ({ from, what: why.arguments }));
  expect(asked).toContainEqual({ from: 'pod', what: { problem: 'no-address-for', sender: 'pod' } });
  expect(scene && matrix && linesUnder(matrix, scene).join('\n')).toContain('such as 10.244.1.5');
});

const cluster = {
  'cluster.yaml': `
{ apiVersion: v1, kind: Node, metadata: { name: n1 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] },
  spec: { podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24] } }
---
{ apiVersion: v1, kind: Node, metadata: { name: n2 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.12 }] },
  spec: { podCIDR: 10.244.2.0/24, podCIDRs: [10.244.2.0/24] } }
---
{ apiVersion: v1, kind: Service, metadata: { name: kubernetes }, spec: { clusterIP: 10.96.0.1, externalIPs: [203.0.113.9],
  ports: [{ port: 443 }] } }
---
{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: { name: k1, labels: { kubernetes.io/service-name: kubernetes } },
  addressType: IPv4, ports: [{ port: 6443 }], endpoints: [{ addresses: [192.168.50.11] }] }`,
};

test("another Node's address is no sender on this node, and pods elsewhere reach Services through their own node", () => {
  const [side] = open(cluster, { node: 'n2', proxyMode: 'nftables' }).snapshots;
  const scene = side && sceneOf(side);
  const cells = scene && traceMatrix(scene.side.ports, scene).cells;
  expect(new Set(cells?.map(({ from }) => from))).toEqual(new Set(['pod', 'node', 'external']));
});

test.each([
  ['rr', /^(?!.*scheduler)/],
  ['lc', /fewer open connections/],
  ['sh', /client's address:/],
  ['mh', /client's address and port/],
  ['dh', /by the destination/],
  ['fo', /to the same endpoint/],
  ['ovf', /active connections/],
])('what the shares mean with scheduler %s', (ipvsScheduler, words) => {
  const two = cluster['cluster.yaml'].replace(
    '[{ addresses: [192.168.50.11] }]',
    '[{ addresses: [10.244.1.5] }, { addresses: [10.244.1.6] }]',
  );
  const { trace: found } = trace({
    manifests: { 'cluster.yaml': two },
    node: 'n2',
    proxyMode: 'ipvs',
    ipvsScheduler,
    from: 'pod',
    to: '10.96.0.1:443',
  });
  const notes = JSON.stringify(found?.traces[0]?.notes ?? []);
  expect(notes).toMatch(words);
});
