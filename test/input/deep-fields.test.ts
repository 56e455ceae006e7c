import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-deep-fields-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const service = (ingress: string) => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, clusterIP: 10.96.0.1, ports: [{ port: 80, nodePort: 30080 }] }
status:
  loadBalancer:
    ingress:
      - { ip: 203.0.113.1, ipMode: VIP, ports: [] }
      - ${ingress}
`;

const slice = (hints: string) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints:
  - { addresses: [10.244.0.1], hints: { forZones: [{ name: a }], forNodes: [{ name: n1 }] } }
  - addresses: [10.244.0.2]
    hints: ${hints}
`;

const node = (spec: string, status: string) => `apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: ${spec}
status: ${status}
`;

const file = join(scratch, 'in.yaml');

/** The warnings of unknown fields, each with its line and column. */
async function warningsOf(text: string): Promise<readonly string[]> {
  writeFileSync(file, text);
  const { stderr } = await runKpc(['describe', '-f', file, '--proxy-mode', 'nftables', '--node', 'n1']);
  return [...stderr.matchAll(/in\.yaml:(\d+:\d+): warning: (.*) \[unknown-field\]\n.*\n.*\n {2}help: (.*)/g)].map(
    ([, at = '', said = '', help = '']) => `${at} ${said}, ${help}`,
  );
}

const ignored = (at: string, where: string, key: string, meant: string) =>
  `${at} ${where} has no field "${key}": Kubernetes ignores it, did you mean ${meant}?`;

test.each<[text: string, warning: string]>([
  [
    service('{ ip: 203.0.113.2, ipmode: Proxy }'),
    ignored('9:28', 'status.loadBalancer.ingress[1]', 'ipmode', 'ipMode'),
  ],
  [service('{ IP: 203.0.113.2 }'), ignored('9:11', 'status.loadBalancer.ingress[1]', 'IP', 'ip')],
  [
    service('{ ip: 203.0.113.2 }').replace('  loadBalancer:', '  loadbalancer:'),
    ignored('6:3', 'status', 'loadbalancer', 'loadBalancer'),
  ],
  [slice('{ forZones: [{ nam: z }] }'), ignored('9:27', 'endpoints[1].hints.forZones[0]', 'nam', 'name')],
  [
    slice('{ forNodes: [{ name: n1 }, { Name: n2 }] }'),
    ignored('9:41', 'endpoints[1].hints.forNodes[1]', 'Name', 'name'),
  ],
  [node('{ podCidr: 10.244.0.0/24 }', '{}'), ignored('4:9', 'spec', 'podCidr', 'podCIDR')],
  [node('{}', '{ address: [] }'), ignored('5:11', 'status', 'address', 'addresses')],
  [
    node('{}', '{ addresses: [{ Type: InternalIP, address: 192.168.50.11 }] }'),
    ignored('5:25', 'status.addresses[0]', 'Type', 'type'),
  ],
])('a field that Kubernetes does not know is told where kpc reads what stands beside it: %#', async (text, warning) => {
  expect(await warningsOf(text)).toEqual([warning]);
});

test('a field of a Service in its status belongs elsewhere', async () => {
  const text = service('{ ip: 203.0.113.2 }').replace('spec: {', 'spec: { ingress: [],');
  expect(await warningsOf(text)).toEqual([
    '4:9 spec has no field "ingress": Kubernetes ignores it, did you mean status.loadBalancer.ingress?',
  ]);
});

test('what a cluster prints of a Node and a Service is known', async () => {
  const full = node(
    '{ podCIDR: 10.244.0.0/24, podCIDRs: [10.244.0.0/24], providerID: x, unschedulable: true, taints: [], podPreemptionPolicy: {} }',
    '{ addresses: [{ type: InternalIP, address: 192.168.50.11 }], allocatable: {}, capacity: {}, conditions: [], ' +
      'daemonEndpoints: {}, declaredFeatures: [], features: {}, images: [], nodeInfo: {}, runtimeHandlers: [], volumesAttached: [], volumesInUse: [] }',
  );
  const conditions = service('{ hostname: lb.example }').replace('status:', 'status:\n  conditions: []');
  expect(await warningsOf(`${full}---\n${conditions}---\n${slice('{}')}`)).toEqual([]);
});

test('a wrong field beside one that is deep', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = `{"apiVersion":"v1","kind":"Service","metadata":{"name":5},"spec":{"x":${deep}}}`;
  const { diagnostics } = collectFiles([new TextFile('in.json', text)]);
  expect(diagnostics.map(({ code }) => code)).toContain('bad-value');
});
