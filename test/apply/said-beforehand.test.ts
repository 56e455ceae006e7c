import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { realHost } from '../../src/apply/node/real-host.ts';
import type { CommandResult, Host } from '../../src/apply/node/host.ts';
import { runKpc } from '../support/run-kpc.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { resultOf } from '../support/printed-json.ts';

const bundle = (mode: string) => `fixtures/quickstart/expected-${mode}`;

function startNode(): FakeNode {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
  return node;
}

const answering = (host: Host, tool: string, arg: string, result: Partial<CommandResult>): Host => ({
  ...host,
  run: async (command) =>
    command.tool === tool && command.args.includes(arg)
      ? { kind: 'ended', status: 0, stdout: '', stderr: '', ...result }
      : host.run(command),
});

test('plan and a dry run name what apply refuses: a kernel without IPVS', async () => {
  const node = startNode();
  for (const path of ['/proc/net/ip_vs', '/proc/sys/net/ipv4/vs/conntrack']) node.files.delete(path);
  node.files.set('/proc/modules', 'nf_conntrack 1 0 - Live\n');
  node.files.set('/lib/modules/6.1.0/modules.dep', 'kernel/x.ko:\n');
  const refused = await callApply(node.host, 'apply', bundle('ipvs'));
  const [, reason = ''] = /error: (ip_vs_rr[^;[]* missing[^;[]*)/.exec(refused.err) ?? [];
  expect([refused.status, reason], refused.err).toEqual([3, expect.stringContaining('ip_vs_rr')]);
  const plan = await callApply(node.host, 'plan', bundle('ipvs'));
  expect([plan.status, plan.out]).toEqual([1, expect.stringContaining(`! apply would refuse: ${reason.trim()}`)]);
  const json = await callApply(node.host, 'plan', bundle('ipvs'), '--output', 'json');
  expect(resultOf(json.out)).toMatchObject({
    refusals: expect.arrayContaining([{ subject: 'modules', text: reason.trim(), help: expect.any(String) }]),
  });
  expect(await callApply(node.host, 'apply', bundle('ipvs'), '--dry-run')).toMatchObject({ status: 3, out: '' });
});

test('plan names a tool that is too old', async () => {
  const node = startNode();
  const host = answering(node.host, 'iptables-restore', '--version', { stdout: 'iptables v1.4.21\n' });
  expect((await callApply(host, 'apply', bundle('iptables'))).err).toContain('iptables-restore is 1.4.21');
  expect((await callApply(host, 'plan', bundle('iptables'))).out).toContain(
    '! apply would refuse: iptables-restore is 1.4.21',
  );
});

test('plan and apply say why nf_conntrack_max goes down', async () => {
  // From 1.37 on, kube-proxy only raises it.
  const older = mkdtempSync(join(tmpdir(), 'kpc-older-'));
  onTestFinished(() => rmSync(older, { recursive: true, force: true }));
  const flags = ['--proxy-mode', 'iptables', '--kubernetes-version', '1.36', '-o', older];
  expect((await runKpc(['compile', '-f', 'fixtures/quickstart/svc.yaml', ...flags])).status).toBe(0);
  const node = startNode();
  const path = '/proc/sys/net/netfilter/nf_conntrack_max';
  node.files.set(path, '262144\n');
  const why =
    'net.netfilter.nf_conntrack_max goes down from 262144 to 131072, the value that kube-proxy sets (32768 × 4 cores';
  expect((await callApply(node.host, 'plan', older)).out).toContain(why);
  expect((await callApply(node.host, 'apply', older)).err).toContain(why);
  node.files.set(path, '1000\n');
  expect((await callApply(node.host, 'plan', older)).out).not.toContain('goes down');
});

test('doctor without a bundle looks at each mode, and says which needs what', async () => {
  const node = startNode();
  const { out } = await callApply(node.host, 'doctor');
  for (const title of ['IPVS mode', 'iptables mode', 'nftables mode']) expect(out).toContain(`\nFor ${title}:\n`);
  const without = answering(node.host, 'nft', '--version', { kind: 'missing' });
  const missing = await callApply(without, 'doctor', '--output', 'json');
  expect(missing.status).toBe(0);
  const errors = (resultOf(missing.out).checks as { severity: string; mode?: string; text: string }[]).filter(
    ({ severity }) => severity === 'error',
  );
  expect(errors).toEqual([expect.objectContaining({ mode: 'nftables', text: 'nft is missing' })]);
});

test('doctor looks at the state folder', async () => {
  const node = startNode();
  expect((await callApply(node.host, 'doctor', bundle('iptables'))).out).toContain(
    '/var/lib/kpc: kpc-apply has made nothing',
  );
  await callApply(node.host, 'apply', bundle('iptables'), '--state-dir', '/srv/kpc');
  const looked = (...args: readonly string[]) => callApply(node.host, 'doctor', bundle('iptables'), ...args);
  expect((await looked('--state-dir', '/srv/kpc')).out).toContain('/srv/kpc: the record is intact');
  node.files.set('/srv/kpc/record.json', '{');
  expect(await looked('--state-dir', '/srv/kpc')).toMatchObject({
    status: 1,
    out: expect.stringContaining('error   /srv/kpc/record.json is damaged'),
  });
  expect((await looked('--state-dir', '')).status).toBe(2);
});

const affinity = 'fixtures/session-affinity/expected-';

test.each([
  ['iptables', 'nftables', 'iptables mode'],
  ['ipvs', 'iptables', 'IPVS mode'],
  ['nftables', 'ipvs', 'nftables mode'],
])('a change from %s to %s says that clients lose their session', async (from, to, learner) => {
  const node = startNode();
  expect((await callApply(node.host, 'apply', `${affinity}${from}`)).status).toBe(0);
  const said = new RegExp(`session affinity: clients lose their endpoints, because .* cannot read what ${learner} has`);
  expect((await callApply(node.host, 'plan', `${affinity}${to}`)).out).toMatch(said);
  expect((await callApply(node.host, 'apply', `${affinity}${to}`)).err).toMatch(said);
  expect((await callApply(node.host, 'plan', `${affinity}${to}`)).out).not.toContain('session affinity');
});

test('a comment of the table that was changed by hand is drift, and is put right', async () => {
  const node = startNode();
  expect((await callApply(node.host, 'apply', bundle('nftables'))).status).toBe(0);
  let comment = 'rules for kube-proxy';
  const host: Host = {
    ...node.host,
    run: async (command) => {
      const result = await node.host.run(command);
      if (command.tool === 'nft' && command.stdin?.includes('delete table ip kube-proxy'))
        comment = 'rules for kube-proxy';
      if (result.kind !== 'ended' || !command.args.includes('ip') || !command.args.includes('list')) return result;
      return { ...result, stdout: result.stdout.replace(' {\n', ` {\n\tcomment "${comment}"\n`) };
    },
  };
  expect((await callApply(host, 'verify', bundle('nftables'))).status).toBe(0);
  comment = 'mine';
  const drift = await callApply(host, 'verify', bundle('nftables'));
  expect([drift.status, drift.out]).toEqual([1, expect.stringContaining('comment "mine"')]);
  expect((await callApply(host, 'apply', bundle('nftables'))).status).toBe(0);
  expect((await callApply(host, 'verify', bundle('nftables'))).status).toBe(0);
});

test('confirm says to wait while apply has not asked yet', async () => {
  const node = startNode();
  let said: Awaited<ReturnType<typeof callApply>> | undefined;
  const host: Host = {
    ...node.host,
    run: async (command) => {
      if (command.tool === 'iptables-save' && said === undefined) said = await callApply(node.host, 'confirm');
      return node.host.run(command);
    },
  };
  await callApply(host, 'apply', bundle('iptables'));
  expect(said).toMatchObject({ status: 3, err: expect.stringContaining('wait until apply asks for confirmation') });
  expect((await callApply(node.host, 'confirm')).err).not.toContain('wait until');
});

test('what a tool says is cut short, and random bytes are one sign', async () => {
  const node = startNode();
  const stderr = `${'\u{fffd}\0\u{1b}'.repeat(5000)}\n${'x'.repeat(5000)}\n${'line\n'.repeat(500)}`;
  for (const [tool, arg] of [
    ['iptables-save', ''],
    ['iptables-restore', '--noflush'],
  ] as const) {
    const host: Host = {
      ...node.host,
      run: async (command) =>
        command.tool === tool && (arg === '' || command.args.includes(arg))
          ? { kind: 'ended', status: 1, stdout: '', stderr }
          : node.host.run(command),
    };
    const { status, err } = await callApply(host, 'apply', bundle('iptables'));
    expect([status, err.length < 1000, err.includes('xxxx')], err).toEqual([3, true, true]);
  }
});

test('a bundle with a link that leads to itself is a bad bundle', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpc-loop-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync('manifest.json', join(folder, 'manifest.json'));
  symlinkSync('itself', join(folder, 'itself'));
  const host: Host = { ...startNode().host, examine: realHost.examine, list: realHost.list };
  for (const bundleFolder of [folder, join(folder, 'itself')]) {
    expect(await callApply(host, 'plan', bundleFolder)).toMatchObject({
      status: 2,
      err: expect.stringContaining('[bad-bundle]'),
    });
  }
});

test('a folder without a name is refused', async () => {
  expect((await callApply(startNode().host, 'dump', '-o', '')).status).toBe(2);
  expect((await callApply(startNode().host, 'plan', bundle('iptables'), '--state-dir', '')).status).toBe(2);
});
