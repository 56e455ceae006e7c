import { describe, expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const bundle = (mode: string) => `fixtures/dual-stack/expected-${mode}`;
const ofIpvs =
  'sysctls that only IPVS mode needs stay at 1: net.ipv4.vs.conntrack, net.ipv4.vs.expire_nodest_conn, net.ipv4.vs.expire_quiescent_template';
const ofIptables = 'sysctls that only iptables mode needs stay at 1: net.ipv4.conf.all.route_localnet';

describe.each([
  ['ipvs', 'iptables', ofIpvs],
  ['ipvs', 'nftables', ofIpvs],
  ['iptables', 'ipvs', ofIptables],
  ['iptables', 'nftables', ofIptables],
  ['nftables', 'ipvs', undefined],
  ['nftables', 'iptables', undefined],
])('from %s to %s mode', (from, to, said) => {
  test('apply names the sysctls that the mode before has set, once', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundle(from));
    const first = await callApply(node.host, 'apply', bundle(to));
    const left = /^warning: (sysctls that .*)$/m;
    expect(left.exec(first.err)?.[1]).toBe(said);
    const again = await callApply(node.host, 'apply', 'fixtures/loadbalancer-source-ranges/expected-' + to);
    expect([again.status, again.err]).toEqual([0, expect.not.stringMatching(left)]);
  });
});

test.each(['iptables', 'nftables'])(
  'forwarding, which IPVS mode turned on, is to be kept: %s mode needs it',
  async (to) => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundle('ipvs'));
    expect((await callApply(node.host, 'apply', bundle(to))).err).toContain(
      `warning: net.ipv4.ip_forward stays at 1: keep it, because ${to} mode needs it and does not set it\n`,
    );
  },
);

test('a sysctl that was not 1 is not named', async () => {
  const node = createFakeNode();
  await callApply(node.host, 'apply', bundle('iptables'));
  node.files.set('/proc/sys/net/ipv4/conf/all/route_localnet', '0\n');
  expect((await callApply(node.host, 'apply', bundle('nftables'))).err).not.toContain('route_localnet');
});
