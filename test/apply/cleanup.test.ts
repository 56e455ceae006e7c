import { describe, expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const modes = ['iptables', 'ipvs', 'nftables'] as const;
const bundleOf = (mode: string) => `fixtures/dual-stack/expected-${mode}`;

async function startNode(mode: string): Promise<FakeNode> {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
  expect((await callApply(node.host, 'apply', bundleOf(mode))).status).toBe(0);
  node.commands.length = 0;
  return node;
}

describe.each(modes)('cleanup, %s mode', (mode) => {
  test('with --dry-run says what it would take, and takes nothing', async () => {
    const node = await startNode(mode);
    const there = node.dump();
    const { status, out } = await callApply(node.host, 'cleanup', '--dry-run');
    expect(status).toBe(0);
    expect(out).toMatch(mode === 'nftables' ? /^ {2}- table kube-proxy/m : /^ {2}- chain KUBE-SERVICES \(nat\)/m);
    expect(out).toMatch(/^Plan: nothing to add, .* to remove$/m);
    expect(node.commands.filter(({ stdin }) => stdin !== undefined)).toEqual([]);
    expect(node.dump()).toBe(there);
  });

  test('with --dry-run names what would stay, and with --adopt too what a kube-proxy left', async () => {
    const node = await startNode(mode);
    for (const path of node.files.keys()) if (path.startsWith('/var/lib/kpc/')) node.files.delete(path);
    const without = await callApply(node.host, 'cleanup', '--dry-run');
    expect(without.out).toContain('Plan: nothing to change');
    expect(without.err).toContain('kept, because kpc-apply did not make it: ');
    expect((await callApply(node.host, 'cleanup', '--adopt', '--dry-run')).out).toMatch(/ to remove$/m);
  });

  test('with --confirm-timeout comes back unless it is confirmed', async () => {
    const node = await startNode(mode);
    const there = node.dump();
    const { status, err } = await callApply(node.host, 'cleanup', '--confirm-timeout', '2s');
    expect(status).toBe(3);
    expect(err).toContain('no confirmation within 2 s');
    expect(err).toContain(
      'help: if the node can still be reached, run the command again, and "kpc-apply confirm" in time',
    );
    expect(node.dump()).toBe(there);
    expect((await callApply(node.host, 'verify', bundleOf(mode))).status).toBe(0);
  });
});

describe('what rules of other programs use', () => {
  /** A node where a kube-proxy left its rules, and an operator uses a chain and, in IPVS mode, a set of them. */
  async function startUsed(mode: 'iptables' | 'ipvs'): Promise<FakeNode> {
    const node = await startNode(mode);
    for (const path of node.files.keys()) if (path.startsWith('/var/lib/kpc/')) node.files.delete(path);
    const lines = [
      '-A INPUT -s 192.0.2.0/24 -j KUBE-FORWARD',
      ...(mode === 'ipvs' ? ['-A INPUT -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT'] : []),
    ];
    const stdin = `*filter\n${lines.join('\n')}\nCOMMIT\n`;
    expect(await node.host.run({ tool: 'iptables-restore', args: ['--noflush'], stdin })).toMatchObject({ status: 0 });
    return node;
  }

  const kept = (mode: string) =>
    `kept, because rules or sets of other programs use it: ${mode === 'ipvs' ? 'ipv4 filter KUBE-FORWARD, set KUBE-CLUSTER-IP' : 'ipv4 filter KUBE-FORWARD'}\n`;

  test.each(['iptables', 'ipvs'] as const)('stays, and cleanup --adopt says so: %s mode', async (mode) => {
    const node = await startUsed(mode);
    const { status, err } = await callApply(node.host, 'cleanup', '--adopt');
    expect([status, err]).toEqual([0, expect.stringContaining(kept(mode))]);
    expect(err).not.toContain('--adopt removes it too');
    expect(node.dump()).toContain('KUBE-FORWARD');
    expect(node.dump()).not.toContain('KUBE-SERVICES');
  });

  test.each(['iptables', 'ipvs'] as const)('is not what a cleanup advises --adopt for: %s mode', async (mode) => {
    const node = await startUsed(mode);
    const { err } = await callApply(node.host, 'cleanup', '--dry-run');
    const [made, used] = err.split('\n');
    expect(made).toMatch(
      /^kept, because kpc-apply did not make it: .*; if kube-proxy left it, --adopt removes it too$/,
    );
    expect(made).not.toMatch(/KUBE-FORWARD|KUBE-CLUSTER-IP/);
    expect(`${used}\n`).toBe(kept(mode));
  });
});

test('cleanup --dry-run refuses what cleanup refuses: a kube-proxy that runs', async () => {
  const node = await startNode('iptables');
  node.files.set('/proc/77/comm', 'kube-proxy\n');
  node.files.set('/proc/77/status', 'Uid:\t0\t0\t0\t0\n');
  const { status, err } = await callApply(node.host, 'cleanup', '--dry-run');
  expect([status, err]).toEqual([3, expect.stringContaining('kube-proxy is running')]);
});

test('a file that only looks like a state does not lead to ids that are never pruned', async () => {
  const node = await startNode('iptables');
  node.files.set('/var/lib/kpc/state-999999999999999.json', '{}');
  for (let i = 0; i < 8; i++) {
    for (const args of [
      ['apply', bundleOf('ipvs')],
      ['apply', bundleOf('iptables')],
    ])
      await callApply(node.host, ...args);
  }
  const states = [...node.files.keys()].filter((path) => /\/state-\d+\.json$/.test(path));
  expect(states.length).toBeLessThanOrEqual(5);
});
