// Source ranges part clients into cells: each has a client of its own, and a line of its own where it is treated differently.
import { describe, expect, test } from 'vitest';
import { compareScenes, type Difference } from '../../src/ask/equivalence/compare.ts';
import { effectsByService } from '../../src/ask/equivalence/findings.ts';
import { onOneNode, sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { openTexts } from '../../src/library/open.ts';
import { proxyModes, type ProxyMode } from '../../src/kube-proxy/modes.ts';

const ingress = '203.0.113.80';

function open(ranges: readonly string[], proxyMode: ProxyMode): Scene {
  const text = `apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDRs: [10.244.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] }
---
apiVersion: v1
kind: Node
metadata: { name: n2 }
status: { addresses: [{ type: InternalIP, address: 172.16.0.4 }, { type: InternalIP, address: 'fd11::100' }] }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, clusterIP: 10.96.0.80, ports: [{ port: 80, nodePort: 30080 }], loadBalancerSourceRanges: ${JSON.stringify(ranges)} }
status: { loadBalancer: { ingress: [{ ip: ${ingress} }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: [{ addresses: [10.244.2.10], nodeName: n2, conditions: { ready: true } }]
`;
  const { side } = openTexts({ manifests: { 'in.yaml': text }, node: 'n1', proxyMode }, true).at('n1');
  if (!side) throw new Error('not read');
  return sceneOf(side);
}

const modes = proxyModes.filter((mode) => mode !== 'userspace');

describe.each(modes)('in %s mode', (mode) => {
  const scenes = (from: readonly string[], to: readonly string[]) => onOneNode(open(from, mode), open(to, mode));

  test.each([
    [['198.51.100.0/24'], []],
    [['198.51.0.0/16'], []],
    [['198.51.100.250/32'], []],
    [['198.51.100.99/32'], []],
    [['198.51.100.99/32', '198.51.100.250/32'], []],
    [['203.0.113.0/24'], []],
    [['10.244.0.0/16'], []],
    // The first address beside a cell is another node's.
    [['172.16.0.0/12', '172.16.0.0/30'], ['172.16.0.0/30']],
  ])('a client outside of %s is asked beside pods and the node', (from, to) => {
    const found: Difference[] = [];
    compareScenes(...scenes(from, to), (each) => found.push(each));
    const places = found.flatMap(({ sender, packet }) => (packet.destination.text === ingress ? sender.place : []));
    expect(places).toContain('outside');
  });

  const sendersOf = (from: readonly string[], to: readonly string[]) =>
    effectsByService(...scenes(from, to))
      ?.effects.filter(({ target }) => target === 'load-balancer-ip')
      .map(({ senders }) =>
        senders.flatMap((each) => (each.kind === 'range' ? [[each.who.kind, each.within, ...each.without]] : [])),
      );

  test.each([
    [['198.51.100.0/24'], ['198.51.100.0/25'], [['client', '198.51.100.0/24', '198.51.100.0/25']]],
    [['203.0.113.0/24'], ['203.0.0.0/16'], [['client', '203.0.0.0/16', '203.0.113.0/24']]],
    [
      ['10.244.1.0/25'],
      [],
      [
        ['client', undefined, '10.244.1.0/25'],
        ['pod', undefined, '10.244.1.0/25'],
      ],
    ],
  ])('from %s to %s, clients are named by their cell', (from, to, named) => {
    expect(sendersOf(from, to)).toEqual([named]);
  });
});
