// Two inputs, compared on every node that both have.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { equivalence } from '../../src/library/comparisons.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-all-nodes-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const node = (name: string, at: number) =>
  `---\n{apiVersion: v1, kind: Node, metadata: {name: ${name}}, spec: {podCIDRs: [10.244.${at}.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.50.${at}}]}}\n`;
const served = (...hosts: readonly number[]) => {
  const endpoints = hosts.map((at) => `{addresses: [10.244.${at}.10], nodeName: n${at}}`).join(', ');
  return `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.80, internalTrafficPolicy: Local, ports: [{port: 80, targetPort: 8080}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 8080}], endpoints: [${endpoints}]}
`;
};
const three = [1, 2, 3].map((at) => node(`n${at}`, at)).join('');
writeFileSync(join(cwd, 'old.yaml'), served(1, 2) + three);
writeFileSync(join(cwd, 'new.yaml'), served(1, 3) + three + node('n4', 4));
writeFileSync(join(cwd, 'others.yaml'), served(1, 2) + node('n5', 5));

const compare = async (...sides: readonly string[]) => {
  const words = ['equivalence', ...sides, '--all-nodes', '--proxy-mode', 'nftables', '--output', 'json'];
  return runKpc(words, { cwd });
};

test('kpc equivalence --all-nodes: a node that lost its endpoint breaks, and the command shows it there', async () => {
  const { status, stdout } = await compare('old.yaml', 'new.yaml');
  expect(status).toBe(1);
  const found = resultOf(stdout) as {
    readonly nodes: number;
    readonly notCompared: readonly string[];
    readonly causes: readonly {
      readonly nodes: readonly string[];
      readonly effects: readonly { readonly trace: string }[];
    }[];
  };
  expect(found).toMatchObject({ nodes: 3, causes: [{ nodes: ['n2', 'n3'] }] });
  expect(found.notCompared).toContainEqual(expect.stringMatching(/\bn4\b/));
  const traced = found.causes[0]?.effects[0]?.trace.split(' ').slice(1) ?? [];
  const traces = await runKpc([...traced, '--output', 'json'], { cwd });
  expect(traced).toContain('n2');
  expect(resultOf(traces.stdout)).toMatchObject({ traces: [{ node: 'n2', verdict: 'dropped' }] });
  expect(await compare('old.yaml', 'old.yaml')).toMatchObject({ status: 0 });
});

test('a node that changes stands for no other', async () => {
  const zones = (ofA: string) => Object.entries({ a: ofA, b: 'z3', c: 'z1', d: 'z3' });
  const nodesIn = (ofA: string) =>
    zones(ofA).map(
      ([name, zone], i) =>
        `---\n{apiVersion: v1, kind: Node, metadata: {name: ${name}, labels: {topology.kubernetes.io/zone: ${zone}}}, spec: {podCIDRs: [10.244.${i}.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.50.${i + 1}}]}}\n`,
    );
  const hinted = (...hints: readonly string[]) => {
    const endpoints = hints.map(
      (zone, i) => `{addresses: [10.244.3.${i + 10}], nodeName: d, hints: {forZones: [{name: ${zone}}]}}`,
    );
    return `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.80, trafficDistribution: PreferClose, ports: [{port: 80, targetPort: 8080}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 8080}], endpoints: [${endpoints.join(', ')}]}
`;
  };
  writeFileSync(join(cwd, 'hints-old.yaml'), hinted('z1', 'z3', 'z2') + nodesIn('z1').join(''));
  writeFileSync(join(cwd, 'hints-new.yaml'), hinted('z2', 'z3', 'z1') + nodesIn('z2').join(''));
  const { status, stdout } = await compare('hints-old.yaml', 'hints-new.yaml');
  expect({ status, result: resultOf(stdout) }).toMatchObject({ status: 1, result: { causes: [{ nodes: ['c'] }] } });
});

test('one side may be a mode', async () => {
  writeFileSync(join(cwd, 'mode.yaml'), served(1, 2) + three);
  const { status, stdout } = await compare('old.yaml', 'nftables', '-f', 'mode.yaml');
  expect({ status, result: resultOf(stdout) }).toMatchObject({ status: 0, result: { nodes: 3 } });
});

test('two inputs without a common Node are refused', async () => {
  const { status, stdout } = await compare('old.yaml', 'others.yaml');
  expect(status).toBe(2);
  expect(findingsOf(stdout, 'bad-call')).toMatchObject([{ arguments: { problem: 'no-shared-node' } }]);
});

test('one node has the addresses of a file, and each of several nodes those of its file in a folder', async () => {
  const nodePort = served(1, 2)
    .replace('internalTrafficPolicy: Local,', 'type: NodePort,')
    .replace('port: 80,', 'port: 80, nodePort: 30080,');
  writeFileSync(join(cwd, 'ports.yaml'), nodePort + three);
  mkdirSync(join(cwd, 'hosts'));
  for (const at of [1, 2, 3])
    writeFileSync(
      join(cwd, 'hosts', `n${at}.json`),
      JSON.stringify([{ ifname: 'eth1', addr_info: [{ family: 'inet', local: `172.16.0.${at}`, prefixlen: 24 }] }]),
    );
  const calls = [
    ['migrate', '--from', 'ipvs', 'ports.yaml'],
    ['equivalence', 'iptables', 'ipvs', '-f', 'ports.yaml', '--all-nodes'],
    ['lint', 'ports.yaml'],
    ['compile', '-f', 'ports.yaml', '--all-nodes', '-o', 'bundles'],
  ];
  for (const call of calls) {
    const byFile = await runKpc([...call, '--host-addresses', 'hosts/n1.json', '--output', 'json'], { cwd });
    expect(byFile.stdout, call[0]).toContain('"no-folder"');
    const byFolder = await runKpc([...call, '--host-addresses', 'hosts', '--output', 'json'], { cwd });
    expect(byFolder.stdout, call[0]).not.toContain('"no-folder"');
  }
  const asked = [
    {
      command: 'trace',
      more: ['--from', '10.0.0.9', '--to', '172.16.0.2:30080', '--output', 'json'],
      shows: '"verdict": "delivered"',
    },
    { command: 'compile', more: ['--print', 'ipvsadm'], shows: '172.16.0.2:30080' },
  ];
  for (const { command, more, shows } of asked) {
    const on = async (name: string) => {
      const words = [command, '-f', 'ports.yaml', '--proxy-mode', 'ipvs', '--node', name, '--host-addresses', 'hosts'];
      const { stdout } = await runKpc([...words, ...more], { cwd });
      return stdout.includes(shows);
    };
    expect([await on('n2'), await on('n1')], command).toEqual([true, false]);
  }
});

test('two modes of the same manifests are compared on all nodes, unless one is named', async () => {
  const run = (...more: readonly string[]) =>
    runKpc(['equivalence', 'iptables', 'nftables', '-f', 'old.yaml', ...more, '--output', 'json'], { cwd });
  const nodesOf = async (...more: readonly string[]) =>
    (resultOf((await run(...more)).stdout) as { nodes: number }).nodes;
  expect(await nodesOf()).toBe(3);
  expect(await nodesOf('--node', 'n2')).toBe(1);
  const manifests = { 'old.yaml': served(1, 2) + three };
  expect(equivalence({ manifests, from: 'iptables', to: 'nftables' }).report?.nodes).toBe(3);
});

test('two inputs are compared on all Nodes that both have, unless one is named', async () => {
  const nodesOf = async (...more: readonly string[]) => {
    const words = ['equivalence', 'old.yaml', 'new.yaml', '--proxy-mode', 'nftables', ...more, '--output', 'json'];
    return resultOf((await runKpc(words, { cwd })).stdout) as { nodes: number; notCompared: readonly string[] };
  };
  const all = await nodesOf();
  expect(all).toMatchObject({ nodes: 3 });
  expect(all.notCompared[0]).toMatch(/\bn4\b/);
  expect(await nodesOf('--node', 'n2')).toMatchObject({ nodes: 1 });
});

test('a verdict for one of several nodes names the others', async () => {
  const nodes = ['--proxy-mode', 'nftables', '--node', 'n2'];
  const calls = [
    ['diff', 'old.yaml', 'old.yaml', ...nodes],
    ['equivalence', 'old.yaml', 'old.yaml', ...nodes],
    ['migrate', 'old.yaml', '--from', 'iptables', '--to', 'nftables', '--node', 'n2'],
  ];
  for (const call of calls) {
    for (const output of ['text', 'json', 'markdown', 'github']) {
      const { stdout, stderr } = await runKpc([...call, '--output', output], { cwd });
      expect(stdout + stderr, `${call.join(' ')} ${output}`).toMatch(/the other nodes \(n1, n3\)/);
    }
  }
});
