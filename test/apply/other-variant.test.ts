import { describe, expect, test } from 'vitest';
import { triesAll } from '../support/rounds.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

// A kernel follows the rules of both variants of iptables, and `iptables-save` shows those of one. Whatever is decided about
// rules must hold for both.

const bundleOf = (mode: string) => `fixtures/dual-stack/expected-${mode}`;

/** A node whose kernel has both variants. */
function createNode(): FakeNode {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
  return node;
}

async function chainsOf({ host }: FakeNode, variant: string): Promise<readonly string[]> {
  const saved = await Promise.all(
    ['iptables', 'ip6tables'].map((tool) => host.run({ tool: `${tool}-${variant}-save`, args: [] })),
  );
  return saved.flatMap((result) => (result.kind === 'ended' ? (result.stdout.match(/^:KUBE-\S+/gm) ?? []) : []));
}

const variants = [
  ['legacy', 'nft'],
  ['nft', 'legacy'],
] as const;

/** What the other modes have of iptables is the same whichever variant they use. */
const modesBeside = (used: string) => [
  'iptables',
  ...(triesAll ? ['ipvs', 'nftables'] : [used === 'nft' ? 'ipvs' : 'nftables']),
];

describe.each(variants)('rules in %s, and iptables is %s', (old, used) => {
  describe.each(modesBeside(used))('%s mode', (mode) => {
    /** What a kube-proxy in iptables mode left. */
    async function startNode(): Promise<FakeNode> {
      const node = createNode();
      node.useVariant(old);
      expect((await callApply(node.host, 'apply', bundleOf('iptables'))).status).toBe(0);
      for (const path of node.files.keys()) if (path.startsWith('/var/lib/kpc/')) node.files.delete(path);
      node.useVariant(used);
      return node;
    }

    test('that a kube-proxy left are refused, and found by plan and doctor', async () => {
      const node = await startNode();
      const there = node.dump();
      const { status, err } = await callApply(node.host, 'apply', bundleOf(mode));
      expect([status, err]).toEqual([3, expect.stringContaining(`chain ipv4 nat KUBE-SERVICES (iptables-${old})`)]);
      expect(err).toContain('--adopt');
      expect((await callApply(node.host, 'plan', bundleOf(mode))).out).toContain(`(iptables-${old}) exists already`);
      expect((await callApply(node.host, 'doctor', bundleOf(mode))).out).toMatch(
        `warning iptables is the ${used} variant, but the ${old} variant also holds`,
      );
      expect(node.dump()).toBe(there);
    });

    test('that a kube-proxy left go with --adopt, and come back with a rollback', async () => {
      const node = await startNode();
      const there = await chainsOf(node, old);
      const { status, err } = await callApply(node.host, 'apply', '--adopt', bundleOf(mode));
      expect(status, err).toBe(0);
      expect(await chainsOf(node, old)).toEqual([]);
      expect((await callApply(node.host, 'verify', bundleOf(mode))).status).toBe(0);
      expect((await callApply(node.host, 'rollback')).status).toBe(0);
      expect(await chainsOf(node, old)).toEqual(there);
      expect(await chainsOf(node, used)).toEqual([]);
    });

    test('that a kube-proxy writes later are no match for verify, and refused by apply', async () => {
      const node = await startNode();
      const clean = createNode();
      clean.useVariant(used);
      expect((await callApply(clean.host, 'apply', bundleOf(mode))).status).toBe(0);
      const left = await node.host.run({ tool: `iptables-${old}-save`, args: [] });
      const stdin = left.kind === 'ended' ? left.stdout.replace(/^:[A-Z]+ ACCEPT.*\n/gm, '') : '';
      await clean.host.run({ tool: `iptables-${old}-restore`, args: ['--noflush'], stdin });
      const verified = await callApply(clean.host, 'verify', bundleOf(mode));
      expect(verified).toMatchObject({ status: 1, out: expect.stringContaining('Drift: ') });
      expect((await callApply(clean.host, 'apply', bundleOf(mode))).err).toContain(`(iptables-${old})`);
      expect((await callApply(clean.host, 'apply', '--adopt', bundleOf(mode))).status).toBe(0);
      expect(await chainsOf(clean, old)).toEqual([]);
    });

    test('that kpc-apply made itself are not forgotten', async () => {
      const node = createNode();
      node.useVariant(old);
      expect((await callApply(node.host, 'apply', bundleOf('iptables'))).status).toBe(0);
      const before = await chainsOf(node, old);
      node.useVariant(used);
      const { out } = await callApply(node.host, 'doctor', bundleOf(mode));
      expect(out).toMatch(
        new RegExp(`the ${old} variant also holds \\d+ chains of kpc-apply, which packets still reach`),
      );
      expect(out).not.toMatch(/chains? of kube-proxy/);
      expect((await callApply(node.host, 'verify', bundleOf('iptables'))).status).toBe(1);
      expect((await callApply(node.host, 'apply', bundleOf(mode))).status).toBe(0);
      expect(await chainsOf(node, old)).toEqual([]);
      expect((await callApply(node.host, 'rollback')).status).toBe(0);
      expect(await chainsOf(node, old)).toEqual(before);
      expect((await callApply(node.host, 'cleanup')).status).toBe(0);
      expect([await chainsOf(node, old), await chainsOf(node, used)]).toEqual([[], []]);
    });
  });
});

test('what cannot be read of the other variant is said', async () => {
  const node = createNode();
  node.useVariant('nft');
  const host = {
    ...node.host,
    run: (command: Parameters<typeof node.host.run>[0]) =>
      command.tool.includes('-legacy-') ? Promise.resolve({ kind: 'missing' } as const) : node.host.run(command),
  };
  const { status, err } = await callApply(host, 'apply', bundleOf('iptables'));
  expect(status).toBe(0);
  expect(err).toMatch(/warning: iptables-legacy-save is missing: it is unknown whether rules that a kube-proxy left/);
});

test('a watch warns of the rules of the other variant once, not in each round', async () => {
  const node = createNode();
  node.useVariant('legacy');
  expect((await callApply(node.host, 'apply', bundleOf('iptables'))).status).toBe(0);
  const left = await node.host.run({ tool: 'iptables-legacy-save', args: [] });
  expect((await callApply(node.host, 'cleanup')).status).toBe(0);
  node.useVariant('nft');
  expect((await callApply(node.host, 'apply', bundleOf('iptables'))).status).toBe(0);
  const stdin = left.kind === 'ended' ? left.stdout.replace(/^:[A-Z]+ ACCEPT.*\n/gm, '') : '';
  await node.host.run({ tool: 'iptables-legacy-restore', args: ['--noflush'], stdin });
  const begun = node.host.uptime();
  let rounds = 0;
  const sleep: typeof node.host.sleep = async (milliseconds) => {
    await node.host.sleep(milliseconds);
    if (node.host.uptime() - begun > 35_000) process.emit('SIGTERM');
  };
  const run: typeof node.host.run = (command) => {
    if (command.tool === 'iptables-legacy-save') rounds++;
    return node.host.run(command);
  };
  const { err } = await callApply({ ...node.host, sleep, run }, 'watch', bundleOf('iptables'), '--sync-period', '10s');
  expect(rounds).toBeGreaterThan(2);
  expect(err.match(/warning: these objects still match connections: .*KUBE/g)).toHaveLength(1);
});
