import { describe, expect, test } from 'vitest';
import { chooseEndpoints, explainEndpoints, explainUnboundHints } from '../../src/cluster/endpoint-choice.ts';
import type { ServicePort } from '../../src/cluster/model.ts';
import { address, endpoint, goingAway, remote, servicePort, worker } from '../modes/iptables/compile.ts';

const here = endpoint('10.244.1.5');
const there = remote('10.244.2.5');

/** The addresses chosen on worker-1 in zone-a. */
function choose(port: Partial<ServicePort>) {
  const { cluster, local, reachable, hasAny } = chooseEndpoints(servicePort(port), worker);
  const names = (endpoints: typeof cluster) => endpoints.map(({ address: { text } }) => text);
  return { cluster: names(cluster), local: names(local), reachable: names(reachable), hasAny };
}

describe('policy Cluster', () => {
  test('takes every ready endpoint, on whatever node', () => {
    expect(choose({ endpoints: [here, there] }).cluster).toEqual(['10.244.1.5', '10.244.2.5']);
  });

  test('leaves out what is not ready', () => {
    const notReady = endpoint('10.244.1.6', { ready: false, serving: false });
    expect(choose({ endpoints: [here, notReady] }).cluster).toEqual(['10.244.1.5']);
  });

  test('falls back to endpoints that terminate but still serve when none is ready', () => {
    const leaving = remote('10.244.2.6', goingAway);
    expect(choose({ endpoints: [leaving] })).toMatchObject({ cluster: ['10.244.2.6'], hasAny: true });
    expect(choose({ endpoints: [leaving, here] }).cluster).toEqual(['10.244.1.5']);
  });

  test('has nothing where no endpoint serves', () => {
    const dead = endpoint('10.244.1.6', { ready: false, serving: false, terminating: true });
    expect(choose({ endpoints: [dead] })).toEqual({ cluster: [], local: [], reachable: [], hasAny: false });
  });
});

describe('topology hints', () => {
  const zoneA = remote('10.244.2.1', { zoneHints: ['zone-a'] });
  const zoneB = remote('10.244.2.2', { zoneHints: ['zone-b'] });

  test('keep traffic in the zone when every ready endpoint has a hint', () => {
    expect(choose({ endpoints: [zoneA, zoneB] }).cluster).toEqual(['10.244.2.1']);
  });

  test('count for nothing when one ready endpoint has none', () => {
    expect(choose({ endpoints: [zoneA, zoneB, there] }).cluster).toHaveLength(3);
  });

  test('need no hint on endpoints that are not ready', () => {
    const unready = remote('10.244.2.3', { ready: false, serving: false });
    expect(choose({ endpoints: [zoneA, zoneB, unready] }).cluster).toEqual(['10.244.2.1']);
    const onNode = endpoint('10.244.1.4', { nodeHints: ['worker-1'] });
    const nextDoor = remote('10.244.2.4', { nodeHints: ['worker-2'] });
    expect(choose({ endpoints: [onNode, nextDoor, unready] }).cluster).toEqual(['10.244.1.4']);
  });

  test('count for nothing when none names this zone', () => {
    expect(choose({ endpoints: [zoneB] }).cluster).toEqual(['10.244.2.2']);
  });

  test('count for nothing when only an endpoint that is not ready names this zone or this node', () => {
    const unready = { ready: false, serving: true, terminating: false };
    const hereUnready = remote('10.244.2.4', { zoneHints: ['zone-a'], ...unready });
    expect(choose({ endpoints: [zoneB, hereUnready] }).cluster).toEqual(['10.244.2.2']);
    const nextDoor = remote('10.244.2.5', { nodeHints: ['worker-2'] });
    const onNode = endpoint('10.244.1.5', { nodeHints: ['worker-1'], ...unready });
    expect(choose({ endpoints: [nextDoor, onNode] }).cluster).toEqual(['10.244.2.5']);
  });

  test('do not bind a node to an endpoint that goes away', () => {
    // Bound to zone-a, the node would fall back to the one that serves while it terminates.
    const leaving = remote('10.244.2.4', { zoneHints: ['zone-a'], ...goingAway });
    expect(choose({ endpoints: [zoneB, leaving] }).cluster).toEqual(['10.244.2.2']);
  });

  test('are explained where they bind nothing', () => {
    const explain = (endpoints: ServicePort['endpoints'], node = worker) =>
      explainUnboundHints(servicePort({ endpoints }), node);
    expect(explain([zoneA, zoneB, there])).toEqual({ kind: 'endpoint-without-hint', endpoint: '10.244.2.5:8080' });
    expect(explain([zoneB])).toEqual({ kind: 'none-for-zone', zone: 'zone-a' });
    expect(explain([zoneB], { ...worker, zone: '' })).toEqual({ kind: 'node-without-zone' });
    expect(explain([zoneA, zoneB])).toBeUndefined();
    expect(explain([here, there])).toBeUndefined();
  });

  test('by node go before hints by zone', () => {
    const onNode = endpoint('10.244.1.7', { nodeHints: ['worker-1'], zoneHints: ['zone-a'] });
    const nextDoor = remote('10.244.2.7', { nodeHints: ['worker-2'], zoneHints: ['zone-a'] });
    expect(choose({ endpoints: [onNode, nextDoor] }).cluster).toEqual(['10.244.1.7']);
    expect(choose({ endpoints: [nextDoor] }).cluster).toEqual(['10.244.2.7']);
  });
});

describe('policy Local', () => {
  const local: Partial<ServicePort> = { externalPolicyLocal: true, nodePort: 30080 };

  test("gives external traffic the node's own endpoints, and all to the others", () => {
    expect(choose({ ...local, endpoints: [here, there] })).toEqual({
      cluster: ['10.244.1.5', '10.244.2.5'],
      local: ['10.244.1.5'],
      reachable: ['10.244.1.5', '10.244.2.5'],
      hasAny: true,
    });
  });

  test('knows that there are endpoints elsewhere when the node has none', () => {
    expect(choose({ ...local, internalPolicyLocal: true, endpoints: [there] })).toMatchObject({
      local: [],
      hasAny: true,
    });
  });

  test("uses the node's terminating endpoints only when it has no ready one", () => {
    const leaving = endpoint('10.244.1.6', goingAway);
    expect(choose({ ...local, endpoints: [leaving, there] })).toMatchObject({
      cluster: ['10.244.2.5'],
      local: ['10.244.1.6'],
      reachable: ['10.244.1.6', '10.244.2.5'],
    });
    expect(choose({ ...local, endpoints: [here, leaving] }).local).toEqual(['10.244.1.5']);
  });

  test('ignores hints', () => {
    const elsewhere = endpoint('10.244.1.8', { zoneHints: ['zone-b'] });
    const zone = remote('10.244.2.8', { zoneHints: ['zone-a'] });
    expect(choose({ ...local, endpoints: [elsewhere, zone] })).toMatchObject({
      cluster: ['10.244.2.8'],
      local: ['10.244.1.8'],
    });
  });

  test('for internal traffic alone needs no cluster-wide endpoints', () => {
    expect(choose({ internalPolicyLocal: true, endpoints: [here, there] })).toMatchObject({
      cluster: [],
      local: ['10.244.1.5'],
      reachable: ['10.244.1.5'],
    });
  });

  test('is nothing to a Service that is not reached from outside', () => {
    expect(choose({ externalPolicyLocal: true, endpoints: [here, there] }).local).toEqual([]);
    expect(
      choose({ externalPolicyLocal: true, externalIPs: [address('203.0.113.9')], endpoints: [here, there] }).local,
    ).toEqual(['10.244.1.5']);
  });
});

test('finds no endpoint local where the node has no name', () => {
  const nameless = { ...worker, name: '' };
  const port = servicePort({ internalPolicyLocal: true, endpoints: [endpoint('10.244.1.5', { nodeName: '' })] });
  expect(chooseEndpoints(port, nameless).local).toEqual([]);
});

test('an endpoint has a reason for each policy that the port has traffic of, and for no other', () => {
  const kinds = (port: Partial<ServicePort>) =>
    explainEndpoints(servicePort({ endpoints: [there], ...port }), worker).map(({ cluster, local }) => [
      cluster?.kind,
      local?.kind,
    ]);
  expect(kinds({})).toEqual([['ready', undefined]]);
  expect(kinds({ internalPolicyLocal: true })).toEqual([[undefined, 'other-node']]);
  expect(kinds({ internalPolicyLocal: true, nodePort: 30080 })).toEqual([['ready', 'other-node']]);
});
