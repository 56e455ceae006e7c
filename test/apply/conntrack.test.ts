import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { forgetStaleFlows } from '../../src/apply/node/forget-flows.ts';
import type { Command, Host } from '../../src/apply/node/host.ts';
import { behavioursOf } from '../../src/kube-proxy/releases.ts';
import { loadBundle } from '../../src/cli/kpc-apply/load-bundle.ts';
import { fixtureBundle } from '../bundle/forge.ts';
import { writeFolder } from '../support/write-folder.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const { servicePorts } = (await loadBundle('fixtures/dns/expected-ipvs')).cluster;
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
  const run = async ({ args }: Command) => {
    if (args[0] === '-D') deleted.push(args.join(' '));
    const stdout = args[0] === '-L' && args.includes('ipv4') ? listing : '';
    const stderr = `conntrack v1.4.7 (conntrack-tools): ${stdout.split('\n').length - 1} flow entries have been shown.\n`;
    return { kind: 'ended' as const, status: 0, stdout, stderr: args[0] === '-L' ? stderr : '' };
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
  await forgetStaleFlows(host, servicePorts, newest);
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
  await forgetStaleFlows(host, servicePorts, newest);
  expect(deleted).toHaveLength(2);
});

test('says so where the tool cannot look', async () => {
  const run = async () => ({ kind: 'ended' as const, status: 1, stdout: '', stderr: 'Operation failed: no\n' });
  await expect(forgetStaleFlows({ ...createFakeNode().host, run }, servicePorts, newest)).rejects.toThrow(
    '"conntrack -L -f ipv4 -p udp" exited with status 1: Operation failed: no',
  );
});

test('looks at flows without an answer too: they were sent before the Service had an endpoint', async () => {
  const listing = `udp 17 29 src=10.0.0.1 dst=${address} sport=40000 dport=${dns?.port} [UNREPLIED] src=${address} dst=10.0.0.1 sport=${dns?.port} dport=40000 mark=0 use=1\n`;
  const { host, deleted } = withFlows(listing);
  await forgetStaleFlows(host, servicePorts, newest);
  expect(deleted).toHaveLength(1);
});

test('forgets flows to the addresses of a Service without endpoints since 1.37, and never those to its node port', async () => {
  const listing = [
    flow('udp', '10.0.0.1', address, dns?.port ?? 0, '10.244.9.9'),
    flow('udp', '10.0.0.1', '192.0.2.1', 30053, '10.244.9.9'),
  ].join('');
  const bare = servicePorts.map((port) => ({ ...port, nodePort: 30053, endpoints: [] }));
  const old = withFlows(listing);
  await forgetStaleFlows(old.host, bare, before);
  expect(old.deleted).toEqual([]);
  const { host, deleted } = withFlows(listing);
  await forgetStaleFlows(host, bare, newest);
  expect(deleted).toEqual([expect.stringContaining(`--orig-dst ${address} `)]);
});

test('does without the tool', async () => {
  const host: Host = { ...createFakeNode().host, run: async () => ({ kind: 'missing' }) };
  await expect(forgetStaleFlows(host, servicePorts, newest)).resolves.toBeUndefined();
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
    const run = async () => ({ kind: 'ended' as const, status: 0, stdout, stderr });
    await expect(forgetStaleFlows({ ...createFakeNode().host, run }, servicePorts, newest)).rejects.toThrow(
      '"conntrack -L -f ipv4 -p udp" exited with status 0, but its output is not whole',
    );
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
