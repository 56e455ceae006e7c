// A packet enters each side by that side's own links.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-uplink-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const dump = readFileSync(join(fixturesFolder, 'connections/node.txt'), 'utf8');
writeFileSync(join(cwd, 'node.txt'), dump.replaceAll('eth0', 'ens5').replaceAll('cni0', 'cbr0'));
const manifests = `apiVersion: v1
kind: Service
metadata: { name: local }
spec: { type: NodePort, clusterIP: 10.96.0.1, ports: [{ name: http, port: 80, nodePort: 30081 }] }
---
apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDRs: [10.244.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.10.11 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: local, labels: { kubernetes.io/service-name: local } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [10.244.1.11], nodeName: n1 }]
`;
writeFileSync(join(cwd, 'shop.yaml'), manifests);

interface Report {
  readonly causes: readonly {
    readonly effects: readonly { readonly lacks?: string; readonly example: { readonly interface?: string } }[];
  }[];
}

test.each([
  ['shop.yaml', 'node.txt'],
  ['node.txt', 'shop.yaml'],
])('of %s and %s, no link is named that the dump lacks', async (from, to) => {
  const flags = ['--proxy-mode', 'iptables', '--output', 'json', '-q'];
  const { stdout } = await runKpc(['equivalence', from, to, ...flags], { cwd });
  const effects = (resultOf(stdout) as Report).causes.flatMap((cause) => cause.effects);
  expect(effects.length).toBeGreaterThan(0);
  expect(effects.map(({ lacks }) => lacks).join('\n')).not.toMatch(/eth0|cni0/);
});
