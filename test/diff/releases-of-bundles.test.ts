import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const services = `
apiVersion: v1
kind: Service
metadata: { name: open, namespace: shop }
spec: { type: LoadBalancer, clusterIP: 10.96.0.84, loadBalancerSourceRanges: [0.0.0.0/0], ports: [{ port: 443, nodePort: 30445 }] }
status: { loadBalancer: { ingress: [{ ip: 198.51.100.12 }] } }
`;

const cwd = mkdtempSync(join(tmpdir(), 'kpc-releases-of-bundles-'));
const compile = ['compile', '-f', 'services.yaml', '--proxy-mode', 'iptables'];
const advice =
  'so a Service can differ even if its manifest does not [reading]\n  help: to see why: kpc diff --kubernetes-version 1.33 --to-kubernetes-version 1.36 -f MANIFESTS';

beforeAll(async () => {
  writeFolder(cwd, { 'services.yaml': services });
  for (const release of ['1.33', '1.36']) {
    await runKpc([...compile, '--kubernetes-version', release, '-o', `bundle-${release}`], { cwd });
  }
});

test('a diff of bundles of two releases says that the releases differ, and how to find out why', async () => {
  const run = await runKpc(['diff', 'bundle-1.33', 'bundle-1.36'], { cwd });
  expect(run.stderr).toContain(`note: bundle-1.33 follows Kubernetes 1.33, bundle-1.36 follows 1.36, ${advice}`);
  const shown = ['diff', '--kubernetes-version', '1.33', '--to-kubernetes-version', '1.36', ...compile.slice(1)];
  expect((await runKpc(shown, { cwd })).stdout).toContain('(kubernetes/kubernetes#132722)');
});

test('a diff of one release says nothing of it', async () => {
  const run = await runKpc(['diff', 'bundle-1.33', 'services.yaml'], { cwd });
  expect(run.stderr).not.toContain('follows Kubernetes');
});
