// Load balancers of policy Cluster check a node where kube-proxy answers by healthzBindAddress: no packet of a Service shows it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-healthz-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const input = (address: string) =>
  `{ apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration, mode: iptables, healthzBindAddress: '${address}' }
---
{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] } }
`;

writeFolder(cwd, {
  'unset.yaml': input(''),
  'usual.yaml': input('0.0.0.0:10256'),
  'other.yaml': input('127.0.0.1:10300'),
});

const run = async (command: string, to: string) =>
  resultOf((await runKpc([command, 'unset.yaml', to, '--output', 'json'], { cwd })).stdout);

test('kpc diff compares healthzBindAddress', async () => {
  expect((await run('diff', 'usual.yaml')).base).toEqual([]);
  const { base } = await run('diff', 'other.yaml');
  const fields = { kind: 'setting', name: 'healthzBindAddress', from: '0.0.0.0:10256', to: '127.0.0.1:10300' };
  expect(base).toEqual([expect.objectContaining(fields)]);
});

test('kpc equivalence names it as not compared', async () => {
  const named = async (to: string) =>
    (await run('equivalence', to)).notCompared.filter((each: string) => each.includes('healthzBindAddress'));
  expect(await named('usual.yaml')).toEqual([]);
  expect(await named('other.yaml')).toHaveLength(1);
});
