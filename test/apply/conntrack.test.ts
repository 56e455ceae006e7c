import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { forgetStaleFlows } from '../../src/apply/node/open-traffic.ts';
import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { behavioursOf } from '../../src/kube-proxy/releases.ts';
import { loadBundle } from '../../src/apply/open/load-bundle.ts';
import { fixtureBundle } from '../bundle/forge.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, keepLines } from './fake-node.ts';

const { servicePorts } = (await loadBundle('fixtures/dns/expected-ipvs')).snapshot.cluster;
const newest = behavioursOf('1.37');
const before = behavioursOf('1.36');
const dns = servicePorts.find((port) => port.protocol === 'UDP' && port.family === 'ipv4' && port.endpoints.length > 0);
const address = `${dns?.clusterIP.text}`;
const endpoint = dns?.endpoints.find(({ status }) => status.serving)?.address.text;

function flow(protocol: string, source: string, to: string, port: number, reply: string): string {
  return `${protocol}      17 25 src=${source} dst=${to} sport=40000 dport=${port} src=${reply} dst=${source} sport=53 dport=40000 mark=0 use=1\n`;
}

function withFlows(listing: string): { readonly host: Host; readonly deleted: string[] } {
  const deleted: string[] = [];
  const run = async (command: ToolCommand) => {
    const { args } = command;
    if (args[0] === '-D') deleted.push(args.join(' '));
    const stdout = args[0] === '-L' && args.includes('ipv4') ? listing : '';
    const stderr = `conntrack v1.4.7 (conntrack-tools): ${stdout.split('\n').length - 1} flow entries have been shown.\n`;
    return keepLines({ kind: 'ended', status: 0, stdout, stderr: args[0] === '-L' ? stderr : '' }, command);
  };
  return { host: { ...createFakeNode().host, run }, deleted };
}

test('forgets flows to a Service that go where it has no endpoint, and no others', async () => {
  const { host, deleted } = withFlows(
    [
      flow('udp', '10.0.0.1', address, dns?.port ?? 0, '10.244.9.9'),
      flow('udp', '10.0.0.2', address, dns?.port ?? 0, endpoint ?? ''),
      flow('udp', '10.0.0.3', '8.8.8.8', 53, '8.8.8.8'),
      flow('udp', '10.0.0.4', address, 9, address),
    ].join(''),
  );
  await forgetStaleFlows(host, { ports: servicePorts }, newest);
  expect(deleted).toEqual([
    `-D -f ipv4 -p udp --orig-dst ${address} --orig-port-dst ${dns?.port} --reply-src 10.244.9.9 --reply-port-src 53`,
  ]);
});

test('runs the tool once for all flows between the same two ends, however many clients there are', async () => {
  const clients = Array.from({ length: 1000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  const flows = clients.flatMap((client) => [
    flow('udp', client, address, dns?.port ?? 0, '10.244.9.9'),
    flow('udp', client, address, dns?.port ?? 0, '10.244.9.10'),
  ]);
  const { host, deleted } = withFlows(flows.join(''));
  await forgetStaleFlows(host, { ports: servicePorts }, newest);
  expect(deleted).toHaveLength(2);
});

const unreadable = (details: object) => ({
  finding: { code: 'unreadable-node', arguments: { command: 'conntrack -L -f ipv4 -p udp', ...details } },
});

test('says so where the tool cannot look', async () => {
  const run = async () => ({ kind: 'ended' as const, status: 1, stdout: '', stderr: 'Operation failed: no\n' });
  await expect(
    forgetStaleFlows({ ...createFakeNode().host, run }, { ports: servicePorts }, newest),
  ).rejects.toMatchObject(unreadable({ problem: 'failed', status: 1, said: 'Operation failed: no' }));
});

test('looks at flows without an answer too: they were sent before the Service had an endpoint', async () => {
  const listing = `udp 17 29 src=10.0.0.1 dst=${address} sport=40000 dport=${dns?.port} [UNREPLIED] src=${address} dst=10.0.0.1 sport=${dns?.port} dport=40000 mark=0 use=1\n`;
  const { host, deleted } = withFlows(listing);
  await forgetStaleFlows(host, { ports: servicePorts }, newest);
  expect(deleted).toHaveLength(1);
});

test('forgets flows to the addresses of a Service without endpoints since 1.37, and never those to its node port', async () => {
  const listing = [
    flow('udp', '10.0.0.1', address, dns?.port ?? 0, '10.244.9.9'),
    flow('udp', '10.0.0.1', '192.0.2.1', 30053, '10.244.9.9'),
  ].join('');
  const bare = servicePorts.map((port) => ({ ...port, nodePort: 30053, endpoints: [] }));
  const old = withFlows(listing);
  await forgetStaleFlows(old.host, { ports: bare }, before);
  expect(old.deleted).toEqual([]);
  const { host, deleted } = withFlows(listing);
  await forgetStaleFlows(host, { ports: bare }, newest);
  expect(deleted).toEqual([expect.stringContaining(`--orig-dst ${address} `)]);
});

test('does without the tool', async () => {
  const host: Host = { ...createFakeNode().host, run: async () => ({ kind: 'missing' }) };
  await expect(forgetStaleFlows(host, { ports: servicePorts }, newest)).resolves.toBeUndefined();
});

test('says so where the list is not whole', async () => {
  const listed = flow('udp', '10.0.0.1', '8.8.8.8', 53, '8.8.8.8');
  const shown = (count: number) => `conntrack v1.4.7 (conntrack-tools): ${count} flow entries have been shown.\n`;
  for (const [stdout, stderr] of [
    [listed, shown(2)],
    ['', ''],
    ['garbage\n', shown(1)],
    [listed.slice(0, 60), shown(1)],
  ] as const) {
    const run = async (command: ToolCommand) => keepLines({ kind: 'ended', status: 0, stdout, stderr }, command);
    await expect(
      forgetStaleFlows({ ...createFakeNode().host, run }, { ports: servicePorts }, newest),
    ).rejects.toMatchObject(unreadable({ problem: 'bad-output' }));
  }
});

const scratch = mkdtempSync(join(tmpdir(), 'kpc-conntrack-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test.each(['ipvs', 'iptables', 'nftables'])(
  'an apply in %s mode looks at flows after each change, and only then',
  async (mode) => {
    const { host, commands } = createFakeNode();
    const bundle = writeFolder(join(scratch, mode), Object.fromEntries(fixtureBundle(`dns/expected-${mode}`)));
    for (const looks of [true, false]) {
      commands.length = 0;
      expect(await callApply(host, 'apply', bundle)).toMatchObject({ status: 0 });
      expect(commands.some(({ tool }) => tool === 'conntrack')).toBe(looks);
    }
  },
);

/** A bundle for Kubernetes 1.38 of a TCP Service and, with `isServed`, of one of UDP. */
async function bundleOf(mode: string, isServed: boolean): Promise<string> {
  const services = [
    { name: 'web', clusterIP: '10.96.0.80', ports: [{ name: 'p', port: 80 }] },
    ...(isServed ? [{ name: 'dns', clusterIP: '10.96.0.53', ports: [{ name: 'p', port: 53, protocol: 'UDP' }] }] : []),
  ];
  const items = services.map(({ name, ...spec }) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec }));
  const out = join(scratch, `${mode}-${isServed ? 'served' : 'gone'}`);
  const args = ['--proxy-mode', mode, '--kubernetes-version', '1.38', '-o', out];
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  expect(await runKpc(['compile', '-f', '-', ...args], { stdin })).toMatchObject({ status: 0 });
  return out;
}

describe.each(['ipvs', 'iptables'])('an apply in %s mode after which a UDP Service is gone', (mode) => {
  const listing = flow('udp', '10.0.0.1', '10.96.0.53', 53, '10.244.9.9');
  const isDelete = (command: ToolCommand) => command.tool === 'conntrack' && command.args[0] === '-D';
  function createNode() {
    const { host, ...node } = createFakeNode();
    const run: Host['run'] = async (command) => {
      const outcome = await host.run(command);
      const isListed = command.tool === 'conntrack' && command.args[0] === '-L' && command.args.includes('ipv4');
      if (!isListed) return outcome;
      const stderr = 'conntrack v1.4.7: 1 flow entries have been shown.\n';
      return keepLines({ kind: 'ended', status: 0, stdout: listing, stderr }, command);
    };
    return { ...node, host: { ...host, run } };
  }

  test('forgets the flows to it once, also after a rollback to the Service', async () => {
    const { host, commands } = createNode();
    const [served, gone] = [await bundleOf(mode, true), await bundleOf(mode, false)];
    // The Service has no endpoint, so the flow is stale while there is the Service, too.
    const forgets: (readonly [command: readonly string[], number])[] = [
      [['apply', served], 1],
      [['apply', gone], 1],
      [['rollback'], 0],
      [['apply', gone], 1],
      [['apply', gone], 0],
      [['cleanup'], 0],
      [['apply', gone], 0],
    ];
    for (const [words, times] of forgets) {
      commands.length = 0;
      const { status, err } = await callApply(host, ...words);
      expect([status, err.includes('no record says')], err).toEqual([0, false]);
      expect(commands.filter(isDelete).map(({ args }) => args.join(' '))).toEqual(
        Array<string>(times).fill(
          '-D -f ipv4 -p udp --orig-dst 10.96.0.53 --orig-port-dst 53 --reply-src 10.244.9.9 --reply-port-src 53',
        ),
      );
    }
  });

  test('says so where the record is of a kpc-apply that did not note the Services', async () => {
    const { host, files, commands } = createNode();
    const [served, gone] = [await bundleOf(mode, true), await bundleOf(mode, false)];
    await callApply(host, 'apply', served);
    const path = '/var/lib/kpc/record.json';
    const { udpPorts, ...older } = JSON.parse(files.get(path) ?? '') as Record<string, unknown>;
    expect(udpPorts).toHaveLength(1);
    files.set(path, JSON.stringify(older));
    commands.length = 0;
    const { status, err } = await callApply(host, 'apply', gone);
    expect([status, commands.filter(isDelete)]).toEqual([0, []]);
    expect(err).toContain('no record names the Services before this apply');
  });
});
