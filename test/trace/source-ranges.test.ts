// Source ranges part the clients outside: a table, and the tests that kpc test --init writes, have one of each kind.
import { expect, test } from 'vitest';
import { traceMatrix } from '../../src/ask/trace/matrix.ts';
import { sceneOfManifests } from '../support/manifest-scene.ts';

const node = `apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDRs: [10.244.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] }
---
`;

test.each([
  [['198.51.100.0/24'], ['delivered', 'dropped']],
  [['198.51.100.250/32'], ['delivered', 'dropped']],
  [['203.0.113.0/24'], ['dropped', 'delivered']],
  [['192.0.2.7/32'], ['dropped', 'delivered']],
  [['0.0.0.0/0'], ['delivered']],
  [[], ['delivered']],
])('%s', (ranges, wanted) => {
  const text = `${node}apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, clusterIP: 10.96.0.80, ports: [{ port: 80, nodePort: 30080 }], loadBalancerSourceRanges: ${JSON.stringify(ranges)} }
status: { loadBalancer: { ingress: [{ ip: 203.0.113.80 }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: [{ addresses: [10.244.2.10], nodeName: n2, conditions: { ready: true } }]
`;
  const scene = sceneOfManifests(text, 'n1');
  const { cells } = traceMatrix(scene.side.ports, scene);
  const ofClients = cells.filter(
    ({ kind, from }) => kind === 'load-balancer-ip' && (from === 'external' || /^\d/.test(from)),
  );
  expect(ofClients.map(({ fate }) => fate.verdict)).toEqual(wanted);
});
