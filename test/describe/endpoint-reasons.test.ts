import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chooseEndpoints, explainEndpoints, isUsedFor } from '../../src/cluster/endpoint-choice.ts';
import type { Endpoint, ServicePort } from '../../src/cluster/model.ts';
import { parseAddress } from '../../src/kernel/address.ts';

const clusterIP = parseAddress('10.96.0.1') ?? expect.fail('an address');
const node = { name: 'node-1', zone: 'zone-a' };

const arbitraryEndpoint = fc.record({
  nodeName: fc.constantFrom('node-1', 'node-2', undefined),
  ready: fc.boolean(),
  serving: fc.boolean(),
  terminating: fc.boolean(),
  zoneHints: fc.constantFrom([], ['zone-a'], ['zone-b']),
  nodeHints: fc.constantFrom([], ['node-1'], ['node-2']),
});

const arbitraryPort: fc.Arbitrary<ServicePort> = fc
  .record({
    internalPolicyLocal: fc.boolean(),
    externalPolicyLocal: fc.boolean(),
    nodePort: fc.constantFrom(0, 30080),
    endpoints: fc.array(arbitraryEndpoint, { maxLength: 6 }),
  })
  .map(({ endpoints, ...policies }) => ({
    ...policies,
    namespace: 'default',
    service: 'web',
    portName: '',
    protocol: 'TCP',
    family: 'ipv4',
    label: 'default/web',
    clusterIP,
    port: 80,
    externalIPs: [],
    loadBalancerIPs: [],
    sourceRanges: [],
    affinitySeconds: 0,
    healthCheckNodePort: 0,
    scheduler: '',
    forwarding: 'masquerade',
    endpoints: endpoints.map((endpoint, i): Endpoint => {
      return { address: clusterIP, port: i, label: `10.96.0.1:${i}`, status: { ...endpoint, zone: undefined } };
    }),
  }));

describe('why an endpoint is used or not', () => {
  test('says of each endpoint what is chosen', () => {
    fc.assert(
      fc.property(arbitraryPort, (port) => {
        const choice = chooseEndpoints(port, node);
        const uses = explainEndpoints(port, node);
        const used = (side: 'cluster' | 'local') =>
          uses.filter((use) => isUsedFor(use[side])).map((use) => use.endpoint);
        expect(uses.map(({ endpoint }) => endpoint)).toEqual(port.endpoints);
        expect(used('cluster')).toEqual(choice.cluster);
        expect(used('local')).toEqual(choice.local);
      }),
    );
  });

  test('gives a reason that holds', () => {
    fc.assert(
      fc.property(arbitraryPort, (port) => {
        for (const { endpoint, cluster, local } of explainEndpoints(port, node)) {
          for (const kind of [cluster?.kind, local?.kind]) expect(holds(kind, endpoint, port)).toBe(true);
        }
      }),
    );
  });
});

type Kind = NonNullable<ReturnType<typeof explainEndpoints>[number]['cluster']>['kind'];

function holds(kind: Kind | undefined, { status }: Endpoint, port: ServicePort): boolean {
  const servesOn = status.serving && status.terminating;
  switch (kind) {
    case undefined:
      return true;
    case 'ready':
      return status.ready;
    case 'last-resort':
      return !status.ready && servesOn;
    case 'not-ready':
      return !status.ready && !servesOn;
    case 'terminating':
      return !status.ready && servesOn && port.endpoints.some((endpoint) => endpoint.status.ready);
    case 'other-node-hinted':
      return status.ready && !status.nodeHints.includes(node.name);
    case 'other-zone-hinted':
      return status.ready && !status.zoneHints.includes(node.zone);
    case 'other-node':
      return status.nodeName !== node.name;
  }
}
