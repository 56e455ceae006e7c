// A change of the share of connections that work is a loss or a gain, whichever endpoints they reach; packets that only one side's
// node sees are not compared.
import { expect, test } from 'vitest';
import { effectsByService } from '../../src/ask/equivalence/findings.ts';
import { onOneNode, sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { openTexts } from '../../src/library/open.ts';

const service = (fields: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.10, ${fields} }\n`;

const slice = (endpoints: string) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [${endpoints}]
`;

const nodes = [1, 2].map(
  (at) => `apiVersion: v1
kind: Node
metadata: { name: w${at} }
spec: { podCIDRs: [10.244.${at}.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.50.1${at} }] }
`,
);

function scene(proxyMode: 'ipvs' | 'nftables', ...objects: readonly string[]): Scene {
  const manifests = { 'in.yaml': [...objects, ...nodes].join('---\n') };
  return sceneWith({ manifests, proxyMode, clusterCidr: '10.244.0.0/16' });
}

function sceneWith(options: Parameters<typeof openTexts>[0]): Scene {
  const { side } = openTexts({ ...options, node: 'w1' }, true).at('w1');
  if (!side) throw new Error('no side');
  return sceneOf(side);
}

const local = service('type: NodePort, externalTrafficPolicy: Local, ports: [{ port: 80, nodePort: 30080 }]');
const onBoth = slice('{ addresses: [192.168.50.11], nodeName: w1 }, { addresses: [192.168.50.12], nodeName: w2 }');
const [ipvs, nftables] = [scene('ipvs', local, onBoth), scene('nftables', local, onBoth)];

test.each([
  ['fewer', ipvs, nftables, 'breaks'],
  ['more', nftables, ipvs, 'opens'],
] as const)('%s connections work, and other endpoints are reached', (_, from, to, severity) => {
  const effects = effectsByService(...onOneNode(from, to))?.effects ?? [];
  const partly = effects.filter(({ choice }) => choice?.lost !== undefined);
  expect(partly.map((each) => [each.target, each.severity])).toEqual([['node-port', severity]]);
});

test('an endpoint sends through this node only on the side where it runs on this node', () => {
  const cluster = service('ports: [{ port: 80, targetPort: 8080 }]');
  const on = (node: string) => scene('nftables', cluster, slice(`{ addresses: [10.244.9.9], nodeName: ${node} }`));
  const [here, there] = [on('w1'), on('w2')];
  expect(effectsByService(...onOneNode(here, there))?.effects).toEqual([]);
  expect(effectsByService(...onOneNode(there, here))?.effects).toEqual([]);
});

test.each([
  ['a larger part', [1, 1, 2, 2], [1, 1, 2, 2, 2], 'changes'],
  ['a part, where all worked', [1, 1], [1, 1, 2], 'breaks'],
] as const)('of what clients outside send to a cluster IP, %s fails', (_, before, after, severity) => {
  // Without clusterCIDR nothing masquerades such packets, so answers from the other node bypass this one.
  const on = (places: readonly number[]) => {
    const endpoints = places.map((at, i) => `{ addresses: [10.244.${at}.${10 + i}], nodeName: w${at} }`);
    const objects = [service('ports: [{ port: 80, targetPort: 8080 }]'), slice(endpoints.join(', ')), ...nodes];
    return sceneWith({ manifests: { 'in.yaml': objects.join('---\n') }, proxyMode: 'nftables' });
  };
  const effects = effectsByService(...onOneNode(on(before), on(after)))?.effects ?? [];
  const ofOutside = effects.filter(({ senders }) => senders.some(({ kind }) => kind === 'outside'));
  expect(ofOutside.map((each) => [each.target, each.severity])).toEqual([['cluster-ip', severity]]);
});

test('a connection that depends on what no listing shows neither works nor fails', () => {
  // Only in IPVS mode does the node hold the cluster IP that the packet is sent on to.
  const web = service('ports: [{ port: 8080 }]');
  const front = web.replace('name: web', 'name: front').replace('10.96.0.10', '10.96.0.20');
  const onward = slice('{ addresses: [10.96.0.10] }')
    .replace('name: web-1', 'name: front-1')
    .replace('name: web', 'name: front');
  const objects = [web, slice('{ addresses: [10.244.1.9], nodeName: w1 }'), front, onward];
  const severities = (from: Scene, to: Scene) => {
    const effects = effectsByService(...onOneNode(from, to))?.effects ?? [];
    return new Set(
      effects.flatMap(({ severity, asked }) =>
        asked.some(({ id }) => id.includes('10.96.0.20:8080')) ? severity : [],
      ),
    );
  };
  const [held, unheld] = [scene('ipvs', ...objects), scene('nftables', ...objects)];
  expect([severities(held, unheld), severities(unheld, held)]).toEqual([new Set(['unknown']), new Set(['unknown'])]);
});
