import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-addresses-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const manifests = (clusterIP: string) => `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: ${clusterIP}, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5]}]
`;

interface Review {
  readonly packets: readonly { readonly severity: string }[];
}

test.each(['ipvs', 'iptables', 'nftables'])('%s: no node has the cluster IP of either side', async (mode) => {
  writeFileSync(join(cwd, 'old.yaml'), manifests('10.96.0.8'));
  writeFileSync(join(cwd, 'new.yaml'), manifests('10.96.0.7'));
  const words = ['diff', 'old.yaml', 'new.yaml', '--proxy-mode', mode, '--output', 'json'];
  const { stdout } = await runKpc(words, { cwd });
  const { packets } = resultOf(stdout) as Review;
  const severities = packets.map(({ severity }) => severity).filter((each) => each !== 'fails-otherwise');
  expect(severities.toSorted()).toEqual(['breaks', 'opens']);
});
