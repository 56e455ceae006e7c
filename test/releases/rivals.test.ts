import { describe, expect, test } from 'vitest';
import { buildCluster, clusterOfNode } from '../../src/cluster/build-cluster.ts';
import { findSlices } from '../../src/cluster/slices/find-slices.ts';
import type { Cluster } from '../../src/cluster/model.ts';
import { readInputs } from '../support/read-inputs.ts';
import { behavioursOf, releases, type Release } from '../../src/kube-proxy/releases.ts';

interface Rival {
  readonly node?: string;
  readonly conditions?: string;
}

/** A Service whose slices, in this order, all hold 10.1.0.1:80. */
function clusterOf(rivals: readonly Rival[], release: Release): Cluster {
  const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  externalTrafficPolicy: Local
  healthCheckNodePort: 32000
  ports: [{port: 80, nodePort: 30080}]
`;
  const slices = rivals.map(
    ({ node, conditions = '{ready: true}' }, index) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-${index}, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80, protocol: TCP}]
endpoints: [{addresses: [10.1.0.1], conditions: ${conditions}${node === undefined ? '' : `, nodeName: ${node}`}}]
`,
  );
  const inputs = readInputs(['-'], { stdin: service + slices.join('') });
  return buildCluster(findSlices(inputs, undefined).services, behavioursOf(release));
}

/** Which of the rivals a node takes, by the node that it is on and whether it is ready. */
function chosenOn(
  cluster: Cluster,
  name: string,
  release: Release,
): readonly (readonly [string | undefined, boolean])[] {
  const [port] = clusterOfNode(cluster, { name }, behavioursOf(release)).servicePorts;
  return port?.endpoints.map(({ status: { nodeName, ready } }) => [nodeName, ready] as const) ?? [];
}

// The kube-proxy of 1.25 reads Endpoints, which name an address once.
const before136 = releases.filter(
  (release) => behavioursOf(release).has('endpoint-slices') && releases.indexOf(release) < releases.indexOf('1.36'),
);
const terminating = '{ready: false, serving: true, terminating: true}';

describe('two slices that name one endpoint', () => {
  test.each(before136)('up to 1.35 each node takes its own, else the first: %s', (release) => {
    const cluster = clusterOf([{ node: 'a' }, { node: 'b' }, {}], release);
    expect(chosenOn(cluster, 'a', release)).toEqual([['a', true]]);
    expect(chosenOn(cluster, 'b', release)).toEqual([['b', true]]);
    expect(chosenOn(cluster, 'c', release)).toEqual([['a', true]]);
    expect(chosenOn(cluster, '', release)).toEqual([['a', true]]);
  });

  test.each(before136)('of two on one node the last counts there, the first elsewhere: %s', (release) => {
    const cluster = clusterOf([{ node: 'a', conditions: terminating }, { node: 'a' }], release);
    expect(chosenOn(cluster, 'a', release)).toEqual([['a', true]]);
    expect(chosenOn(cluster, 'b', release)).toEqual([['a', false]]);
    const three = clusterOf([{ node: 'a' }, { node: 'a', conditions: terminating }, { node: 'a' }], release);
    expect(chosenOn(three, 'a', release)).toEqual([['a', true]]);
  });

  test('since 1.36 all nodes take the last that does not terminate', () => {
    const cluster = clusterOf([{ node: 'a' }, { node: 'b' }, { node: 'c', conditions: terminating }], '1.36');
    for (const name of ['a', 'b', 'c', '']) expect(chosenOn(cluster, name, '1.36')).toEqual([['b', true]]);
  });

  test('the health check counts an endpoint on each node whose kube-proxy takes it for its own', () => {
    const nodesOf = (release: Release, rivals: readonly Rival[]) =>
      clusterOf(rivals, release).healthChecks.map(({ readyEndpoints }) =>
        readyEndpoints.map(({ nodeName }) => nodeName),
      );
    expect(nodesOf('1.35', [{ node: 'a' }, { node: 'b' }])).toEqual([['a', 'b']]);
    expect(nodesOf('1.36', [{ node: 'a' }, { node: 'b' }])).toEqual([['b']]);
    expect(nodesOf('1.35', [{ node: 'a', conditions: terminating }, { node: 'b' }])).toEqual([['b']]);
    expect(nodesOf('1.35', [{ node: 'a' }, { node: 'a', conditions: terminating }])).toEqual([[]]);
  });

  test('a cluster without rivals is left as it is', () => {
    const cluster = clusterOf([{ node: 'a' }], '1.30');
    expect(clusterOfNode(cluster, { name: 'a' }, behavioursOf('1.30'))).toBe(cluster);
  });

  test('settling a cluster again changes nothing', () => {
    const cluster = clusterOf([{ node: 'a' }, { node: 'b' }], '1.30');
    const once = clusterOfNode(cluster, { name: 'b' }, behavioursOf('1.30'));
    expect(chosenOn(once, 'b', '1.30')).toEqual([['b', true]]);
    expect(chosenOn(cluster, 'a', '1.30')).toEqual([['a', true]]);
  });
});
