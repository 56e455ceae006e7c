// An effect names only destinations that each of its senders reaches; a packet that is explained is not evaluated again.
import { expect, test } from 'vitest';
import { compareScenes, type Difference } from '../../src/ask/equivalence/compare.ts';
import { effectsByService } from '../../src/ask/equivalence/findings.ts';
import { onOneNode, sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { openTexts } from '../../src/library/open.ts';

function sceneWith(endpoints: readonly string[]): Scene {
  const text = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, clusterIP: 10.96.0.11, ports: [{ port: 80, nodePort: 30080 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: [${endpoints.map((each) => `{ addresses: [${each}], nodeName: n1 }`).join(', ')}]
---
apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDRs: [10.244.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.1.1 }] }
`;
  const options = { manifests: { 'in.yaml': text }, node: 'n1', proxyMode: 'iptables' } as const;
  const { side } = openTexts(options, true).at('n1');
  if (!side) throw new Error('no side');
  return sceneOf(side);
}

const scenes = onOneNode(sceneWith(['10.244.1.5']), sceneWith(['10.244.1.5', '10.244.1.6']));

test('only the node itself is a sender of packets to its loopback addresses', () => {
  const effects = effectsByService(...scenes)?.effects.filter(({ target }) => target === 'node-port') ?? [];
  const reached = effects.map(({ senders, example }) => ({ to: example.to, from: senders.map(({ kind }) => kind) }));
  expect(reached).toContainEqual({ to: '127.0.0.1:30080', from: ['node'] });
  expect(reached.filter(({ from }) => from.includes('outside'))).toMatchObject([{ to: '192.168.1.1:30080' }]);
});

test('the fate of a difference is also the one that its side alone shows', () => {
  const found: Difference[] = [];
  compareScenes(...scenes, (each) => found.push(each));
  expect(found.length).toBeGreaterThan(0);
  for (const { packet, from, to } of found) {
    expect(scenes[0].alone(packet, from)).toBe(from);
    expect(scenes[1].alone(packet, to)).toBe(to);
  }
});
