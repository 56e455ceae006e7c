// What is said of one side alone names it, and what is said of both is said once.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { equivalence } from '../../src/library/comparisons.ts';
import { readSide } from '../../src/library/node/pair.ts';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-called-sides-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const deployment = (replicas: number) =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec: { replicas: ${replicas}, selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web, image: web }] } } }\n`;
const service =
  'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { selector: { app: web }, ports: [{ port: 80 }] }\n---\n';
const config =
  'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\nclusterCIDR: 10.0.0.0/8\n';
writeFolder(cwd, {
  'two.yaml': service + deployment(2),
  'three.yaml': service + deployment(3),
  'config.yaml': config,
});

const ofMode = (name: string) => ({ place: undefined, about: { kind: 'side', name } });
const ofFile = (file: string) => ({ place: { file }, about: undefined });
const ofBoth = { place: undefined, about: undefined };

test.each([
  ['iptables config.yaml -f two.yaml', [ofMode('iptables'), ofFile('config.yaml')]],
  ['config.yaml 1.36 -f two.yaml', [ofFile('config.yaml'), ofMode('1.36')]],
  ['iptables three.yaml -f two.yaml', [ofMode('iptables'), ofFile('three.yaml')]],
  ['two.yaml three.yaml', [ofFile('two.yaml'), ofFile('three.yaml')]],
  ['iptables nftables -f two.yaml', [ofBoth]],
])('kpc equivalence %s', async (words, sides) => {
  const args = ['equivalence', ...words.split(' '), '--output', 'json', '--kpc-yaml', 'none'];
  const { stdout, stderr } = await runKpc(args, { cwd });
  const notes = findingsOf(stdout).filter(({ code }) => code === 'assumed');
  expect(notes.map(({ place, about }) => ({ place, about }))).toEqual(sides);
  const named = [...stderr.matchAll(/^(?:(\S+): )?note: .*\[assumed\]$/gm)].map(([, side]) => side);
  expect(named).toEqual(notes.map(({ place, about }) => place?.file ?? about?.name));
});

test.each([
  ['kind.yaml', 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: { kubeProxyMode: ipvs }\n'],
  ['k3s.yaml', 'cluster-cidr: 10.42.0.0/16\nkube-proxy-arg: [proxy-mode=ipvs]\n'],
  ['kubeadm.yaml', 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n'],
  ['kube-proxy.service', '# of a node\n[Unit]\n[Service]\nExecStart=/usr/bin/kube-proxy --proxy-mode=ipvs\n'],
])('%s is a configuration, as for --config', async (name, text) => {
  writeFolder(cwd, { [name]: text, [`with-service-${name}`]: `${service}${text}` });
  const configOf = async (path: string) => (await readSide(path)).adds?.config;
  expect(await configOf(join(cwd, name))).toBe(join(cwd, name));
  expect(await configOf(join(cwd, `with-service-${name}`))).toBeUndefined();
  expect(await configOf(join(cwd, 'two.yaml'))).toBeUndefined();
});

test('schedulers that two configurations name are not compared', () => {
  const given = (scheduler: string) => ({
    name: `${scheduler}.yaml`,
    text: `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\nipvs: { scheduler: ${scheduler} }\n`,
  });
  const manifests = { 'two.yaml': service + deployment(2) };
  const { report } = equivalence({ manifests, assume: true, from: given('rr'), to: given('sh') });
  expect(report?.notCompared.join()).toContain('scheduler of default/web');
});

test.each([
  ['ipvs', 'ipvs: { strictARP: true, excludeCIDRs: [10.97.0.0/24] }', 'ipvs.strictARP and ipvs.excludeCIDRs'],
  ['ipvs', 'ipvs: { tcpTimeout: 1m }', 'ipvs.tcpTimeout'],
  ['iptables', 'ipvs: { tcpTimeout: 1m, strictARP: true }', undefined],
  ['nftables', 'conntrack: { tcpBeLiberal: true, udpTimeout: 1m }', 'conntrack.tcpBeLiberal and conntrack.udpTimeout'],
  ['nftables', 'nftables: { masqueradeBit: 7 }', 'masqueradeBit'],
  ['nftables', 'nftables: { masqueradeAll: true }', undefined],
])('in %s mode, %s: a setting that no single packet shows is not compared', (mode, fields, named) => {
  const given = (name: string, more: string) => ({
    name,
    text: `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ${mode}\n${more}\n`,
  });
  const manifests = { 'two.yaml': service + deployment(2) };
  const { report } = equivalence({ manifests, assume: true, from: given('one', ''), to: given('other', fields) });
  const listed = report?.notCompared.filter((each) => each.includes('no single packet'));
  expect(listed).toEqual(named === undefined ? [] : [`the effect of ${named}, which no single packet shows`]);
});

test('a program is told the same', () => {
  const manifests = { 'two.yaml': service + deployment(2) };
  const { diagnostics } = equivalence({
    manifests,
    assume: true,
    from: 'iptables',
    to: { name: 'config.yaml', text: config },
  });
  const notes = diagnostics.filter(({ code }) => code === 'assumed');
  expect(notes).toMatchObject([{ about: { kind: 'side', name: 'iptables' } }, { place: { file: 'config.yaml' } }]);
});
