import { expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const note = (names: string) => `note    ${names} missing: kpc-apply cannot see what a kube-proxy of another mode left`;

function without(missing: readonly string[], host: Host): Host {
  return {
    ...host,
    run: async (command) => (missing.includes(command.tool) ? { kind: 'missing' } : host.run(command)),
  };
}

const all = ['iptables-save', 'ip6tables-save', 'ipset', 'ipvsadm', 'nft'];

test.each([
  ['nftables', note('iptables-save, ip6tables-save, ipset and ipvsadm are')],
  ['iptables', note('ipset, ipvsadm and nft are')],
  ['ipvs', note('nft is')],
])('%s mode: the tools that list what another mode makes', async (mode, text) => {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
  const { out } = await callApply(without(all, node.host), 'doctor', `fixtures/quickstart/expected-${mode}`);
  expect(out).toContain(`${text}\n`);
  const whole = await callApply(node.host, 'doctor', `fixtures/quickstart/expected-${mode}`);
  expect(whole.out).not.toContain('of another mode');
});

test('what is not in the kernel holds nothing', async () => {
  const node = createFakeNode();
  node.files.delete('/proc/net/ip_vs');
  node.files.delete('/sys/module/ip_set/parameters');
  node.files.set('/proc/modules', 'nf_conntrack 1 0 - Live\n');
  const { out } = await callApply(without(all, node.host), 'doctor', 'fixtures/quickstart/expected-iptables');
  expect(out).not.toContain('of another mode');
});
