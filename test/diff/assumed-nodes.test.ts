// Nodes assumed for both sides, of which one names a node in a Pod template.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { triesAll } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-nodes-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const manifests = (template: string): string =>
  '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, externalTrafficPolicy: Local, selector: {app: web}, ports: [{port: 80}]}}\n---\n' +
  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {${template}containers: [{name: web}]}}}}\n`;

interface Printed {
  readonly snapshots: readonly {
    readonly node: string;
    readonly assumed: {
      readonly pods: readonly { readonly pods: readonly { node: string; addresses: readonly string[] }[] }[];
    };
  }[];
  readonly result: { readonly base: readonly unknown[] };
}

async function diff(...words: readonly string[]): Promise<Printed> {
  writeFileSync(join(cwd, 'free.yaml'), manifests(''));
  writeFileSync(join(cwd, 'pinned.yaml'), manifests('nodeName: nas, '));
  const { stdout } = await runKpc(['diff', 'free.yaml', 'pinned.yaml', '--output', 'json', ...words], { cwd });
  return JSON.parse(stdout) as Printed;
}

test('both sides have the same Nodes, and are compiled for the same one', async () => {
  const { snapshots, result } = await diff('--proxy-mode', 'nftables');
  const [free, pinned] = snapshots.map(({ node, assumed }) => ({
    node,
    pods: assumed.pods.flatMap(({ pods }) => pods),
  }));
  expect(free?.node).toBe(pinned?.node);
  expect(result.base).toEqual([]);
  expect(new Set(pinned?.pods.map(({ node }) => node))).toEqual(new Set(['nas']));
  expect(new Set(free?.pods.map(({ node }) => node))).toEqual(new Set(['nas', 'node-1']));
  const networkOf = (address = '') => address.split('.', 3).join('.');
  const ofNas = free?.pods.find(({ node }) => node === 'nas');
  expect(networkOf(ofNas?.addresses[0])).toBe(networkOf(pinned?.pods[0]?.addresses[0]));
});

test('a side without a Service has the Nodes and settings of the other', async () => {
  const [service = '', workload = ''] = manifests('').replace('ports: [{', 'ports: [{nodePort: 30080, ').split('---\n');
  writeFileSync(join(cwd, 'whole.yaml'), `${service}---\n${workload}`);
  writeFileSync(join(cwd, 'workload.yaml'), workload);
  for (const [i, mode] of ['ipvs', 'iptables', 'nftables'].entries())
    for (const [j, sides] of [
      ['whole.yaml', 'workload.yaml'],
      ['workload.yaml', 'whole.yaml'],
    ].entries()) {
      if (!triesAll && (i + j) % 2 !== 0) continue;
      const { stdout } = await runKpc(['diff', ...sides, '--proxy-mode', mode], { cwd });
      expect(stdout).toContain('198.51.100.1:30080');
      expect(stdout).not.toMatch(/not known|not compared|of no Service \(|port of the node itself/);
    }
});

test('a Node that a Pod names moves no other', async () => {
  const addressOf = async (file: string) => {
    const words = ['describe', '-q', 'web', '-f', file, '--node', 'node-1', '--output', 'json'];
    const { stdout } = await runKpc(words, { cwd });
    return /198\.51\.100\.\d+/.exec(stdout)?.[0];
  };
  await diff();
  expect(await addressOf('free.yaml')).toBe('198.51.100.1');
  expect(await addressOf('pinned.yaml')).toBe('198.51.100.1');
});

test('a Node for which the Pod network has no room moves no other', async () => {
  const pinned = (name: string) =>
    `---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: ${name}}, spec: {selector: {matchLabels: {app: ${name}}}, template: {metadata: {labels: {app: ${name}}}, spec: {nodeName: ${name}, containers: [{name: web}]}}}}\n`;
  const addressesOf = async (...names: readonly string[]) => {
    writeFileSync(join(cwd, 'pins.yaml'), manifests('') + names.map(pinned).join(''));
    const found = names.slice(0, 4).map(async (node) => {
      const words = ['describe', '-q', 'web', '-f', 'pins.yaml', '--node', node, '--output', 'json'];
      const { stdout } = await runKpc([...words, '--assume-endpoints', '10.0.0.0/22'], { cwd });
      return /198\.51\.100\.\d+/.exec(stdout)?.[0];
    });
    return Promise.all(found);
  };
  const names = ['pa', 'pb', 'pc', 'pd'];
  const four = await addressesOf(...names);
  expect(new Set(four).size).toBe(4);
  for (const more of [['pe'], ['pe', 'pf', 'pg']]) expect(await addressesOf(...names, ...more)).toEqual(four);
});
