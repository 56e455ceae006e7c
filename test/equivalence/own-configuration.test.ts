// What the objects of a side name of kube-proxy counts for that side, whatever the other side is, and wherever the configuration lies.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compile, equivalence } from '../../src/library/index.ts';
import { commitAll } from '../support/git.ts';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-own-configuration-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

/** The Node has a second address, on which only IPVS mode serves node ports. */
const objects = (endpoint = '10.244.1.10', version = 'v1.35.0') => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, clusterIP: 10.96.0.80, ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [${endpoint}], nodeName: n1, conditions: { ready: true } }]
---
apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDR: 10.244.1.0/24 }
status:
  addresses: [{ type: InternalIP, address: 10.0.0.1 }, { type: ExternalIP, address: 203.0.113.1 }]
  nodeInfo: { kubeletVersion: ${version} }
`;
const configuration = (mode: string) =>
  `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ${mode}\nclusterCIDR: 10.244.0.0/16\n`;
const configMap = (mode: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kube-proxy', namespace: 'kube-system' },
  data: { 'config.conf': configuration(mode) },
});
const kind = (mode: string) =>
  `kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: { kubeProxyMode: ${mode} }\n`;
const configurations = (mode: string) => ({
  'proxy.yaml': configuration(mode),
  'map.yaml': JSON.stringify(configMap(mode)),
  'kind.yaml': kind(mode),
});

writeFolder(cwd, {
  'plain.yaml': objects(),
  'other.yaml': objects('10.244.1.11'),
  'unversioned.yaml': objects('10.244.1.11', '""'),
  'ipvs.yaml': `${objects()}---\n${configuration('ipvs')}`,
  'map-ipvs.yaml': `${objects()}---\n${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [configMap('ipvs')] })}`,
  'folder/objects.yaml': objects(),
  'folder/proxy.yaml': configuration('nftables'),
  ...configurations('ipvs'),
});
commitAll(cwd);
writeFolder(cwd, configurations('nftables'));

interface Side {
  readonly node: string;
  readonly mode: string;
  readonly release: string;
}

async function compare(words: string, stdin = '') {
  const { status, stdout } = await runKpc(['equivalence', ...words.split(' '), '--output', 'json'], { cwd, stdin });
  const { snapshots = [] } = JSON.parse(stdout) as { readonly snapshots?: readonly Side[] };
  return { status, stdout, sides: snapshots.map(({ node, mode, release }) => `${node} ${mode} ${release}`) };
}

const [ipvs, nftables] = ['n1 ipvs 1.35', 'n1 nftables 1.35'];

test.each([
  ['ipvs.yaml proxy.yaml -f ipvs.yaml', [ipvs, nftables]],
  ['ipvs.yaml nftables -f ipvs.yaml', [ipvs, nftables]],
  ['nftables ipvs.yaml -f ipvs.yaml', [nftables, ipvs]],
  ['ipvs.yaml proxy.yaml -f plain.yaml', [ipvs, nftables]],
  ['map-ipvs.yaml nftables -f map-ipvs.yaml', [ipvs, nftables]],
  ['folder ipvs -f folder', [nftables, ipvs]],
  ['ipvs.yaml 1.36 -f ipvs.yaml', [ipvs, 'n1 ipvs 1.36']],
  // A flag names the mode, too.
  ['plain.yaml nftables -f plain.yaml --proxy-mode ipvs', [ipvs, nftables]],
  // What a side names nowhere follows the other side.
  ['plain.yaml proxy.yaml -f plain.yaml', [nftables, nftables]],
  ['unversioned.yaml 1.36 -f plain.yaml', ['n1 ipvs 1.36', 'n1 ipvs 1.36']],
])('kpc equivalence %s', async (words, sides) => {
  expect((await compare(words)).sides).toEqual(sides);
});

test.each([
  'HEAD:proxy.yaml proxy.yaml -f plain.yaml',
  'HEAD:map.yaml map.yaml -f plain.yaml',
  'HEAD:kind.yaml kind.yaml -f plain.yaml',
  'HEAD:./proxy.yaml nftables -f HEAD:plain.yaml',
])('a configuration of a revision is a configuration: kpc equivalence %s', async (words) => {
  expect((await compare(words)).sides).toEqual([ipvs, nftables]);
});

test('and so is one on standard input', async () => {
  expect((await compare('- nftables -f plain.yaml', configuration('ipvs'))).sides).toEqual([ipvs, nftables]);
  expect((await compare('- nftables -f plain.yaml', objects())).sides).toEqual([nftables, nftables]);
});

test('two configurations of revisions take the manifests of -f, and the command of a trace has them', async () => {
  const { sides, stdout } = await compare('nftables HEAD:proxy.yaml -f plain.yaml');
  expect(sides).toEqual([nftables, ipvs]);
  expect(stdout).toContain('kpc trace plain.yaml --config HEAD:proxy.yaml');
  expect(await compare('HEAD:proxy.yaml HEAD:proxy.yaml -f plain.yaml')).toMatchObject({
    status: 0,
    sides: [ipvs, ipvs],
  });
});

test('the command of a trace names what its side follows', async () => {
  expect((await compare('nftables other.yaml -f plain.yaml')).stdout).toContain(
    'kpc trace other.yaml --proxy-mode nftables',
  );
});

test('a stored side names its node for a mode, a release and a configuration', async () => {
  const manifests = { 'two.yaml': `${objects()}---\napiVersion: v1\nkind: Node\nmetadata: { name: n2 }\n` };
  const { bundle } = compile({ manifests, node: 'n1', proxyMode: 'ipvs' });
  if (!bundle) throw new Error('there is no bundle');
  writeFolder(cwd, {
    ...manifests,
    ...Object.fromEntries([...bundle.files].map(([name, text]) => [`bundle/${name}`, text])),
  });
  for (const words of ['bundle nftables', 'bundle 1.35', 'bundle proxy.yaml', 'nftables bundle']) {
    const { sides } = await compare(`${words} -f two.yaml`);
    expect(sides.map((side) => side.split(' ')[0])).toEqual(['n1', 'n1']);
  }
  const { snapshots } = equivalence({ manifests, from: bundle.side, to: 'nftables' });
  expect(snapshots.map(({ node }) => node)).toEqual(['n1', 'n1']);
});

test.each([
  ['ipvs/1.36 nftables/1.37 -f plain.yaml', 'unknown-side'],
  ['typo.yaml ipvs.yaml -f plain.yaml', 'unknown-side'],
  ['https://example.com/x.yaml ipvs.yaml -f plain.yaml', 'url'],
  ['HEAD:typo.yaml HEAD:plain.yaml -f plain.yaml', 'unread'],
])('a side that names nothing is reported before the flags: kpc equivalence %s', async (words, problem) => {
  const { status, stdout } = await compare(words);
  expect(status).toBe(2);
  const [code, ...others] = findingsOf(stdout);
  expect(others).toEqual([]);
  expect(code?.arguments).toMatchObject({ problem });
});

test('beside a bundle, a mode or a release has the settings of the bundle that it does not say itself', async () => {
  writeFolder(cwd, { 'cluster.yaml': objects() });
  const flags = ['-f', 'cluster.yaml', '--proxy-mode', 'nftables', '--masquerade-all', '--kubernetes-version', '1.35'];
  await runKpc(['compile', ...flags, '--node', 'n1', '-o', 'masquerading'], { cwd });
  for (const side of ['nftables', '1.36']) {
    const run = await runKpc(['equivalence', 'masquerading', side, '-f', 'cluster.yaml'], { cwd });
    expect(run, run.stdout).toMatchObject({ status: 0 });
    const given = await runKpc(
      ['equivalence', 'masquerading', side, '-f', 'cluster.yaml', '--masquerade-all', 'false'],
      { cwd },
    );
    expect(given.stdout, given.stderr).toContain('--masquerade-all false');
    expect(given.status).toBe(1);
  }
  const manifests = { 'cluster.yaml': objects() };
  const { bundle } = compile({ manifests, node: 'n1', proxyMode: 'nftables', masqueradeAll: true });
  if (!bundle) throw new Error('not compiled');
  expect(equivalence({ manifests, from: bundle.side, to: 'nftables' }).passed).toBe(true);
  const { report } = equivalence({ manifests, from: bundle.side, to: 'ipvs' });
  const traces = report?.causes.flatMap(({ effects }) => effects.map(({ trace }) => trace)) ?? [];
  expect(traces.filter((trace) => trace.includes('--proxy-mode ipvs'))).not.toEqual([]);
  expect(traces.filter((trace) => trace.includes('--proxy-mode ipvs') && !trace.includes('--masquerade-all'))).toEqual(
    [],
  );
});

test.each([
  ['ipvs.yaml plain.yaml --config proxy.yaml', [nftables, nftables], ['ipvs.yaml']],
  ['ipvs.yaml plain.yaml --config ipvs.yaml', [ipvs, ipvs], []],
  // A side that is a configuration, and not the flag, is to differ.
  ['proxy.yaml ipvs -f ipvs.yaml', [nftables, ipvs], []],
])(
  '--config counts for both sides, and what it sets aside is said: kpc equivalence %s',
  async (words, sides, places) => {
    const compared = await compare(words);
    expect(compared.sides).toEqual(sides);
    const aside = findingsOf(compared.stdout, 'reading').filter(
      ({ arguments: { problem } }) => problem === 'set-aside',
    );
    expect(aside.map(({ place }) => place?.file)).toEqual(places);
  },
);
