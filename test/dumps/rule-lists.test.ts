import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { ruleMeaning } from '../../src/kernel/iptables/iptables-meaning.ts';
import type { Tables } from '../../src/kernel/iptables/iptables.ts';
import { parseIptablesList } from '../../src/kernel/iptables/parse-list.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { runKpc } from '../support/run-kpc.ts';
import { natList, natSaved } from './listed-rules.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-lists-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
}

function meanings({ nat }: Tables) {
  return [...(nat?.values() ?? [])].map(({ name, policy, rules }) => [name, policy, rules.map(ruleMeaning)] as const);
}

test('a list of iptables -nvL says what iptables-save says', () => {
  const list = parseIptablesList(natList);
  expect([list.unread, list.whole]).toEqual([[], true]);
  expect(meanings({ nat: list.chains })).toEqual(meanings(parseIptablesSave(natSaved).tables));
});

const columns =
  'Chain OUTPUT (policy ACCEPT 0 packets, 0 bytes)\n pkts bytes target     prot opt in     out     source               destination\n';

describe('a row of a list is', () => {
  test.each([
    [
      'ACCEPT  tcp  --  !eth0  cali+  0.0.0.0/0  10.0.0.1  tcp spts:1:5 dpt:!80',
      '! -i eth0 -o cali+ -d 10.0.0.1 -p tcp -m tcp --sport 1:5 ! --dport 80 -j ACCEPT',
    ],
    [
      'MASQUERADE  0  --  *  *  0.0.0.0/0  0.0.0.0/0  match-set KUBE-LOOP-BACK dst,dst,src random-fully',
      '-m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE --random-fully',
    ],
    [
      'REJECT  0  --  *  *  0.0.0.0/0  0.0.0.0/0  ADDRTYPE match dst-type LOCAL mark match ! 0x4000/0x4000 ctstate NEW reject-with icmp-port-unreachable',
      '-m addrtype --dst-type LOCAL -m mark ! --mark 0x4000/0x4000 -m conntrack --ctstate NEW -j REJECT --reject-with icmp-port-unreachable',
    ],
    [
      'X  0  --  *  *  0.0.0.0/0  0.0.0.0/0  recent: CHECK seconds: 10800 reap name: X side: source mask: 255.255.255.255',
      '-m recent --rcheck --seconds 10800 --reap --name X --rsource -j X',
    ],
    [
      'X  0  --  *  *  0.0.0.0/0  0.0.0.0/0 [goto]  statistic mode random probability 0.50000000000',
      '-m statistic --mode random --probability 0.50000000000 -g X',
    ],
    ['MARK  0  --  *  *  0.0.0.0/0  0.0.0.0/0  MARK and 0xffffbfff', '-j MARK --set-xmark 0x0/0x4000'],
    ['       tcp      *  *  ::/0  fd00::1  tcp dpt:https', '-d fd00::1 -p tcp -m tcp --dport 443'],
  ])('%s', (row, saved) => {
    const list = parseIptablesList(`${columns}    1     2 ${row}\n`);
    expect(list.unread).toEqual([]);
    const [rule] = list.chains.get('OUTPUT')?.rules ?? [];
    const [same] = parseIptablesSave(`*nat\n-A OUTPUT ${saved}\nCOMMIT\n`).tables.nat?.get('OUTPUT')?.rules ?? [];
    expect(rule && ruleMeaning(rule)).toBe(same && ruleMeaning(same));
  });
});

const service = /^shop\/web:http +ClusterIP +10\.96\.7\.7 +80\/TCP +1$/m;

test('iptables-save counts more than a list of the same table, whichever comes first', async () => {
  const older = natList.replaceAll('10.244.1.1', '10.244.1.2');
  const { stdout } = await runKpc([
    'describe',
    '-q',
    write('a-list.txt', older),
    write('b-save.txt', natSaved),
    '--output',
    'json',
  ]);
  expect(stdout).toContain('10.244.1.1:8080');
  expect(stdout).not.toContain('10.244.1.2');
});

test('what a list does not show leaves a verdict unknown', async () => {
  const bare = natList
    .replace(/^ pkts bytes (target .*) in     out     (.*)$/gm, '$1 $2')
    .replace(/^ +\d+ +\d+ (\S.*?--) +\S+ +\S+ +(?=!?\d)/gm, '$1  ');
  const read = await runKpc(['describe', write('bare.txt', bare)]);
  expect(read.stdout).toMatch(service);
  expect(read.stderr).toMatch(/iptables -L .*-v .*\[dump-reading\]/);
  const ask = ['--from', '10.244.1.9', '--to', '10.96.7.7:80'];
  expect((await runKpc(['trace', '-q', write('bare.txt', bare), ...ask])).stdout).toContain('unknown: ');
  const strange = natList.replace(
    '/* shop/web:http cluster IP */ tcp dpt:80',
    '/* shop/web:http cluster IP */ tcp dpt:80 strange 5',
  );
  expect((await runKpc(['trace', '-q', write('nat.txt', strange), ...ask])).stdout).toContain('kpc cannot read a rule');
});

test('a list that is cut off is not taken for whole', async () => {
  const cut = natList.slice(0, natList.indexOf('Chain KUBE-SVC-WEB'));
  const { stderr } = await runKpc(['describe', write('cut.txt', cut)]);
  expect(stderr).toMatch(/warning: .*iptables -L .*\[unread-file\]/);
});

test('addresses by name are one warning', async () => {
  const named = natList.replaceAll('10.96.7.7', 'web.example.com');
  const { stderr } = await runKpc(['describe', write('named.txt', named)]);
  expect(stderr).toMatch(/warning: .*-n\b.*\b1 .*\[unread-line\]/);
});

test.each([
  ['KUBE-SERVICES', 'KUBE-SVC-67NZLRHBNDSAWJRO', '10.96.7.7', '/* shop/web:http cluster IP */ tcp dpt:80', 'nat'],
  ['KUBE-NODEPORTS', 'KUBE-EXT-67NZLRHBNDSAWJRO', '0.0.0.0/0', '/* shop/web:http */ tcp dpt:30080', 'nat'],
  ['KUBE-SERVICES', 'REJECT', '10.96.7.7', '/* shop/web:http has no endpoints */ tcp dpt:80', 'filter'],
] as const)(
  'a list of one chain is of the table that its jumps name: %s, %s',
  async (chain, target, to, match, table) => {
    const row = `    0     0 ${target}  6    --  *      *       0.0.0.0/0            ${to}           ${match}\n`;
    const titles = ' pkts bytes target     prot opt in     out     source               destination         \n';
    const file = write('one-chain.txt', `Chain ${chain} (2 references)\n${titles}${row}`);
    const run = await runKpc(['describe', file, '--output', 'json']);
    const { findings } = JSON.parse(run.stdout) as {
      findings: readonly { code: string; arguments: unknown }[];
    };
    expect(findings).toContainEqual(
      expect.objectContaining({
        code: 'dump-reading',
        arguments: expect.objectContaining({ tables: [table] }) as unknown,
      }),
    );
    expect(findings.map(({ code }) => code)).not.toContain('unread-file');
    expect((await runKpc(['describe', file])).stdout).toMatch(/^shop\/web:http /m);
  },
);

describe('a list beside iptables-save', () => {
  const saved = '*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\nCOMMIT\n';
  const titles = ' pkts bytes target     prot opt in     out     source               destination\n';
  const raw = `Chain PREROUTING (policy ACCEPT 0 packets, 0 bytes)\n${titles}   12   720 DROP       6    --  *      *       0.0.0.0/0            10.96.7.1\n\nChain OUTPUT (policy ACCEPT 0 packets, 0 bytes)\n${titles}`;
  const filter = (rows: string): string =>
    `Chain INPUT (policy ACCEPT 0 packets, 0 bytes)\n${titles}\nChain FORWARD (policy ACCEPT 0 packets, 0 bytes)\n${titles}${rows}`;
  const read = (text: string) => readDump(new Map([['node.txt', text]]));

  test.each([
    ['after it', `${saved}$ iptables -t raw -nvL\n${raw}`],
    ['before it', `$ iptables -t raw -nvL\n${raw}${saved}`],
    ['without commands', raw + saved],
  ])('shows a table that iptables-save does not, %s', (_where, text) => {
    const { state, coverage, faults } = read(text);
    expect(state.iptables.ipv4?.raw?.get('PREROUTING')?.rules).toHaveLength(1);
    expect(coverage.iptables.ipv4).toEqual(expect.arrayContaining(['nat', 'filter', 'raw']));
    expect(faults).toEqual([]);
  });

  test('that differs is another listing', () => {
    expect(read(`${saved}$ iptables -nvL\n${filter('')}`).faults).toEqual([]);
    const row = '    1    60 DROP       0    --  *      *       0.0.0.0/0            0.0.0.0/0\n';
    const { state, faults } = read(`${saved}$ iptables -nvL\n${filter(row)}`);
    expect(state.iptables.ipv4?.filter?.get('FORWARD')?.rules).toEqual([]);
    expect(faults).toMatchObject([{ code: 'second-listing', arguments: { differences: ['chain FORWARD (filter)'] } }]);
  });
});
