import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadBundle } from '../../src/sides/load-bundle.ts';
import { families } from '../../src/kernel/family.ts';
import { isBuiltInChain, tableNames, type TableName } from '../../src/kernel/iptables/iptables.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { classifyChain, isKubeProxyJump, mayKubeletMake, traceKubelet } from '../../src/kube-proxy/chains.ts';
import { serviceLink } from '../../src/kube-proxy/service-link.ts';
import { isKubeProxySet } from '../../src/kube-proxy/ipvs-sets.ts';
import { recognizeVirtualServers } from '../../src/kube-proxy/virtual-servers.ts';

const bundles = readdirSync('fixtures')
  .flatMap((name) => ['ipvs', 'iptables'].map((mode) => join('fixtures', name, `expected-${mode}`)))
  .filter((folder) => existsSync(join(folder, 'manifest.json')));

test.each(bundles)('all that %s makes is recognised as kube-proxy’s', async (folder) => {
  const { state } = await loadBundle(folder);
  const strangers: string[] = [];
  let chains = 0;
  for (const family of families) {
    for (const table of tableNames) {
      for (const { name, rules } of state.iptables[family]?.[table]?.values() ?? []) {
        chains++;
        const isOne = isBuiltInChain(table, name)
          ? rules.every((rule) => isKubeProxyJump(rule, table, name))
          : classifyChain(table, name) !== undefined;
        if (!isOne) strangers.push(`${family} ${table} ${name}`);
      }
    }
  }
  expect(strangers).toEqual([]);
  expect(chains).toBeGreaterThan(0);
  expect(state.sets.map(({ name }) => name).filter((name) => !isKubeProxySet(name))).toEqual([]);
  expect(state.links.map(({ name }) => name).filter((name) => name !== serviceLink)).toEqual([]);
  const isKubeProxys = recognizeVirtualServers(state, state.virtualServers);
  expect(state.virtualServers.filter((server) => !isKubeProxys(server))).toEqual([]);
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

test.each([
  ['KUBE-CLUSTER-IP', true],
  ['KUBE-6-CLUSTER-IP', true],
  ['KUBE-6-LOAD-BALANCER-SOURCE-CID', true],
  ['KUBE-6-LOAD-BALANCER-SOURCE-CIDR', false],
  ['KUBE-CLUSTER-IPS', false],
  ['KUBE-SRC-2FAAHBRBTVYQ4EXA', false],
  ['kube-router-local-pods', false],
  ['inet6:kube-router-local-pods', false],
  ['cali40masq-ipam-pools', false],
])('set %s: %s', (name, isOne) => {
  expect(isKubeProxySet(name)).toBe(isOne);
});

const portals = '-m comment --comment "kubernetes service portals"';
test.each<[TableName, string, boolean]>([
  ['nat', `-A PREROUTING ${portals} -j KUBE-SERVICES`, true],
  ['filter', `-A FORWARD -m conntrack --ctstate NEW ${portals} -j KUBE-SERVICES`, true],
  ['filter', `-A FORWARD ${portals} -j KUBE-SERVICES`, true],
  ['filter', '-A INPUT -j KUBE-FIREWALL', true],
  ['filter', '-A INPUT -m comment --comment "mine" -j KUBE-FIREWALL', false],
  ['filter', '-A FORWARD -j KUBE-FIREWALL', false],
  ['nat', '-A PREROUTING -j KUBE-SERVICES', false],
  ['nat', `-A PREROUTING -i eth0 ${portals} -j KUBE-SERVICES`, false],
  ['nat', `-A PREROUTING ${portals} -g KUBE-SERVICES`, false],
  ['nat', `-A POSTROUTING ${portals} -j KUBE-SERVICES`, false],
  ['filter', `-A FORWARD -m conntrack --ctstate NEW,INVALID ${portals} -j KUBE-SERVICES`, false],
  ['filter', `-A FORWARD -m conntrack ! --ctstate NEW ${portals} -j KUBE-SERVICES`, false],
])('jump in %s, %s: %s', (table, line, isOne) => {
  const [, chain = '', target = ''] = /^-A (\S+) .* ?-[jg] (\S+)$/.exec(line) ?? [];
  const { tables } = parseIptablesSave(`*${table}\n:${chain} ACCEPT [0:0]\n:${target} - [0:0]\n${line}\nCOMMIT\n`);
  const [rule] = tables[table]?.get(chain)?.rules ?? [];
  if (!rule) throw new Error('the rule cannot be read');
  expect(isKubeProxyJump(rule, table, chain)).toBe(isOne);
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
