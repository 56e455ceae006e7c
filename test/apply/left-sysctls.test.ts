import { describe, expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const bundle = (mode: string) => `fixtures/dual-stack/expected-${mode}`;
const ofIpvs =
  'sysctls that only IPVS mode needs stay as they are: net.ipv4.vs.conntrack, net.ipv4.vs.expire_nodest_conn, net.ipv4.vs.expire_quiescent_template';
const ofIptables = 'sysctls that only iptables mode needs stay as they are: net.ipv4.conf.all.route_localnet';

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

describe('a rollback puts back a sysctl', () => {
  const path = '/proc/sys/net/ipv4/vs/conntrack';
  const value = (node: ReturnType<typeof createFakeNode>): string | undefined => node.files.get(path)?.trim();
  const nodeWith = (found: string): ReturnType<typeof createFakeNode> => {
    const node = createFakeNode();
    node.files.set(path, `${found}\n`);
    return node;
  };

  test('that apply set, and is still as it was set', async () => {
    const node = nodeWith('0');
    await callApply(node.host, 'apply', bundle('ipvs'));
    expect(value(node)).toBe('1');
    const run = await callApply(node.host, 'rollback');
    expect([run.status, value(node)]).toEqual([0, '0']);
    expect(run.err).not.toContain('stays');
  });

  test('but not one that the administrator has changed since, and says so', async () => {
    const node = nodeWith('0');
    await callApply(node.host, 'apply', bundle('ipvs'));
    node.files.set(path, '2\n');
    const words =
      'net.ipv4.vs.conntrack stays 2: kpc-apply changed it from 0 to 1, and something has changed it since\n';
    expect((await callApply(node.host, 'rollback', '--dry-run')).out).toContain(words);
    const run = await callApply(node.host, 'rollback');
    expect([run.status, value(node)]).toEqual([0, '2']);
    expect(run.err).toContain(`note: ${words}`);
  });

  test('nor one that apply never set', async () => {
    const node = nodeWith('1');
    await callApply(node.host, 'apply', bundle('ipvs'));
    node.files.set(path, '0\n');
    const run = await callApply(node.host, 'rollback');
    expect([run.status, value(node)]).toEqual([0, '0']);
  });

  test('over several applies, and again', async () => {
    const node = nodeWith('0');
    await callApply(node.host, 'apply', bundle('ipvs'));
    await callApply(node.host, 'apply', 'fixtures/nodeport/expected-ipvs');
    const { out } = await callApply(node.host, 'rollback', '--list');
    const first = Math.min(...[...out.matchAll(/^ {2}(\d+) /gm)].map(([, id]) => Number(id)));
    expect((await callApply(node.host, 'rollback', '--to', String(first))).status).toBe(0);
    expect(value(node)).toBe('0');
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect(value(node)).toBe('1');
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect(value(node)).toBe('0');
  });
});
