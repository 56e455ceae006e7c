import { expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { formatRule } from '../../src/kernel/iptables/iptables.ts';

const toServices = '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES';
const ofNewConnections = `-m conntrack --ctstate NEW ${toServices}`;

/** The rules of chain OUTPUT that a dump shows in both tables. */
function outputRules(...rules: readonly string[]) {
  const { state } = readDump(new Map([['rules.txt', rules.map((rule) => `-A OUTPUT ${rule}\n`).join('')]]));
  const { nat, filter } = state.iptables.ipv4 ?? {};
  const rulesOf = (table: typeof nat) => (table?.get('OUTPUT')?.rules ?? []).map(formatRule);
  return { nat: rulesOf(nat), filter: rulesOf(filter) };
}

test('of two jumps from OUTPUT, that of table filter is for new connections only', () => {
  expect(outputRules(ofNewConnections, toServices)).toEqual({ nat: [toServices], filter: [ofNewConnections] });
});

test('declarations of chains without tables are of a part of iptables-save', () => {
  const chains = ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'].map((name) => `:${name} ACCEPT [1:60]\n`);
  const text = `${chains.join('')}:KUBE-SERVICES - [0:0]\n-A PREROUTING ${toServices}\n-A FORWARD ${ofNewConnections}\n`;
  const { state, coverage, doubts } = readDump(new Map([['rules.txt', text]]));
  expect(coverage.iptables.ipv4).toEqual([]);
  expect(Object.keys(state.iptables.ipv4 ?? {})).toEqual(['nat', 'filter']);
  expect(doubts).toEqual([]);
});

test.each([
  ['ipv4', 'node-v6-pool.txt', '-A KUBE-SERVICES -d 10.96.0.80/32 -m comment --comment "a fd00::1 b" -j ACCEPT'],
  ['ipv4', 'ip6.txt', '-A FORWARD -j REJECT --reject-with icmp-port-unreachable'],
  ['ipv6', 'iptables.txt', '-A KUBE-SERVICES ! -s fd00:96::80/128 -j ACCEPT'],
  ['ipv6', 'node-v6.txt', '-A FORWARD -j KUBE-FORWARD'],
  ['ipv4', 'node.txt', '-A FORWARD -m mac --mac-source 00:11:22:33:44:55 -j KUBE-FORWARD'],
])('rules are of %s in %s by their addresses, else by the name', (family, name, rule) => {
  expect(Object.keys(readDump(new Map([[name, `${rule}\n`]])).state.iptables)).toEqual([family]);
});

test('what cat -n, grep and a log put in front of rules is no part of them; addresses of sets have nothing in front', () => {
  const lines = ['*nat', ':PREROUTING ACCEPT [0:0]', `-A PREROUTING ${toServices}`, 'COMMIT'];
  for (const prefix of ['    12\t', '12:', 'node.txt:', 'a/node.txt:12:', '2024-03-04T10:00:00.123456789Z stdout F ']) {
    const { coverage, doubts } = readDump(new Map([['x', lines.map((line) => `${prefix}${line}\n`).join('')]]));
    expect([coverage.iptables.ipv4[0], doubts]).toEqual(['nat', []]);
  }
  const header = 'Name: KUBE-6-IPVS-IPS\nType: hash:ip\nHeader: family inet6 hashsize 1024 maxelem 65536\nMembers:\n';
  const { state, doubts } = readDump(new Map([['x', `${header}fd00:96::80\n2001::9\n`]]));
  expect([state.sets[0]?.entries.length, doubts]).toEqual([2, []]);
});

test('seen alone, either is of its table', () => {
  expect(outputRules(ofNewConnections)).toEqual({ nat: [], filter: [ofNewConnections] });
  expect(outputRules(toServices)).toEqual({ nat: [toServices], filter: [] });
});
