// A fact that a chain or map shows holds only if a rule leads there.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { diffSides } from '../../src/ask/diff/diff-sides.ts';
import { readDumped } from '../../src/ask/describe/read-dumped.ts';
import { isStateFile, stateFiles, type StateFileName } from '../../src/bundle/state-files.ts';
import { coverAll } from '../../src/dumps/coverage.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { emptyState, type KernelState } from '../../src/kernel/state.ts';
import { findLackedChain } from '../../src/kube-proxy/nft-table.ts';
import { findOwners } from '../../src/kube-proxy/owners.ts';
import { decompile } from '../../src/snapshot/decompile.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import { readScenarioStates, recordedRelease } from '../kube-proxy/cases.mjs';
import { runKpc } from '../support/run-kpc.ts';

const fixtures = new URL('../../fixtures/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, fixtures), 'utf8');
const builtIn = ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'].map((name) => `:${name} ACCEPT [0:0]\n`);
const savedOf = (fixture: string): string =>
  read(`${fixture}/expected-iptables/iptables.restore`)
    .replaceAll(/^-I (\w+) \d+/gm, '-A $1')
    .replace('*nat\n', ['*nat\n', ...builtIn.toSpliced(2, 1)].join(''))
    .replace('*filter\n', ['*filter\n', ...builtIn.slice(1, 4)].join(''));
const iptables = savedOf('loadbalancer-source-ranges');
const nftables = read('loadbalancer-source-ranges/expected-nftables/nftables.nft');
const ipvs = ['iptables-save', 'ipset-save', 'ipvsadm-save']
  .map((file) => read(`dumps/kube-proxy-ipvs-loadbalancer-source-ranges/${file}`))
  .join('\n');

function dumpOf(text: string): DumpedSnapshot {
  const { state, coverage, doubts } = readDump(new Map([['node.txt', text]]));
  return new DumpedSnapshot({ name: 'node.txt', state: () => state, coverage, doubts });
}

function factsOf(text: string) {
  const dump = dumpOf(text);
  return {
    ranges: dump.ports.flatMap(({ sourceRanges = [] }) => sourceRanges.map((range) => range.text)),
    nodePorts: dump.ports.flatMap(({ nodePort }) => nodePort || []),
    notes: readDumped(dump).notes.flatMap((note) =>
      note.note === 'unreached' ? [`${note.from.join(' ')} → ${'name' in note.to ? note.to.name : note.to.kind}`] : [],
    ),
  };
}

const without = (text: string, lines: RegExp): string => {
  const rest = text.replaceAll(lines, '');
  expect(rest).not.toBe(text);
  return rest;
};

describe.each([
  ['iptables', iptables],
  ['ipvs', ipvs],
  ['nftables', nftables],
])('%s', (_mode, text) => {
  test('whole, it shows source ranges and node ports', () => {
    const { ranges, nodePorts, notes } = factsOf(text);
    expect(ranges).not.toEqual([]);
    expect(nodePorts).not.toEqual([]);
    expect(notes).toEqual([]);
  });
});

test.each([
  ['the jumps to the firewall', iptables, /^.* -j KUBE-PROXY-FIREWALL\n/gm, ['INPUT FORWARD → KUBE-PROXY-FIREWALL']],
  ['the rule that drops', iptables, /^-A KUBE-PROXY-FIREWALL .*\n/gm, []],
  ['the jump to the firewall', ipvs, /^-A INPUT .* -j KUBE-PROXY-FIREWALL\n/gm, ['INPUT → KUBE-PROXY-FIREWALL']],
  [
    'the rule for load balancers',
    ipvs,
    /^-A KUBE-PROXY-FIREWALL .*\n/gm,
    ['KUBE-PROXY-FIREWALL → KUBE-SOURCE-RANGES-FIREWALL'],
  ],
  ['the rule that drops', ipvs, /^-A KUBE-SOURCE-RANGES-FIREWALL -j DROP\n/gm, ['KUBE-SOURCE-RANGES-FIREWALL → drop']],
  ['the rule for load balancers', nftables, /^.* vmap @firewall-ips\n/gm, ['firewall-check → firewall-ips']],
  [
    "the rule for clients outside, but with the node's",
    nftables,
    /(?<=chain filter-prerouting-pre-dnat \{\n.*\n)\t\tct state new jump firewall-check\n/g,
    ['filter-prerouting-pre-dnat → firewall-check'],
  ],
  ['the rule that drops', nftables, /^\t\tip saddr != .* drop\n/gm, []],
  ['the element of the map', nftables, /^.*goto firewall-.*\n/gm, []],
] as const)('without %s, source ranges are not enforced', (_title, text, lines, notes) => {
  const changed = without(text, lines);
  expect(factsOf(changed)).toMatchObject({ ranges: [], notes });
  expect(dumpOf(changed).ports.map(({ hidesSourceRanges }) => hidesSourceRanges)).not.toContain(true);
});

test.each([
  ['all clients', '', { ranges: [], isHidden: [undefined] }],
  ['one range', '-s 192.0.2.0/24 ', { ranges: ['192.0.2.0/24'], isHidden: [undefined] }],
  ['a masked range', '-s x.x.x.x/24 ', { ranges: [], isHidden: [true] }],
])('kube-proxy up to 1.24 admits %s before it drops', (_title, source, { ranges, isHidden }) => {
  const chain = `$1 ${source}-j KUBE-EXT-ROK5ZQ3XTT5C4SQU\n$1 -j KUBE-MARK-DROP\n`;
  const text = without(iptables, /^(?!-A KUBE-FW).*KUBE-PROXY-FIREWALL.*\n/gm)
    .replaceAll(/^-A KUBE-FW-.* -j .*\n/gm, '')
    .replace(/^(-A KUBE-FW-\w+) .*\n/m, chain);
  expect(factsOf(text).ranges).toEqual(ranges);
  expect(dumpOf(text).ports.map(({ hidesSourceRanges }) => hidesSourceRanges)).toEqual(isHidden);
});

const nodePortRules = [
  ['iptables', iptables, /^-A KUBE-SERVICES .* -j KUBE-NODEPORTS\n/gm, 'KUBE-SERVICES → KUBE-NODEPORTS'],
  ['nftables', nftables, /^.* vmap @service-nodeports\n/gm, 'services → service-nodeports'],
  ['nftables', nftables, /(?<=set nodeport-ips \{[^}]*)elements = \{[^}]*\}/g, 'nodeport-ips → service-nodeports'],
] as const;

test.each(nodePortRules)('%s: without the rule for node ports, none is served', (_mode, text, lines, note) => {
  expect(factsOf(without(text, lines))).toMatchObject({ nodePorts: [], notes: [note] });
});

describe('dumps of two modes', () => {
  const reasonsOf = (from: string, to: string): readonly string[] =>
    diffSides(dumpOf(from), dumpOf(to), { foreign: false }).servicePorts.flatMap(({ reasons }) =>
      reasons.map((reason) => ('field' in reason ? reason.field : reason.kind)),
    );

  test('differ in what nothing enforces or serves, and in where node ports listen', () => {
    expect(reasonsOf(iptables, nftables)).toEqual(['node-port']);
    expect(reasonsOf(iptables, without(nftables, /^.* vmap @firewall-ips\n/gm))).toContain('loadBalancerSourceRanges');
    for (const [, text, lines] of nodePortRules) {
      const other = text === iptables ? nftables : iptables;
      expect(reasonsOf(other, without(text, lines))).toContain('nodePort');
    }
  });
});

const flush = (table: string, lines = /^-A .*\n/gm): string => {
  const [before = '', rest = ''] = iptables.split(`*${table}\n`);
  return `${before}*${table}\n${rest.replace(/[^]*?COMMIT/, (own) => own.replaceAll(lines, ''))}`;
};

const lostOf = (text: string): readonly string[] =>
  readDumped(dumpOf(text)).notes.flatMap((each) =>
    each.note === 'lost-jump' ? [`${each.effect}: ${each.from.join(' ')} → ${each.table} ${each.to}`] : [],
  );

const lostOfNat = [
  'services: PREROUTING OUTPUT → nat KUBE-SERVICES',
  'masquerading: POSTROUTING → nat KUBE-POSTROUTING',
];
const lostOfFilter = [
  'rules: INPUT FORWARD OUTPUT → filter KUBE-PROXY-FIREWALL',
  'rules: INPUT → filter KUBE-NODEPORTS',
  'rules: INPUT FORWARD → filter KUBE-EXTERNAL-SERVICES',
  'rules: FORWARD → filter KUBE-FORWARD',
  'rules: FORWARD OUTPUT → filter KUBE-SERVICES',
];
const lostOfNft = [
  'rules: filter-prerouting-pre-dnat filter-output-pre-dnat → kube-proxy firewall-check',
  'rules: filter-input → kube-proxy nodeport-endpoints-check',
  'rules: filter-input filter-forward filter-output → kube-proxy service-endpoints-check',
  'rules: filter-forward filter-output → kube-proxy cluster-ips-check',
  'services: nat-prerouting nat-output → kube-proxy services',
  'masquerading: nat-postrouting → kube-proxy masquerading',
];

const beforeDnat = 'type filter hook output priority -110; policy accept;';
/** The base chains of kube-proxy before 1.33. */
const olderNftables = nftables
  .replaceAll('filter-prerouting-pre-dnat', 'filter-prerouting')
  .replace('chain filter-output {', 'chain filter-output-post-dnat {')
  .replace('hook output priority 0;', 'hook output priority -90;')
  .replaceAll('filter-output-pre-dnat', 'filter-output')
  .replace(/(chain filter-output-post-dnat \{\n.*\n)(\t\tct state new jump service-endpoints-check\n)/, '$1')
  .replace(`${beforeDnat}\n`, `${beforeDnat}\n\t\tct state new jump service-endpoints-check\n`);

test('a listing of the base chains before 1.33 is whole', () => {
  const [table] = dumpOf(olderNftables).state.nftables;
  expect(table?.chains.has('filter-output-pre-dnat')).toBe(false);
  expect(table && findLackedChain(table)).toBeUndefined();
});

test.each([
  ['nothing', iptables, []],
  ['nothing of the base chains before 1.33', olderNftables, []],
  [
    'a jump of the base chains before 1.33',
    without(olderNftables, /^.* jump service-endpoints-check\n(?=.* jump firewall-check)/gm),
    ['rules: filter-output → kube-proxy service-endpoints-check'],
  ],
  ['the rules of table nat', flush('nat'), lostOfNat],
  ['the rules and chains of table nat', flush('nat', /^(?:-A|:KUBE-).*\n/gm), lostOfNat],
  ['the rules of table filter', flush('filter'), lostOfFilter],
  ['one jump', flush('filter', /^-A FORWARD .* -j KUBE-FORWARD\n/gm), ['rules: FORWARD → filter KUBE-FORWARD']],
  ['jumps that older releases lack, too,', flush('filter', /^.*(?:KUBE-PROXY-FIREWALL|FORWARD .*KUBE-EXT).*\n/gm), []],
  ['the rules of its own table', nftables.replaceAll(/^\t\t(?!type ).*\n/gm, ''), lostOfNft],
])('without %s, each chain that no hook jumps to is named', (_title, text, lost) => {
  expect(lostOf(text)).toEqual(lost);
});

test('a trace beside manifests names the jump that went with all rules', async () => {
  const sides = ['-', '-f', new URL('loadbalancer-source-ranges/svc.yaml', fixtures).pathname];
  const run = await runKpc(['trace', '-q', ...sides, '--from', '10.244.1.9', '--to', '10.96.31.9:443'], {
    stdin: flush('nat'),
  });
  expect(run.stdout, run.stderr).toContain('nothing in PREROUTING leads to KUBE-SERVICES');
});

test('a trace to a node port names the rule that is missing', async () => {
  const stdin = without(nftables, /^.* vmap @service-nodeports\n/gm);
  const run = await runKpc(['trace', '-q', '-', '--from', '198.51.100.9', '--to', '192.168.50.11:31900'], { stdin });
  expect(run.stdout).toContain('service-nodeports is on the way to the endpoints, but nothing in services leads to');
});

test.each([
  ['iptables', iptables, /^-A KUBE-SVC-.*\n/gm, 'KUBE-SVC-'],
  ['nftables', nftables, /^\t\tmeta l4proto tcp dnat .*\n/gm, 'service-'],
])('%s: a trace names the chain whose rules are missing', async (_mode, text, rules, chain) => {
  const stdin = without(text, rules);
  const run = await runKpc(['trace', '-q', '-', '--from', '198.51.100.9', '--to', '192.168.50.11:31900'], { stdin });
  expect(run.stdout).toMatch(new RegExp(`nothing in ${chain}\\S+ leads to an endpoint`));
});

test.each([
  ['iptables', iptables, '-s 203.0.113.128/25'],
  ['ipvs', ipvs, '12.12.12.12,tcp:80,203.0.113.0/24'],
  ['nftables', nftables, '203.0.113.128/25'],
])('%s: a range of one address is a network, however a tool prints it', (_mode, text, range) => {
  const one = range.replace(/203\S+$/, (network) => network.replace(/[^,]+$/, '203.0.113.7'));
  expect(factsOf(text.replace(range, one)).ranges).toContain('203.0.113.7/32');
});

const sticky = read('session-affinity/expected-nftables/nftables.nft');

test.each([
  ['iptables', iptables, /^-A KUBE-SEP-4VWHTR2FUCURI7GF .* -j DNAT .*\n/gm, '10.244.1.33:8443'],
  ['nftables', sticky, /^\t\tmeta l4proto tcp dnat to 10\.244\.1\.20:8080\n/gm, '10.244.1.20:8080'],
])('%s: an endpoint whose rule is gone is none, and its chain is named', (_mode, text, rule, endpoint) => {
  const found = (each: string) => {
    const dump = dumpOf(each);
    const notes = readDumped(dump).notes.flatMap((note) => (note.note === 'endless' ? [note.to] : []));
    return { endpoints: dump.ports.flatMap(({ endpoints = [] }) => endpoints.map(({ label }) => label)), notes };
  };
  const { endpoints } = found(text);
  expect(endpoints).toContain(endpoint);
  const rest = endpoints.filter((label) => label !== endpoint);
  expect(found(without(text, rule))).toEqual({ endpoints: rest, notes: [endpoint] });
});

test('kube-proxy itself leaves out no such rule, except for node ports that it serves at no address', () => {
  const missing = Object.values(readScenarioStates()).flatMap((states) => {
    const parts = (states[recordedRelease] ?? '').split(/^==> (.*) <==\n/m).slice(1);
    const state = parts.reduce((known, name, i): KernelState => {
      if (i % 2 === 1 || !isStateFile(name)) return known;
      return { ...known, ...stateFiles[name as StateFileName].read(parts[i + 1] ?? '', known) };
    }, emptyState);
    const { ports, unreached } = decompile(state, findOwners([state]), () => 'certain', coverAll());
    return [...ports.flatMap(({ endless }) => endless), ...unreached.filter(({ facts }) => facts !== 'nodePorts')];
  });
  expect(missing).toEqual([]);
});

test.each([
  [
    'iptables',
    savedOf('loadbalancer-local'),
    /^-A KUBE-EXT-3VBGCRIV4MDO2DCY -j KUBE-SVL-.*\n/gm,
    /^KUBE-EXT-\S+ KUBE-SVL-/,
  ],
  [
    'nftables',
    read('loadbalancer-local/expected-nftables/nftables.nft'),
    /^\t\tgoto local-UZIZZOKK-.*\n/gm,
    /^external-\S+ local-/,
  ],
  ['nftables with session affinity', sticky, /^\t\tnumgen random mod 2 .*\n/gm, /^service-\S+ undefined$/],
])('%s: a chain that leads only some or known clients on is named', (_mode, text, rule, chain) => {
  const found = (each: string) =>
    readDumped(dumpOf(each)).notes.flatMap((note) => (note.note === 'endless' ? [`${note.from} ${note.to}`] : []));
  expect(found(text)).toEqual([]);
  expect(found(without(text, rule))).toEqual([expect.stringMatching(chain)]);
});

test('without the rule for addresses, a trace names it, and not the policy', async () => {
  const stdin = without(nftables, /^.* vmap @service-ips\n/gm);
  expect(factsOf(stdin).notes).toEqual(['services → service-ips']);
  const run = await runKpc(['trace', '-q', '-', '--from', '203.0.113.200', '--to', '198.51.100.90:443'], { stdin });
  expect(run.stdout).toContain('service-ips is on the way to the endpoints, but nothing in services leads to');
});

test('sets and maps without the lines of their types are read by their keys', () => {
  expect(factsOf(without(nftables, /^\t\ttype [^;\n]*\n/gm))).toEqual(factsOf(nftables));
});

test("one Service's file of a golden is no dump of a node", () => {
  const { faults, files } = readDump(new Map([['web.txt', `==> services.json <==\n{}\n\n==> nft <==\n${nftables}`]]));
  expect(files).toEqual([]);
  expect(faults).toMatchObject([{ code: 'unread-output' }]);
});
