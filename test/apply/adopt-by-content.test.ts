import { describe, expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const records = '/var/lib/kpc/';

/** What another program made under names that kube-proxy gives too. */
const strangers = {
  'a table of nftables': {
    tool: 'nft',
    args: ['-f', '-'],
    stdin: [
      'add table ip kube-proxy',
      'add chain ip kube-proxy watch { type filter hook input priority 0; }',
      'add rule ip kube-proxy watch tcp dport 22 drop',
    ],
  },
  'a chain': {
    tool: 'iptables-restore',
    args: ['--noflush'],
    stdin: ['*nat', ':KUBE-NODEPORTS - [0:0]', '-A KUBE-NODEPORTS -s 192.0.2.7/32 -j RETURN', 'COMMIT'],
  },
  'a chain with a jump from the kernel’s own': {
    tool: 'iptables-restore',
    args: ['--noflush'],
    stdin: [
      '*filter',
      ':KUBE-FORWARD - [0:0]',
      '-A KUBE-FORWARD -s 192.0.2.7/32 -j DROP',
      '-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
      'COMMIT',
    ],
  },
  'a set of another type': {
    tool: 'ipset',
    args: ['restore'],
    stdin: [
      'create KUBE-CLUSTER-IP hash:net family inet hashsize 1024 maxelem 65536',
      'add KUBE-CLUSTER-IP 192.0.2.0/24',
    ],
  },
  'a link with a network': {
    tool: 'ip',
    args: ['-batch', '-'],
    stdin: ['link add kube-ipvs0 type dummy', 'addr add 192.0.2.1/24 dev kube-ipvs0'],
  },
} as const;

async function startNode(): Promise<FakeNode> {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
  return node;
}

describe.each(Object.entries(strangers))('%s of kube-proxy’s name in which nothing is kube-proxy’s', (_, command) => {
  test('stays where --adopt takes what a kube-proxy left', async () => {
    const node = await startNode();
    const stdin = `${command.stdin.join('\n')}\n`;
    expect(await node.host.run({ ...command, stdin })).toMatchObject({ status: 0, stderr: '' });
    const there = node.dump();
    expect(await callApply(node.host, 'cleanup', '--adopt')).toMatchObject({ status: 0 });
    expect(node.dump()).toBe(there);
  });
});

test.each(['nftables', 'iptables', 'ipvs'])('what a kube-proxy of mode %s left goes whole', async (mode) => {
  const node = await startNode();
  await callApply(node.host, 'apply', `fixtures/dual-stack/expected-${mode}`);
  const rules = () => node.dump().replace(/^\/proc\/.*\n?/gm, '');
  for (const path of node.files.keys()) if (path.startsWith(records)) node.files.delete(path);
  await callApply(node.host, 'cleanup', '--adopt');
  expect(rules()).toBe((await startNode()).dump().replace(/^\/proc\/.*\n?/gm, ''));
});
