import { describe, expect, test } from 'vitest';
import { loadBundle } from '../../src/apply/open/load-bundle.ts';
import { decideOnNode, isMet, readNodeFacts, type NodeFacts } from '../../src/apply/plan/node-decisions.ts';
import { createFakeNode } from './fake-node.ts';

const settings = (await loadBundle('fixtures/dual-stack/expected-ipvs')).snapshot.settings;
const facts: NodeFacts = { kernel: [6, 1, 0], cores: 4, conntrackBuckets: 1_000_000 };

function decide(
  change: Partial<NodeFacts>,
  conntrack: Partial<typeof settings.conntrack> = {},
): Readonly<Record<string, string>> {
  const all = decideOnNode(
    { ...settings, conntrack: { ...settings.conntrack, ...conntrack } },
    { ...facts, ...change },
  );
  return Object.fromEntries(all.map(({ name, value }) => [name, value]));
}

describe('net.ipv4.vs.conn_reuse_mode', () => {
  const name = 'net.ipv4.vs.conn_reuse_mode';
  test.each([
    [[4, 0], undefined],
    [[4, 1], '0'],
    [[5, 8, 18], '0'],
    [[5, 9], undefined],
    [[5, 10], undefined],
    [[6, 1], undefined],
  ])('on kernel %j: %s', (kernel, value) => {
    expect(decide({ kernel })[name]).toBe(value);
  });

  test('is left alone in iptables mode', () => {
    expect(
      decideOnNode({ ...settings, mode: 'iptables' }, { ...facts, kernel: [5, 4] }).map((one) => one.name),
    ).not.toContain(name);
  });
});

describe('net.netfilter.nf_conntrack_max', () => {
  const name = 'net.netfilter.nf_conntrack_max';
  test.each([
    [{ cores: 8 }, {}, '262144'],
    [{ cores: 1 }, {}, '131072'],
    [{ cores: 4 }, {}, '131072'],
    [{ cores: 64 }, {}, '1048576'],
    [{ cores: 64 }, { min: 2_000_000 }, '1048576'],
    [{ cores: 1 }, { min: 0 }, '32768'],
    [{ cores: 8 }, { maxPerCore: 0 }, undefined],
  ])('%j %j: %s', (change, conntrack, value) => {
    expect(decide(change, conntrack)[name]).toBe(value);
  });

  test.each([
    ['1.36', undefined],
    ['1.37', true],
  ] as const)('by Kubernetes %s is only raised: %s', (release, onlyRaises) => {
    const decided = decideOnNode({ ...settings, release }, facts).find((one) => one.name === name);
    expect(decided?.onlyRaises).toBe(onlyRaises);
    expect(decided && ['131071', '131072', '131073', undefined].map((found) => isMet(decided, found))).toEqual([
      false,
      true,
      onlyRaises === true,
      false,
    ]);
  });

  test('brings the buckets with it where they are fewer than a quarter', () => {
    expect(decide({ cores: 8, conntrackBuckets: 65_535 })['nf_conntrack hashsize']).toBe('65536');
    expect(decide({ cores: 8, conntrackBuckets: 65_536 })['nf_conntrack hashsize']).toBeUndefined();
    expect(decide({ cores: 8, conntrackBuckets: undefined })['nf_conntrack hashsize']).toBeUndefined();
  });
});

test('timeouts of connection tracking come from the configuration, and 0 leaves them alone', () => {
  expect(decide({})).toMatchObject({
    'net.netfilter.nf_conntrack_tcp_timeout_established': '86400',
    'net.netfilter.nf_conntrack_tcp_timeout_close_wait': '3600',
  });
  const names = Object.keys(decide({}, { tcpEstablishedTimeout: 0, udpTimeout: 30, tcpBeLiberal: true }));
  expect(names).not.toContain('net.netfilter.nf_conntrack_tcp_timeout_established');
  expect(names).toContain('net.netfilter.nf_conntrack_udp_timeout');
  expect(names).toContain('net.netfilter.nf_conntrack_tcp_be_liberal');
});

test.each([
  ['0-3\n', 4],
  ['0\n', 1],
  ['0-1,4,6-7\n', 5],
])('processors that are online: %j are %i', async (online, cores) => {
  const { host, files } = createFakeNode();
  files.set('/sys/devices/system/cpu/online', online);
  expect(await readNodeFacts(host)).toEqual({ kernel: [6, 1, 0], cores, conntrackBuckets: undefined });
});
