// kpc diff asks the senders that kpc equivalence asks, also clients outside the cluster that use a cluster IP.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-same-senders-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

test('a cluster CIDR changes what clients outside the cluster send as', async () => {
  writeFolder(cwd, {
    'in.yaml': `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.7.7, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10] }]
---
apiVersion: v1
kind: Node
metadata: { name: w1 }
status: { addresses: [{ type: InternalIP, address: 192.168.5.1 }] }
`,
  });
  const compile = ['compile', 'in.yaml', '--proxy-mode', 'iptables', '--node', 'w1'];
  await runKpc([...compile, '-o', 'old'], { cwd });
  await runKpc([...compile, '--cluster-cidr', '10.244.0.0/16', '-o', 'new'], { cwd });
  const { stdout } = await runKpc(['diff', 'old', 'new', '--output', 'json'], { cwd });
  expect(resultOf(stdout).packets).toMatchObject([{ target: 'cluster-ip', severity: 'changes' }]);
});
