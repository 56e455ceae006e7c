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

test('seen alone, either is of its table', () => {
  expect(outputRules(ofNewConnections)).toEqual({ nat: [], filter: [ofNewConnections] });
  expect(outputRules(toServices)).toEqual({ nat: [toServices], filter: [] });
});
