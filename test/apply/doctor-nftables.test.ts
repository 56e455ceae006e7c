import { expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const bundle = 'fixtures/quickstart/expected-nftables';

function nodeWith(files: Readonly<Record<string, string>>): FakeNode {
  const node = createFakeNode();
  for (const [path, text] of Object.entries(files)) node.files.set(path, text);
  return node;
}

const loaded = { '/proc/modules': 'nf_tables 1 0 - Live\nnf_conntrack 1 0 - Live\n' };

/** A node whose kernel does not take rules with this word. */
function without(word: string, node = nodeWith(loaded)): Host {
  return {
    ...node.host,
    run: async (command) =>
      command.tool === 'nft' && (command.stdin ?? '').includes(word)
        ? {
            kind: 'ended',
            status: 1,
            stdout: '',
            stderr: '/dev/stdin:1:50-69: Error: Could not process rule: No such file or directory\n',
          }
        : node.host.run(command),
  };
}

test('a node that has all of it', async () => {
  const { status, out } = await callApply(nodeWith(loaded).host, 'doctor', bundle);
  expect(out).toContain('ok      the kernel supports everything that the rules need');
  expect(out).toContain('ok      kernel 6.1.0');
  expect(status).toBe(0);
});

test.each([
  ['numgen', 'nft_numgen', 'choose an endpoint at random'],
  ['fib', 'nft_fib', 'recognise local addresses'],
  ['masquerade', 'nft_masq', 'masquerade'],
  ['dnat', 'nft_nat', 'send packets to endpoints'],
  ['reject', 'nft_reject', 'refuse packets'],
])('a kernel without %s is an error that names %s', async (word, module, what) => {
  const { status, out } = await callApply(without(word), 'doctor', bundle);
  expect(out).toMatch(new RegExp(`error {3}this kernel cannot ${what}.* for ip: Could not process rule`));
  expect(out).toMatch(new RegExp(`modprobe -a .*${module}`));
  expect(status).toBe(1);
});

test('in a container without the list of modules, the host is to load them', async () => {
  const node = nodeWith(loaded);
  node.files.delete('/lib/modules/6.1.0/modules.dep');
  const { out } = await callApply(without('numgen', node), 'doctor', bundle);
  expect(out).toContain('load its modules on the host');
});

test('modules that can be loaded are not loaded to try them', async () => {
  const node = nodeWith({
    '/proc/modules': 'nf_conntrack 1 0 - Live\n',
    '/lib/modules/6.1.0/modules.dep': ['nf_tables', 'nft_chain_nat', 'nft_nat', 'nft_masq', 'nft_numgen', 'nft_ct']
      .map((name) => `kernel/net/netfilter/${name}.ko:\n`)
      .join(''),
  });
  const { status, out } = await callApply(node.host, 'doctor', bundle);
  expect(node.commands.filter(({ tool, args }) => tool === 'nft' && args[0] === '-c')).toEqual([]);
  expect(out).toContain('ok      nf_tables can be loaded');
  expect(out).toContain('error   nft_fib, nft_fib_ipv4, nft_reject and nft_reject_ipv4 are missing');
  expect(status).toBe(1);
});

test.each(['doctor', 'apply'])('%s says no to a kernel older than kube-proxy asks for', async (command) => {
  const node = nodeWith({ ...loaded, '/proc/sys/kernel/osrelease': '5.10.0-28-amd64\n' });
  const { status, out, err } = await callApply(node.host, command, bundle);
  expect(`${out}${err}`).toContain('the kernel is 5.10.0-28-amd64, but kube-proxy requires at least 5.13 in this mode');
  expect(status).toBe(command === 'doctor' ? 1 : 3);
});

test.each(['doctor', 'apply'])('%s says no to an old nft', async (command) => {
  const node = nodeWith(loaded);
  const host: Host = {
    ...node.host,
    run: async (call) =>
      call.tool === 'nft' && call.args[0] === '--version'
        ? { kind: 'ended', status: 0, stdout: 'nftables v0.9.8 (E.D.S.)\n', stderr: '' }
        : node.host.run(call),
  };
  const { status, out, err } = await callApply(host, command, bundle);
  expect(`${out}${err}`).toContain('nft is 0.9.8, but at least 1.0.1 is needed');
  expect(status).toBe(command === 'doctor' ? 1 : 3);
});

test('warns of a node that forwards nothing, and is no error', async () => {
  const { status, out } = await callApply(nodeWith(loaded).host, 'doctor', bundle);
  expect(out).toContain('warning net.ipv4.ip_forward is 0');
  expect(status).toBe(0);
  const forwarding = nodeWith({ ...loaded, '/proc/sys/net/ipv4/ip_forward': '1\n' });
  expect((await callApply(forwarding.host, 'doctor', bundle)).out).not.toContain('ip_forward');
});

test('a bundle of another mode is not asked for any of it', async () => {
  const node = nodeWith({ '/proc/sys/kernel/osrelease': '5.10.0\n' });
  const { out } = await callApply(node.host, 'doctor', 'fixtures/quickstart/expected-iptables');
  expect(out).not.toMatch(/nf_tables|nftables|5\.13/);
});
