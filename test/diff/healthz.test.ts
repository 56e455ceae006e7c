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

/** Fields that no rule shows, by name. */
const ownSettings = [
  ['metricsBindAddress', 'metricsBindAddress: 0.0.0.0:10250'],
  ['iptables.syncPeriod', 'iptables: { syncPeriod: 50s }'],
  ['enableProfiling', 'enableProfiling: true'],
  ['bindAddress', 'bindAddress: 192.0.2.1'],
  ['featureGates.ContextualLogging', 'featureGates: { ContextualLogging: false }'],
] as const;

writeFolder(cwd, {
  'unset.yaml': input(''),
  'usual.yaml': input('0.0.0.0:10256'),
  'other.yaml': input('127.0.0.1:10300'),
  ...Object.fromEntries(
    ownSettings.map(([name, text]) => [`${name}.yaml`, input('').replace('mode: iptables', `mode: iptables, ${text}`)]),
  ),
  'empty.yaml': input('').replace(
    'mode: iptables',
    "mode: iptables, clientConnection: { kubeconfig: '' }, enableProfiling: false",
  ),
});

const run = async (command: string, to: string) =>
  resultOf((await runKpc([command, 'unset.yaml', to, '--output', 'json'], { cwd })).stdout);

test('kpc diff compares healthzBindAddress', async () => {
  expect((await run('diff', 'usual.yaml')).base).toEqual([]);
  const { base } = await run('diff', 'other.yaml');
  const fields = { kind: 'setting', name: 'healthzBindAddress', from: '0.0.0.0:10256', to: '127.0.0.1:10300' };
  expect(base).toEqual([expect.objectContaining(fields)]);
});

test('kpc diff says that packets to where kube-proxy answers were not compared', async () => {
  const { notCompared } = await run('diff', 'other.yaml');
  expect(notCompared).toContainEqual(expect.stringContaining('(healthzBindAddress)'));
  const { stdout } = await runKpc(['diff', 'unset.yaml', 'other.yaml'], { cwd });
  expect(stdout).not.toContain('no packet is treated differently');
});

test.for(ownSettings)('kpc diff and kpc equivalence name %s as not compared', async ([name]) => {
  for (const command of ['diff', 'equivalence']) {
    const { notCompared } = await run(command, `${name}.yaml`);
    expect(notCompared).toContainEqual(expect.stringContaining(`(${name})`));
  }
});

const daemonSet = (...args: readonly string[]) => `
---
{ apiVersion: apps/v1, kind: DaemonSet, metadata: { name: kube-proxy }, spec: { template: { spec: { containers: [{ command: ${JSON.stringify(['kube-proxy', ...args])} }] } } } }
`;

const ownArguments = [
  ['metricsBindAddress', '--metrics-bind-address=0.0.0.0:10250'],
  ['iptables.syncPeriod', '--iptables-sync-period', '50s'],
  ['enableProfiling', '--profiling'],
  ['logging', '--v=4'],
  ['featureGates.ContextualLogging', '--feature-gates=ContextualLogging=false'],
] as const;

test.for(ownArguments)('kpc diff names %s as not compared if an argument sets it', async ([name, ...args]) => {
  const service = input('').slice(input('').indexOf('---'));
  const files = [service + daemonSet(), service + daemonSet(...args)];
  writeFolder(cwd, { 'without.yaml': files[0] ?? '', 'with.yaml': files[1] ?? '' });
  const { stdout } = await runKpc(['diff', 'without.yaml', 'with.yaml', '--output', 'json'], { cwd });
  expect(resultOf(stdout).notCompared).toContainEqual(expect.stringContaining(`(${name})`));
});

test('a field with an empty value is not another setting', async () => {
  expect((await run('diff', 'empty.yaml')).notCompared).toEqual((await run('diff', 'usual.yaml')).notCompared);
});

test('kpc compile --check names the settings that a golden does not record', async () => {
  const flags = ['-f', 'metricsBindAddress.yaml', '--node', 'n1', '--output', 'json'];
  await runKpc(['compile', ...flags.slice(0, 4), '--golden', 'golden'], { cwd });
  const { stdout } = await runKpc(['compile', ...flags, '--check', 'golden'], { cwd });
  expect(resultOf(stdout).notCompared).toContainEqual(expect.stringContaining('(metricsBindAddress)'));
});

test('kpc equivalence names it as not compared', async () => {
  const named = async (to: string) =>
    (await run('equivalence', to)).notCompared.filter((each: string) => each.includes('healthzBindAddress'));
  expect(await named('usual.yaml')).toEqual([]);
  expect(await named('other.yaml')).toHaveLength(1);
});
