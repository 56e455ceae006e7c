// Senders in the cluster: a Pod with its node's network is that node, and the others have addresses of Pods.
import { expect, test } from 'vitest';
import { ask } from '../../src/ask/trace/ask.ts';
import { readSender } from '../../src/ask/trace/read-sender.ts';
import type { Family } from '../../src/kernel/address.ts';
import type { Trace } from '../../src/ask/trace/question.ts';
import { traceMatrix } from '../../src/ask/trace/matrix.ts';
import type { Scene } from '../../src/ask/trace/scene.ts';
import { sceneOfManifests } from '../support/manifest-scene.ts';

const node = (at: number, podCIDRs = `[10.244.${at}.0/24]`): string =>
  `{apiVersion: v1, kind: Node, metadata: {name: n${at}}, spec: {podCIDRs: ${podCIDRs}}, status: {addresses: [{type: InternalIP, address: 192.168.5.${at}}]}}`;

const pod = (name: string, at: number, address: string, more = ''): string =>
  `{apiVersion: v1, kind: Pod, metadata: {name: ${name}, labels: {app: ${name}}}, spec: {nodeName: n${at}, ${more} containers: [{name: c, image: c}]}, ` +
  `status: {phase: Running, podIPs: [{ip: ${address}}], conditions: [{type: Ready, status: 'True'}]}}`;

const service = (app: string): string =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${app}}, spec: {clusterIP: 10.96.0.10, type: NodePort, selector: {app: ${app}}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}}`;

const agent = pod('agent', 1, '192.168.5.1', 'hostNetwork: true,');
const given = [service('web'), pod('web', 2, '10.244.2.10'), agent, node(1), node(2)];
const scene = (objects: readonly string[], at: string): Scene =>
  sceneOfManifests(objects.join('\n---\n'), at, { assume: true });

function trace(found: Scene, from: string, to: string): Trace {
  const answer = ask({ from, to, protocol: 'tcp', inInterface: undefined, namespace: undefined }, found);
  if (answer.kind === 'wrong') throw new Error(JSON.stringify(answer.faults));
  return answer.value;
}

function remotePod(found: Scene, family: Family = 'ipv4'): string | undefined {
  const read = readSender({ from: 'remote-pod', inInterface: undefined, namespace: undefined }, family, found);
  return read.kind === 'read' ? read.value.address?.text : undefined;
}

const daemons = (network: string): string =>
  `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: exp}, spec: {selector: {matchLabels: {app: exp}}, template: {metadata: {labels: {app: exp}}, spec: {${network} containers: [{name: c, image: c}]}}}}`;

test.each([
  ['a given Pod', given, 'n1', 'agent'],
  ['an assumed Pod', [service('exp'), daemons('hostNetwork: true,')], 'node-1', 'daemonset/exp'],
])('%s with the network of the node asked is the node', (_, objects, at, from) => {
  const found = scene(objects, at);
  const [own, asNode] = [from, 'node'].map((each) => trace(found, each, '10.96.0.10:80'));
  expect(own?.sender).toMatchObject({ address: undefined, enters: undefined });
  expect(own?.fate.steps).toEqual(asNode?.fate.steps);
  expect(own?.fate.connection().kind).toBe(asNode?.fate.connection().kind);
});

test('with the network of another node, it is that node', () => {
  const { sender, fate } = trace(scene(given, 'n2'), 'agent', '192.168.5.2:30080');
  expect(sender).toMatchObject({ address: { text: '192.168.5.1' }, enters: { usual: 'eth0' }, isPod: false });
  expect(fate.verdict).toBe('delivered');
});

test('in a table, its column is that of the node', () => {
  const found = scene(given, 'n1');
  const named = { from: 'agent', inInterface: undefined, namespace: undefined };
  const { cells } = traceMatrix(found.side.ports, found, named);
  const ends = (column: string) =>
    cells.filter(({ from }) => from === column).map(({ target, fate }) => [target.address.text, fate.source]);
  expect(ends('agent')).toEqual(ends('node'));
});

test.each([
  ['Nodes with podCIDRs', [node(1), node(2)], 'n1', /^10\.244\.2\./],
  ['assumed Nodes', [], 'node-1', /^10\.244\.1\./],
])('a pod on another node has an address of Pods, not beside an endpoint on the host: %s', (_, nodes, at, pods) => {
  const objects = [service('exp'), daemons('hostNetwork: true,'), ...nodes];
  expect(remotePod(scene(objects, at))).toMatch(pods);
});

test('without networks of Pods, neither kind has the address of a host', () => {
  const objects = [service('exp'), daemons('hostNetwork: true,'), node(1, '[]'), node(2, '[]')];
  for (const from of ['pod', 'remote-pod'])
    expect(() => trace(scene(objects, 'n1'), from, '10.96.0.10:80')).toThrow('no-address-for');
});

test('a pod on another node has an address of each family, also past the networks of this one', () => {
  const objects = [service('exp'), daemons(''), node(1, '[10.244.0.0/24, "fd00:10:244::/64"]')];
  const range =
    '{apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration, clusterCIDR: "10.244.0.0/16,fd00:10:244::/56"}';
  const found = scene([...objects, range], 'n1');
  expect(remotePod(found)).toBe('10.244.1.250');
  expect(remotePod(found, 'ipv6')).toBe('fd00:10:244:1::fa');
});

test.each([
  ['a named Pod', 'web', 'n2'],
  ['an endpoint', '10.244.2.10', 'n2'],
  ['a pod elsewhere', 'remote-pod', ''],
])('%s on another node reaches Services there, and node ports here', (_, from, home) => {
  const found = scene(given, 'n1');
  const asked = { from, protocol: 'tcp', inInterface: undefined, namespace: undefined } as const;
  const details = { problem: 'other-node', sender: from, to: 'svc/web', node: 'n1', home, kind: 'manifests' };
  expect(ask({ ...asked, to: 'svc/web' }, found)).toMatchObject({
    faults: [{ end: 'from', diagnostic: { code: 'bad-packet', arguments: details } }],
  });
  expect(trace(found, from, '192.168.5.1:30080').fate.verdict).toBe('delivered');
  // Whoever names the interface knows that they come here.
  expect(ask({ ...asked, to: 'svc/web', inInterface: 'eth0' }, found).kind).toBe('read');
});

test('the name of a Pod without a namespace may be of any', () => {
  const client = pod('client', 1, '10.244.1.9').replace('name: client,', 'name: client, namespace: shop,');
  const found = scene([...given, client], 'n1');
  expect(trace(found, 'client', 'web').sender.who).toMatchObject({ kind: 'named-pod', name: 'shop/client' });
  const both = scene([...given, client, pod('client', 1, '10.244.1.8')], 'n1');
  expect(() => trace(both, 'client', 'web')).toThrow('"problem":"several","kind":"Pod"');
  expect(trace(both, 'default/client', 'web').sender.address?.text).toBe('10.244.1.8');
});

test.each([
  ['Pods', given, false],
  ['no Pod', [service('web'), node(1)], true],
])('a sender that the input lacks, beside %s', (_, objects, lacksPods) => {
  const found = sceneOfManifests(objects.join('\n---\n'), 'n1', { assume: false });
  const read = readSender({ from: 'client', inInterface: undefined, namespace: undefined }, 'ipv4', found);
  expect(read).toMatchObject({ diagnostic: { arguments: { problem: 'no-sender', name: 'client', lacksPods } } });
});
