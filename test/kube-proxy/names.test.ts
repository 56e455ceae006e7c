import { expect, test } from 'vitest';
import { loadBundle } from '../../src/apply/open/load-bundle.ts';
import { families } from '../../src/kernel/address.ts';
import { isBuiltInChain, tableNames, type TableName } from '../../src/kernel/iptables/iptables.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { emptyState } from '../../src/kernel/state.ts';
import { classifyChain, mayKubeletMake, traceKubelet } from '../../src/kube-proxy/chains.ts';
import { weighEvidence, type Evidence } from '../../src/kube-proxy/evidence.ts';
import { parseSetName, setIds, setName, type SetId } from '../../src/kube-proxy/ipvs-objects.ts';
import { programs } from '../../src/kube-proxy/modes.ts';
import { compile } from '../../src/library/index.ts';
import { optionsOf } from '../library/fixture-options.ts';
import { listFixtures } from '../support/fixtures.ts';

const bundles = listFixtures().flatMap((fixture) =>
  fixture.modes
    .filter((mode) => programs(mode, 'iptables'))
    .map((mode) => ({ name: `${fixture.name}: ${mode}`, fixture, mode })),
);

const evidence = weighEvidence(emptyState);

test.each(bundles)('all that $name makes is certainly kube-proxy’s', async ({ name, fixture, mode }) => {
  const options = optionsOf(fixture);
  const bundle = options && compile({ ...options, proxyMode: mode }).bundle;
  const { state } = (await loadBundle(name, { read: async () => bundle?.files ?? new Map() })).snapshot;
  const {
    jump,
    chain: weighChain,
    set,
    link,
    virtualServer,
  } = weighEvidence(state, {
    known: state.virtualServers,
  });
  const strangers: string[] = [];
  let chains = 0;
  for (const family of families) {
    for (const table of tableNames) {
      for (const chain of state.iptables[family]?.[table]?.values() ?? []) {
        chains++;
        const grades = isBuiltInChain(table, chain.name)
          ? chain.rules.map((rule) => jump(table, chain.name, rule))
          : [weighChain(table, chain)];
        if (grades.some((grade) => grade !== 'certain')) strangers.push(`${family} ${table} ${chain.name}`);
      }
    }
  }
  expect(strangers).toEqual([]);
  expect(chains).toBeGreaterThan(0);
  expect(state.sets.filter((each) => set(each) !== 'certain')).toEqual([]);
  expect(state.links.filter((each) => link(each) !== 'certain')).toEqual([]);
  expect(state.virtualServers.filter((each) => virtualServer(each) !== 'certain')).toEqual([]);
});

test.each<[TableName, string, ReturnType<typeof classifyChain>]>([
  ['nat', 'KUBE-SVC-ABCDEFGHIJKLMN27', 'service'],
  ['nat', 'KUBE-SVL-ABCDEFGHIJKLMNOP', 'service'],
  ['nat', 'KUBE-SEP-ABCDEFGHIJKLMNOP', 'service'],
  ['nat', 'KUBE-EXT-ABCDEFGHIJKLMNOP', 'service'],
  ['nat', 'KUBE-FW-ABCDEFGHIJKLMNOP', 'service'],
  ['nat', 'KUBE-XLB-ABCDEFGHIJKLMNOP', 'service'],
  ['filter', 'KUBE-SVC-ABCDEFGHIJKLMNOP', undefined],
  ['nat', 'KUBE-SVC-abcdefghijklmnop', undefined],
  ['nat', 'KUBE-SVC-ABCDEFGHIJKLMNO', undefined],
  ['nat', 'KUBE-SVC-ABCDEFGHIJKLMNOPQ', undefined],
  ['nat', 'KUBE-SVC-ABCDEFGHIJKLMN01', undefined],
  ['nat', 'KUBE-SVC-ABCDEFGHIJKLMNOP\n', undefined],
  ['nat', 'XKUBE-SVC-ABCDEFGHIJKLMNOP', undefined],
  ['nat', 'KUBE-SERVICES', 'fixed'],
  ['filter', 'KUBE-SERVICES', 'fixed'],
  ['mangle', 'KUBE-SERVICES', undefined],
  ['filter', 'KUBE-MARK-MASQ', undefined],
  ['nat', 'KUBE-FORWARD', undefined],
  ['nat', 'KUBE-PROXY-CANARY', 'canary'],
  ['mangle', 'KUBE-PROXY-CANARY', 'canary'],
  ['raw', 'KUBE-PROXY-CANARY', undefined],
  ['filter', 'KUBE-FIREWALL', 'shared'],
  ['nat', 'KUBE-FIREWALL', undefined],
  ['filter', 'KUBE-KUBELET-CANARY', undefined],
  ['mangle', 'KUBE-IPTABLES-HINT', undefined],
  ['nat', 'KUBE-MARK-DROP', undefined],
  ['filter', 'KUBE-ROUTER-FORWARD', undefined],
  ['filter', 'KUBE-NWPLCY-ABCDEFGHIJKLMNOP', undefined],
  ['filter', 'KUBE-POD-FW-ABCDEFGHIJKLMNOP', undefined],
])('chain %s %j: %s', (table, name, kind) => {
  expect(classifyChain(table, name)).toBe(kind);
});

test.each<[string, SetId | undefined]>([
  ['KUBE-CLUSTER-IP', 'clusterIP'],
  ['KUBE-6-CLUSTER-IP', 'clusterIP'],
  ['KUBE-6-LOAD-BALANCER-SOURCE-CID', 'sourceCIDR'],
  ['KUBE-6-LOAD-BALANCER-SOURCE-CIDR', undefined],
  ['KUBE-CLUSTER-IPS', undefined],
  ['CLUSTER-IP', undefined],
  ['KUBE-SRC-2FAAHBRBTVYQ4EXA', undefined],
  ['kube-router-local-pods', undefined],
  ['inet6:kube-router-local-pods', undefined],
  ['cali40masq-ipam-pools', undefined],
])('set %s: %s', (name, set) => {
  expect(parseSetName(name)?.set).toBe(set);
});

test('a name of a set says which set of which family it is', () => {
  for (const set of setIds) {
    for (const family of families) expect(parseSetName(setName(set, family))).toEqual({ set, family });
  }
});

test.each<[string, Parameters<typeof evidence.set>[0], Evidence]>([
  ['as kube-proxy makes it', { name: 'KUBE-CLUSTER-IP', type: 'hash:ip,port', family: 'inet', entries: [] }, 'certain'],
  ['of another type', { name: 'KUBE-CLUSTER-IP', type: 'hash:ip', family: 'inet', entries: [] }, 'possible'],
  ['of another family', { name: 'KUBE-CLUSTER-IP', type: 'hash:ip,port', family: 'inet6', entries: [] }, 'possible'],
  ['of another name', { name: 'KUBE-CLUSTER-IPS', type: 'hash:ip,port', family: 'inet', entries: [] }, 'none'],
])('a set %s', (_, set, grade) => {
  expect(evidence.set(set)).toBe(grade);
});

test.each<[string, string, Evidence]>([
  ['KUBE-SVC-ABCDEFGHIJKLMN27', '-j ACCEPT', 'certain'],
  ['KUBE-SERVICES', '', 'certain'],
  ['KUBE-SERVICES', '-m comment --comment "default/web cluster IP" -j ACCEPT', 'certain'],
  ['KUBE-SERVICES', '-p tcp -j ACCEPT', 'possible'],
  ['KUBE-ROUTER-SERVICES', '', 'none'],
])('chain %s of nat with the rule %j: %s', (name, rule, grade) => {
  const line = rule === '' ? '' : `-A ${name} ${rule}\n`;
  const { tables } = parseIptablesSave(`*nat\n:${name} - [0:0]\n${line}COMMIT\n`);
  const chain = tables.nat?.get(name);
  if (!chain) throw new Error('the chain cannot be read');
  expect(evidence.chain('nat', chain)).toBe(grade);
});

test.each<[string, Parameters<typeof evidence.link>[0], Evidence]>([
  ['a dummy', { name: 'kube-ipvs0', kind: 'dummy', addresses: [] }, 'certain'],
  ['a bridge', { name: 'kube-ipvs0', kind: 'bridge', addresses: [] }, 'possible'],
  ['a dummy of another name', { name: 'dummy0', kind: 'dummy', addresses: [] }, 'none'],
])('link: %s', (_, link, grade) => {
  expect(evidence.link(link)).toBe(grade);
});

const portals = '-m comment --comment "kubernetes service portals"';
test.each<[TableName, string, Evidence]>([
  ['nat', `-A PREROUTING ${portals} -j KUBE-SERVICES`, 'certain'],
  ['filter', `-A FORWARD -m conntrack --ctstate NEW ${portals} -j KUBE-SERVICES`, 'certain'],
  ['filter', `-A FORWARD ${portals} -j KUBE-SERVICES`, 'certain'],
  ['filter', '-A INPUT -j KUBE-FIREWALL', 'certain'],
  ['filter', '-A INPUT -m comment --comment "mine" -j KUBE-FIREWALL', 'none'],
  ['filter', '-A FORWARD -j KUBE-FIREWALL', 'none'],
  ['nat', '-A PREROUTING -j KUBE-SERVICES', 'possible'],
  ['nat', `-A PREROUTING -i eth0 ${portals} -j KUBE-SERVICES`, 'none'],
  ['nat', `-A PREROUTING ${portals} -g KUBE-SERVICES`, 'none'],
  ['nat', `-A POSTROUTING ${portals} -j KUBE-SERVICES`, 'none'],
  ['filter', `-A FORWARD -m conntrack --ctstate NEW,INVALID ${portals} -j KUBE-SERVICES`, 'none'],
  ['filter', `-A FORWARD -m conntrack ! --ctstate NEW ${portals} -j KUBE-SERVICES`, 'none'],
])('jump in %s, %s: %s', (table, line, grade) => {
  const [, chain = '', target = ''] = /^-A (\S+) .* ?-[jg] (\S+)$/.exec(line) ?? [];
  const { tables } = parseIptablesSave(`*${table}\n:${chain} ACCEPT [0:0]\n:${target} - [0:0]\n${line}\nCOMMIT\n`);
  const [rule] = tables[table]?.get(chain)?.rules ?? [];
  if (!rule) throw new Error('the rule cannot be read');
  expect(evidence.jump(table, chain, rule)).toBe(grade);
});

test.each([
  ['*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n', 'current'],
  ['*filter\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n', 'current'],
  ['*nat\n:KUBE-MARK-DROP - [0:0]\nCOMMIT\n', 'none'],
  ['*nat\n:KUBE-MARK-DROP - [0:0]\n-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000\nCOMMIT\n', 'old'],
  ['*filter\n:KUBE-FIREWALL - [0:0]\nCOMMIT\n', 'none'],
] as const)('%j is the trace of a kubelet: %s', (text, trace) => {
  expect(traceKubelet(parseIptablesSave(text).tables)).toBe(trace);
  expect(mayKubeletMake(trace, 'filter', 'KUBE-FIREWALL')).toBe(trace !== 'none');
  expect(mayKubeletMake(trace, 'nat', 'KUBE-POSTROUTING')).toBe(trace === 'old');
  expect(mayKubeletMake(trace, 'nat', 'KUBE-SERVICES')).toBe(false);
});
