// A release's behaviour explains what it changes, ahead of what the destination suggests.
import { expect, test } from 'vitest';
import { compareScenes } from '../../src/ask/equivalence/compare.ts';
import type { Divergence } from '../../src/ask/equivalence/effects.ts';
import { Findings } from '../../src/ask/equivalence/findings.ts';
import { onOneNode, sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import type { Release } from '../../src/kube-proxy/releases.ts';
import { migrate } from '../../src/library/comparisons.ts';
import { openTexts } from '../../src/library/open.ts';
import { reasonsOf } from '../../src/say/words/causes.ts';

const manifestsWith = (endpoints: string): string => `apiVersion: v1
kind: Node
metadata: { name: w1, labels: { topology.kubernetes.io/zone: a } }
spec: { podCIDR: 10.244.1.0/24 }
status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, clusterIP: 10.96.0.10, externalTrafficPolicy: Local, healthCheckNodePort: 32000, ports: [{ port: 80, nodePort: 30080 }] }
status: { loadBalancer: { ingress: [{ ip: 198.51.100.7 }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: ${endpoints}
`;
const nodeHints = `
  - { addresses: [10.244.1.5], nodeName: w1, zone: a, hints: { forNodes: [{ name: w1 }] } }
  - { addresses: [10.244.2.5], nodeName: w2, zone: a, hints: { forNodes: [{ name: w2 }] } }`;
const zoneHints = `
  - { addresses: [10.244.1.5], nodeName: w1, zone: a, hints: { forZones: [{ name: a }] } }
  - { addresses: [10.244.2.5], nodeName: w2, zone: b, hints: { forZones: [{ name: b }] } }`;
const elsewhere = '[{ addresses: [10.244.2.5], nodeName: w2 }]';

type Setup = readonly [ProxyMode, Release];

function differencesOf(endpoints: string, from: Setup, to: Setup): readonly Divergence[] {
  const sceneBy = ([proxyMode, kubernetesVersion]: Setup): Scene => {
    const manifests = { 'in.yaml': manifestsWith(endpoints) };
    const options = { manifests, node: 'w1', proxyMode, kubernetesVersion, clusterCidr: '10.244.0.0/16' };
    const { side } = openTexts(options, true).at('w1');
    if (!side) throw new Error('no side');
    return sceneOf(side);
  };
  const scenes = onOneNode(sceneBy(from), sceneBy(to));
  const findings = new Findings();
  compareScenes(...scenes, findings.collector(...scenes));
  return findings.list();
}

test.each([
  ['node-hints', nodeHints, '1.33'],
  ['zone-hints-without-annotation', zoneHints, '1.30'],
] as const)('%s is the only cause of the endpoints that it chooses', (behaviour, endpoints, release) => {
  for (const [from, to, isNew] of [
    [release, '1.37', true],
    ['1.37', release, false],
  ] as const) {
    const found = differencesOf(endpoints, ['iptables', from], ['iptables', to]);
    expect(found.map(({ cause }) => cause)).toEqual(['behaviour']);
    expect(found[0]?.reasons).toContainEqual({ kind: 'behaviour', behaviour, from, to, isNew });
  }
});

test('kpc migrate tells the behaviour', () => {
  const manifests = { 'in.yaml': manifestsWith(nodeHints) };
  const input = { manifests, clusterCidr: '10.244.0.0/16', kubernetesVersion: '1.33', from: 'iptables' } as const;
  const { report } = migrate({ ...input, toKubernetesVersion: '1.37' });
  expect(report?.causes.map(({ cause, reasons }) => [cause, reasons.length])).toEqual([['behaviour', 1]]);
});

test('a behaviour is no cause of what only the mode changes', () => {
  const causes = differencesOf(nodeHints, ['iptables', '1.33'], ['nftables', '1.37']).map(({ cause }) => cause);
  expect(causes).toContain('behaviour');
  expect(causes).toContain('node-port-loopback');
});

test.each([
  ['ipvs', '1.35', 'nftables', '1.35'],
  ['iptables', '1.36', 'nftables', '1.36'],
  ['nftables', '1.35', 'nftables', '1.36'],
] as const)('a pod that reaches itself, %s of %s and %s of %s: both are explained', (mode, from, other, to) => {
  const found = differencesOf(elsewhere, [mode, from], [other, to]).find(({ cause }) => cause === 'hairpin');
  expect(new Set(found && reasonsOf(found))).toHaveProperty('size', 2);
});

test('modes that do the same explain no difference', () => {
  const by = (release: Release, does: readonly 'hairpin-set'[]) => ({ release, does });
  const reasonsFor = (from: ProxyMode, to: ProxyMode, does: readonly 'hairpin-set'[]): readonly string[] =>
    reasonsOf({
      ...divergence,
      reasons: [{ kind: 'modes', from: { mode: from, by: by('1.35', does) }, to: { mode: to, by: by('1.35', does) } }],
    });
  expect(reasonsFor('iptables', 'nftables', [])).toEqual([]);
  expect(reasonsFor('ipvs', 'nftables', ['hairpin-set'])).toEqual([]);
  expect(reasonsFor('ipvs', 'nftables', [])).toHaveLength(2);
});

const divergence: Divergence = {
  cause: 'hairpin',
  reasons: [],
  served: { old: [], new: [] },
  situations: [],
  severity: 'opens',
  services: [],
  servicePorts: [],
  effects: [],
  classes: 1,
  nodes: [],
};
