import { describe, expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const modes = ['nftables', 'iptables', 'ipvs'] as const;
const bundle = (mode: string) => `fixtures/dual-stack/expected-${mode}`;
const other = (mode: string) => `fixtures/loadbalancer-source-ranges/expected-${mode}`;
const unchanged = 'nothing to do: the node matches the bundle\n';
const records = '/var/lib/kpc/';

/** A node on which all is as in the bundle, and nothing says that kpc-apply made it: as a kube-proxy leaves it. */
async function startNode(mode: string): Promise<FakeNode> {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
  expect((await callApply(node.host, 'apply', bundle(mode))).status).toBe(0);
  for (const path of node.files.keys()) if (path.startsWith(records)) node.files.delete(path);
  node.commands.length = 0;
  return node;
}

describe.each(modes)('rules of mode %s that already are as in the bundle', (mode) => {
  test('are taken over by apply --adopt: the next bundle, and cleanup, need it no more', async () => {
    const node = await startNode(mode);
    expect((await callApply(node.host, 'apply', other(mode))).err).toContain('[conflict]');
    expect(await callApply(node.host, 'apply', bundle(mode), '--adopt')).toMatchObject({ status: 0, err: unchanged });
    expect(await callApply(node.host, 'apply', other(mode))).toMatchObject({ status: 0 });
    expect((await callApply(node.host, 'verify', other(mode))).status).toBe(0);
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    const fresh = createFakeNode();
    await callApply(fresh.host, 'apply', other(mode));
    await callApply(fresh.host, 'cleanup');
    expect(node.dump()).toBe(fresh.dump());
  });

  test('stay another program’s without --adopt', async () => {
    const node = await startNode(mode);
    const there = node.dump();
    expect(await callApply(node.host, 'apply', bundle(mode))).toMatchObject({ status: 0, err: unchanged });
    expect((await callApply(node.host, 'apply', other(mode))).err).toContain('kpc-apply did not make them');
    expect((await callApply(node.host, 'cleanup')).err).toContain('kept, because kpc-apply did not make it');
    expect(node.dump()).toBe(there);
  });

  test('that are taken over are not recorded anew each time', async () => {
    const node = await startNode(mode);
    await callApply(node.host, 'apply', bundle(mode), '--adopt');
    const record = node.files.get(`${records}record.json`);
    expect(record).toBeDefined();
    node.files.set(`${records}record.json`, `${record ?? ''} `);
    await callApply(node.host, 'apply', bundle(mode), '--adopt');
    expect(node.files.get(`${records}record.json`)).toBe(`${record ?? ''} `);
  });

  test('are not taken from a kube-proxy that runs', async () => {
    const node = await startNode(mode);
    const there = node.dump();
    node.files.set('/proc/77/comm', 'kube-proxy\n');
    node.files.set('/proc/77/status', 'Name:\tkube-proxy\nUid:\t0\t0\t0\t0\n');
    const run = await callApply(node.host, 'apply', bundle(mode), '--adopt');
    expect(run.status).toBe(3);
    expect(run.err).toContain('kube-proxy is running (process 77)');
    expect(node.files.has(`${records}record.json`)).toBe(false);
    expect((await callApply(node.host, 'apply', bundle(mode))).err).toBe(unchanged);
    expect((await callApply(node.host, 'cleanup', '--force')).status).toBe(0);
    expect(node.dump()).toBe(there);
  });
});
