// A real server of weight 0 is an endpoint that drains: kube-proxy keeps it for the connections that it has.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-draining-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const manifests = join(folder, 'svc.yaml');
writeFileSync(
  manifests,
  `{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { clusterIP: 10.96.0.80, ports: [{ port: 80 }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10], nodeName: worker-1 }]
`,
);

/** What differs between the manifests and a node with these real servers, each as "address weight". */
async function diff(...servers: readonly string[]): Promise<string> {
  const lines = servers.map((server) => {
    const [address, weight] = server.split(' ');
    return `-a -t 10.96.0.80:80 -r ${address}:8080 -m -w ${weight}\n`;
  });
  const dump = join(folder, 'ipvsadm-Sn.txt');
  writeFileSync(dump, `-A -t 10.96.0.80:80 -s rr\n${lines.join('')}`);
  return (await runKpc(['diff', manifests, dump, '--proxy-mode', 'ipvs', '-q'])).stdout;
}

test('one that the manifests lack is not an endpoint more', async () => {
  const printed = await diff('10.244.1.10 1', '10.244.9.9 0');
  expect(printed).toContain('endpoint 10.244.9.9:8080 drains');
  expect(printed).not.toMatch(/added|endpoints 1 →/);
});

test('one that the manifests have takes no new connections', async () => {
  const printed = await diff('10.244.1.10 0');
  expect(printed).toContain('endpoints 1 → 0');
  expect(printed).toContain('endpoint 10.244.1.10:8080 draining (was ready)');
});

test('one that takes connections is an endpoint more', async () => {
  const printed = await diff('10.244.1.10 1', '10.244.9.9 1');
  expect(printed).toContain('endpoints 1 → 2');
  expect(printed).toContain('endpoint 10.244.9.9:8080 added');
});
