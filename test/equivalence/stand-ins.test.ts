import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadInputs } from '../../src/snapshot/files/read-texts.ts';
import { chooseStandIns, type ClusterSide, type StandIn } from '../../src/ask/equivalence/representatives.ts';
import type { Divergence } from '../../src/ask/equivalence/effects.ts';
import { Comparison } from '../../src/ask/equivalence/findings.ts';
import { onOneNode, sceneOf } from '../../src/ask/trace/scene.ts';
import { openTexts } from '../../src/library/open.ts';
import { makeRandom } from '../support/random.ts';
import { isFull, rounds } from '../support/rounds.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { makeAlikeServices } from './alike-services.ts';

const fixture = (name: string): string => join(projectFolder, 'fixtures', name);

async function standInsOf(service: string, nodes: number) {
  const file = [fixture(`${service}/svc.yaml`), fixture('cluster/nodes.yaml')];
  const prepared = await loadInputs({ file, ipFamily: 'auto' });
  const [first] = prepared.nodes.values();
  if (!first) throw new Error('no Node');
  // Nodes without any endpoints, all alike.
  const more = Array.from({ length: nodes }, (_, i) => [`empty-${i}`, first] as const);
  const all = new Map([...prepared.nodes, ...more]);
  return chooseStandIns([{ ...prepared, nodes: all }], [...all.keys()].sort());
}

test('of 500 nodes that are alike, one is asked', async () => {
  const { standIns: chosen, represented } = await standInsOf('nodeport', 500);
  expect(chosen.filter(({ node }) => node.startsWith('empty-'))).toHaveLength(1);
  expect(chosen.length).toBeLessThan(5);
  const asked = chosen.find(({ node }) => node.startsWith('empty-'))?.node;
  const empty = represented.filter(({ node }) => node.startsWith('empty-'));
  expect(empty).toHaveLength(500);
  expect(new Set(empty.flatMap(({ by }) => by))).toEqual(new Set([asked]));
  expect(new Set(represented.flatMap(({ by }) => by))).toEqual(new Set(chosen.map(({ node }) => node)));
});

test('nodes with and without endpoints of a Service of policy Local are asked', async () => {
  const { standIns: chosen, represented } = await standInsOf('loadbalancer-local', 0);
  const asked = chosen.map(({ node, only }) => `${node} ${only ? [...only.addresses].join() : 'everything'}`);
  expect(asked[0]).toBe('worker-1 everything');
  expect(asked.length).toBeGreaterThan(1);
  // Of a node that differs in one Service, the rest is asked of another.
  for (const { node, only } of chosen) {
    expect(represented).toContainEqual({ node, by: only ? ['worker-1', node] : [node] });
  }
});

test('nodes that differ in their zone alone are one, unless hints make them use other endpoints', async () => {
  const { cluster, nodes, settings } = await loadInputs({
    file: [fixture('nodeport/svc.yaml'), fixture('cluster/nodes.yaml')],
    ipFamily: 'auto',
  });
  const [first] = nodes.values();
  if (!first) throw new Error('no Node');
  const inZones = new Map(
    ['a', 'b', 'c'].map((zone) => {
      const labels = { ...first.metadata.labels, 'topology.kubernetes.io/zone': zone };
      return [`in-${zone}`, { ...first, metadata: { ...first.metadata, labels } }] as const;
    }),
  );
  const hintedTo = (zoneOf: (at: number) => string) => {
    const servicePorts = cluster.servicePorts.map((port) => {
      const endpoints = [...port.endpoints, ...port.endpoints].map((each, at) => {
        return { ...each, status: { ...each.status, zoneHints: [zoneOf(at)] } };
      });
      return { ...port, endpoints };
    });
    return [{ ...cluster, servicePorts }];
  };
  const chosenOf = (clusters: readonly ClusterSide['cluster'][]) => {
    const sides = clusters.map((each) => ({ nodes: inZones, cluster: each, settings }));
    return chooseStandIns(sides, [...inZones.keys()]).standIns.map(({ node, only }) => [node, only === undefined]);
  };
  expect(chosenOf([cluster])).toEqual([['in-a', true]]);
  expect(chosenOf(hintedTo(() => 'b'))).toEqual([['in-a', true]]);
  expect(chosenOf(hintedTo((at) => (at === 0 ? 'a' : 'b')))).toEqual([
    ['in-a', true],
    ['in-c', false],
  ]);
});

function byCause({ cause: a }: Pick<Divergence, 'cause'>, { cause: b }: Pick<Divergence, 'cause'>): number {
  return a.localeCompare(b);
}

test('random clusters: the nodes that stand for all find what all nodes together find', () => {
  let fewer = 0;
  for (let seed = 1; seed <= rounds(isFull ? 40 : 20, 20); seed++) {
    const manifests = { 'in.yaml': makeAlikeServices(6, makeRandom(seed)) };
    const [from, to] = (['iptables', 'nftables'] as const).map((proxyMode) =>
      openTexts({ manifests, proxyMode }, false),
    );
    const { loaded } = from ?? {};
    if (!from || !to?.loaded || !loaded) throw new Error('not read');
    const nodes = [...loaded.nodes.keys()];
    const foundOn = (asked: readonly StandIn[]) => {
      const comparison = new Comparison();
      for (const { node, only } of asked) {
        const [before, after] = [from.at(node).side, to.at(node).side];
        if (before && after) comparison.add(onOneNode(sceneOf(before), sceneOf(after)), only);
      }
      const { findings } = comparison.result();
      return findings.map(({ cause, servicePorts }) => ({ cause, servicePorts })).toSorted(byCause);
    };
    const { standIns } = chooseStandIns([loaded], nodes);
    if (standIns.some(({ only }) => only) || standIns.length < nodes.length) fewer++;
    expect(foundOn(standIns), `seed ${seed}`).toEqual(foundOn(nodes.map((node) => ({ node, only: undefined }))));
  }
  expect(fewer).toBeGreaterThan(0);
}, 600_000);

test('a node that changes from side to side, or whose endpoints do, stands for itself', async () => {
  const loaded = await loadInputs({
    file: [fixture('nodeport/svc.yaml'), fixture('cluster/nodes.yaml')],
    ipFamily: 'auto',
  });
  const [first] = loaded.nodes.values();
  if (!first) throw new Error('no Node');
  const names = ['a', 'b', 'c'];
  const nodes = new Map(names.map((name) => [name, first] as const));
  const side: ClusterSide = { ...loaded, nodes };
  const chosenOf = (other: ClusterSide) => chooseStandIns([side, other], names).standIns.map(({ node }) => node);
  expect(chosenOf(side)).toEqual(['a']);
  const renumbered = { ...first, addresses: [{ type: 'InternalIP', address: '192.0.2.7' }] };
  expect(chosenOf({ ...side, nodes: new Map([...nodes, ['b', renumbered]]) })).toEqual(['a', 'b']);
  const servicePorts = loaded.cluster.servicePorts.map((port) => ({
    ...port,
    endpoints: port.endpoints.map((each) => ({ ...each, status: { ...each.status, nodeName: 'c' } })),
  }));
  expect(chosenOf({ ...side, cluster: { ...loaded.cluster, servicePorts } })).toEqual(['a', 'c']);
});

const twoNodes = `
{ apiVersion: v1, kind: Node, metadata: { name: n1 }, spec: { podCIDR: 10.244.1.0/24 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
---
{ apiVersion: v1, kind: Node, metadata: { name: n2 }, spec: { podCIDR: 10.244.2.0/24 }, status: { addresses: [{ type: InternalIP, address: 192.168.60.12 }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-x, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
`;
const readyOnBoth = '{ addresses: [10.244.1.10], nodeName: n1 }, { addresses: [10.244.2.10], nodeName: n2 }';
const serviceWith = (fields: string) =>
  `\n---\n{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { clusterIP: 10.96.0.80, ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }], ${fields} }, status: { loadBalancer: { ingress: [{ ip: 203.0.113.60 }] } } }`;

test.each([
  ['nothing', 'type: NodePort', readyOnBoth, {}, ['n1']],
  [
    'the state of their endpoints',
    'type: NodePort, externalTrafficPolicy: Local',
    '{ addresses: [10.244.1.10], nodeName: n1 }, { addresses: [10.244.2.10], nodeName: n2, conditions: { ready: false, serving: true, terminating: true } }',
    {},
    ['n1', 'n2'],
  ],
  ['node port addresses', 'type: NodePort', readyOnBoth, { nodeportAddresses: '192.168.50.0/24' }, ['n1', 'n2']],
  ['the cluster CIDR', 'type: NodePort', readyOnBoth, { clusterCidr: '10.244.1.0/24' }, ['n1', 'n2']],
  ['source ranges', 'type: LoadBalancer, loadBalancerSourceRanges: [192.168.50.0/24]', readyOnBoth, {}, ['n1', 'n2']],
])('nodes that differ in %s are not alike', (_, fields, endpoints, flags, asked) => {
  const manifests = { 'in.yaml': `${twoNodes}endpoints: [${endpoints}]${serviceWith(fields)}` };
  const { loaded } = openTexts({ manifests, proxyMode: 'ipvs', ...flags }, false);
  expect(chooseStandIns([loaded], ['n1', 'n2']).standIns.map(({ node }) => node)).toEqual(asked);
});
