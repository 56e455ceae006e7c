// Of several Nodes, none is named: what one of them alone loses is found.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-any-node-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const nodes = [1, 2, 3].map(
  (at) => `apiVersion: v1
kind: Node
metadata: { name: n${at} }
spec: { podCIDRs: [10.244.${at}.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.50.1${at} }] }
`,
);

function web(on: readonly number[]): string {
  const endpoints = on.map((at) => `{ addresses: [10.244.${at}.10], nodeName: n${at}, conditions: { ready: true } }`);
  return `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { internalTrafficPolicy: Local, clusterIP: 10.96.0.80, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: [${endpoints.join(', ')}]
`;
}

test.each([
  ['its endpoint', [1, 2], [1], 'breaks'],
  ['the lack of one', [1], [1, 2], 'opens'],
])('a node loses %s', async (_, before, after, severity) => {
  writeFolder(cwd, { 'nodes.yaml': nodes.join('---\n'), 'old.yaml': web(before), 'new.yaml': web(after) });
  const { stdout } = await runKpc(['diff', '-q', '-f', 'nodes.yaml', 'old.yaml', 'new.yaml', '--output', 'json'], {
    cwd,
  });
  const packets = resultOf(stdout).packets as readonly {
    readonly severity: string;
    readonly example: { node: string };
  }[];
  const found = packets.filter((each) => each.severity === severity).map(({ example }) => example.node);
  expect(new Set(found)).toEqual(new Set(['n2']));
});
