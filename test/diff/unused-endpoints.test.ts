// Endpoints that do not serve: those that nodes no longer use, said of this node only if a node is named, and those not ready.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-unused-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const node = (name: string): string => `---\napiVersion: v1\nkind: Node\nmetadata: { name: ${name} }\n`;
const web = (policy: string): string => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.7.7, internalTrafficPolicy: ${policy}, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10], nodeName: w1 }, { addresses: [10.244.2.10], nodeName: w2 }]
${node('w1')}${node('w2')}`;

test.each([
  ['without a node', [], 'endpoint 10.244.1.10:8080 no longer used on nodes without it'],
  ['on a node', ['--node', 'w2'], 'endpoint 10.244.1.10:8080 no longer used on this node'],
])('%s', async (_, flags, words) => {
  writeFolder(cwd, { 'old.yaml': web('Cluster'), 'new.yaml': web('Local') });
  const { stdout } = await runKpc(['diff', '-q', 'old.yaml', 'new.yaml', ...flags], { cwd });
  expect(stdout).toContain(words);
});

test('an added endpoint that is not ready is named beside the count', async () => {
  const before = web('Cluster');
  const unready = '{ addresses: [10.244.2.11], nodeName: w2, conditions: { ready: false } }';
  writeFolder(cwd, { 'old.yaml': before, 'new.yaml': before.replace('nodeName: w2 }', `nodeName: w2 }, ${unready}`) });
  const { stdout } = await runKpc(['diff', '-q', 'old.yaml', 'new.yaml'], { cwd });
  expect(stdout).toMatch(/endpoints 2 → 3, endpoint 10\.244\.2\.11:8080 added \(not ready/);
});
