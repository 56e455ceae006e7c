import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-what-is-assumed-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const service = (spec: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selector: {app: a}, ports: [{port: 80}]${spec}}\n`;
const workload = `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: a}
spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}
`;
const only = (name: string, address: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {clusterIP: ${address}, ports: [{port: 80}]}\n---\n` +
  `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: ${name}, labels: {kubernetes.io/service-name: ${name}}}\n` +
  'addressType: IPv4\nports: [{port: 80}]\nendpoints: [{addresses: [10.244.0.5]}]\n';

beforeAll(() => {
  const inputs = {
    'plain.yaml': service('') + workload,
    'local.yaml': service(', type: LoadBalancer, externalTrafficPolicy: Local') + workload,
    'proxy.yaml': 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n',
    'ingress.yaml':
      service('') +
      workload +
      '---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspec: {rules: [{host: a.example.org, ' +
      'http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}\n',
    'prefers.yaml': service(', ipFamilyPolicy: PreferDualStack') + workload,
    'requires.yaml': service(', ipFamilyPolicy: RequireDualStack') + workload,
    'picky.yaml': service('') + workload.replace('spec: {containers', 'spec: {nodeSelector: {disk: ssd}, containers'),
    'one.yaml': only('one', '10.96.0.10'),
    'other.yaml': only('other', '10.96.0.11'),
  };
  for (const [name, text] of Object.entries(inputs)) writeFileSync(join(cwd, name), text);
});

async function printed(...words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await runKpc(words, { cwd });
  expect(stdout, stderr).not.toBe('');
  return stdout;
}

describe('the sides of what is assumed', () => {
  test.each([
    ['1.36', 'nftables', /^1\.36 \(IPVS mode\b[^→]*\) → nftables on 2 nodes: /],
    ['nftables', '1.36', /^nftables → 1\.36 \(IPVS mode\b[^→]*\) on 2 nodes: /],
    ['ipvs', '1.36', /^ipvs → 1\.36 \(IPVS mode\b[^→]*\) on 2 nodes: /],
    ['ipvs', 'nftables', /^ipvs → nftables on 2 nodes: /],
  ])('%s → %s names the mode of the side that names none', async (from, to, summary) => {
    expect(await printed('equivalence', from, to, '-f', 'plain.yaml')).toMatch(summary);
  });

  test('a clusterCIDR of one side alone is named with it', async () => {
    const clusterCIDR = / clusterCIDR 10\.244\.0\.0\/16 of ipvs\b/;
    expect(await printed('equivalence', 'ipvs', 'proxy.yaml', '-f', 'plain.yaml')).toMatch(clusterCIDR);
    expect(await printed('equivalence', 'ipvs', 'nftables', '-f', 'plain.yaml')).not.toMatch(/ of ipvs\b/);
  });

  test('what only the old side assumes counts', async () => {
    const assumed = await printed('diff', 'local.yaml', 'plain.yaml', '--output', 'github');
    expect(assumed).toMatch(
      /title=answer-assumes::[^\n]*\b1 node port, 1 health check node port, 1 load balancer address\b/,
    );
  });
});

test('all Nodes that were asked count, also assumed ones', async () => {
  const { nodes, standIns, represented } = resultOf(
    await printed('equivalence', 'ipvs', 'nftables', '-f', 'local.yaml', '--output', 'json'),
  ) as { nodes: number; standIns: number; represented: readonly { readonly node: string }[] };
  expect({ nodes, standIns }).toEqual({ nodes: 2, standIns: 1 });
  expect(represented.map(({ node }) => node)).toEqual(['node-1', 'node-2']);
});

test('the trace beside a difference ends as the difference says', async () => {
  const { packets } = resultOf(await printed('diff', 'one.yaml', 'other.yaml', '--output', 'json')) as {
    packets: readonly { readonly trace: string; readonly to: string; readonly severity: string }[];
  };
  const working = packets.filter(({ severity }) => severity === 'breaks' || severity === 'opens');
  expect(working).toHaveLength(2);
  for (const { trace } of working) {
    const words = trace.split(' ').slice(1);
    expect(resultOf(await printed(...words, '--output', 'json'))).toMatchObject({ traces: [{ verdict: 'delivered' }] });
  }
});

test('a trace through an Ingress says in each format what it rests on', async () => {
  const asked = ['trace', 'ingress.yaml', '--from', 'external', '--to', 'https://a.example.org/', '--output'];
  expect(resultOf(await printed(...asked, 'json'))).toMatchObject({ requests: [{ assumed: [expect.anything()] }] });
  expect((await printed(...asked, 'svg')).match(/>assumed: /g)).toHaveLength(2);
});

describe('what is assumed of a cluster', () => {
  const assumedOf = async (...words: readonly string[]) => {
    const { snapshots } = JSON.parse(await printed(...words, '--output', 'json')) as {
      readonly snapshots: readonly {
        readonly assumed?: { readonly families?: unknown; readonly unplaced?: unknown };
      }[];
    };
    const { families, unplaced } = snapshots[0]?.assumed ?? {};
    return { families, unplaced };
  };

  test.each([
    ['plain.yaml', { families: undefined, unplaced: undefined }],
    ['prefers.yaml', { families: ['ipv4'], unplaced: undefined }],
    ['requires.yaml', { families: ['ipv4', 'ipv6'], unplaced: undefined }],
    ['picky.yaml', { families: undefined, unplaced: ['DaemonSet default/a'] }],
  ])('%s: families that a Service takes, and Nodes that none is known to be', async (file, expected) => {
    const question = [file, '--from', 'pod', '--to', 'svc/a'];
    expect(await assumedOf('trace', ...question)).toEqual(expected);
    expect(await assumedOf('describe', file)).toEqual(expected);
  });

  test.each([['--golden'], ['--out']])('workloads that no Node suits stand in what %s writes', async (flag) => {
    const stored = `picky${flag}`;
    const compiled = ['compile', 'picky.yaml', '--assume'];
    await runKpc([...compiled, flag, stored], { cwd });
    expect(await assumedOf('describe', stored)).toMatchObject({ unplaced: ['DaemonSet default/a'] });
    // Older goldens do not say it, nor what endpoints are made from.
    const path = join(cwd, stored, flag === '--golden' ? 'default.a.txt' : 'manifest.json');
    const older = readFileSync(path, 'utf8').replace(/==> sources\.json <==\n[^\n]*\n\n/, '');
    writeFileSync(path, older.replace(/,\s*"unplaced": ?true/, ''));
    expect(await assumedOf('describe', stored)).toMatchObject({ unplaced: undefined });
    const { status } = await runKpc([...compiled, '--check', stored], { cwd });
    expect(status).toBe(flag === '--golden' ? 0 : 1);
  });

  test('families that a flag names are not assumed', async () => {
    expect(await assumedOf('describe', 'prefers.yaml', '--ip-family', 'dual')).toMatchObject({ families: undefined });
  });

  test('the line of a trace names the workload whose Pods the packet may reach', async () => {
    const line = /^ {2}assumed: .*, a Node that fits the nodeSelector or affinity of DaemonSet default\/a$/m;
    expect(await printed('trace', 'picky.yaml', '--from', 'pod', '--to', 'svc/a')).toMatch(line);
    expect(await printed('trace', 'plain.yaml', '--from', 'pod', '--to', 'svc/a')).not.toMatch(/ a Node that /);
  });
});
