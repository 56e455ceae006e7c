// A line that is not read may stand for any others, so a listing with such a line proves no absence.
import { describe, expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { runKpc } from '../support/run-kpc.ts';
import { natTable } from './pasted.ts';

const routes = '10.244.1.0/24 dev cni0 scope link\n192.168.50.0/24 dev eth0 scope link src 192.168.50.11\n';
const links =
  '1: lo: <UP>\n    inet 127.0.0.1/8 scope host lo\n2: eth0: <UP>\n    inet 192.168.50.11/24 scope global eth0\n';
const table = 'table ip kube-proxy {\n\tchain services {\n\t\tip daddr @x drop\n\t}\n}\n';
const marks = [
  '(200 more)',
  '[output truncated]',
  '[redacted]',
  '# ... 200 more',
  '# removed the others',
  '--snip--',
  '(other lines removed)',
  'default via x.x.x.x dev eth0',
  '--More--default via 192.168.50.1 dev eth0',
  'efault via 192.168.50.1 dev eth0',
];

const read = (text: string) => readDump(new Map([['node.txt', text]]));

describe.each(marks)('%s', (mark) => {
  const afterFirst = (text: string): string => text.replace('\n', `\n${mark}\n`);

  test.each([
    ['in the place of the first line', `$ ip route\n${mark}\n${routes}`],
    ['above the first line', mark + '\n' + routes],
    ['in the middle', `$ ip route\n${afterFirst(routes)}`],
    ['at the end', `$ ip route\n${routes}${mark}\n$ date\n`],
  ])('%s of routes', (_where, text) => {
    expect(read(text).routes.ipv4?.tables?.has('main')).toBe(false);
    expect(read(text).routes.ipv4?.routes).toHaveLength(2);
  });

  // Below a link and in a chain, words may be ip's and nft's.
  test.skipIf(/via/.test(mark))('in the other kinds of listings', () => {
    expect(read(`$ ip addr\n${links}    ${mark}\n`).coverage.allAddresses).toBeUndefined();
    expect(read(`$ ip addr\n${links}${mark}\n`).coverage.allAddresses).toBeUndefined();
    expect(read(natTable.replace('-A PREROUTING', `${mark}\n-A PREROUTING`)).coverage.iptables.ipv4).not.toContain(
      'nat',
    );
    expect(read(`${natTable}${mark}\n`).coverage.iptables.ipv4).toEqual([]);
    expect(read(table.replace('\t\tip', `\t\t${mark}\n\t\tip`)).doubts.map(({ kind }) => kind)).toContain('unread');
    expect(read(`$ nft list ruleset\n${table}${mark}\n`).coverage.lacksTables).toBe(true);
  });
});

test.each(['', '\n', '$ \n', '# Completed on Sat Sep 23 20:25:37 2023\n', '\nThat is all\n', '===== next =====\n'])(
  'a listing is whole before %j',
  (end) => {
    expect(read(`$ ip route\n${routes}${end}`).routes.ipv4?.tables?.has('main')).toBe(true);
    expect(read(`$ iptables-save\n${natTable}${end}`).coverage.iptables.ipv4).toContain('nat');
    expect(read(`$ ip addr\n${links}${end}`).coverage.allAddresses).toContain('ipv4');
  },
);

test('a prompt above the first line leaves that line whole', () => {
  const { state, routes: known } = read(`root@worker-1:~# default via 192.168.50.1 dev eth0\n${routes}${links}`);
  expect(known.ipv4?.routes).toHaveLength(3);
  expect(state.links).toHaveLength(2);
});

test('an answer is not firm about what an omitted line may show', async () => {
  const ask = async (mark: string) => {
    const stdin = `${natTable.replace(/^# Completed/m, '*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n# Completed')}$ ip addr\n${links}$ ip route\n${mark}${routes}`;
    return (await runKpc(['trace', '-', '--from', 'node', '--to', '203.0.113.9:80'], { stdin })).stdout;
  };
  expect(await ask('')).toContain('refused');
  expect(await ask('(3 more)\n')).not.toContain('refused');
});

const captures = /(?<=^-A KUBE-SERVICES -d )(10\.96\.7\.7\/32)( .*) -m tcp --dport 80/m;

test.each([
  ['its port, as iptables up to 1.8.7 prints it', '$1$2', true],
  ['its address, masked', 'x.x.x.x/32$2 -m tcp --dport 80', false],
])('a rule of kube-proxy without %s is unread', (_title, printed, lacksPorts) => {
  const faultsOf = (text: string) =>
    read(text).faults.flatMap(({ code, arguments: details }) => (code === 'dump-reading' ? details : []));
  expect(faultsOf(natTable)).toEqual([]);
  const ofSet = '-A KUBE-SERVICES -p tcp -m tcp -m set --match-set KUBE-NODE-PORT-TCP dst -j KUBE-MARK-MASQ';
  expect(faultsOf(natTable.replace('COMMIT', `${ofSet}\nCOMMIT`))).toEqual([]);
  expect(faultsOf(natTable.replace(captures, printed))).toEqual([
    { problem: 'unread-rules', table: 'nat', chain: 'KUBE-SERVICES', rule: 1, rules: 1, lacksPorts },
  ]);
});

test('no answer is firm about a rule without its port', async () => {
  const ask = async (text: string) => {
    const stdin = `${text}*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n`;
    const args = ['trace', '-', '--from', '10.244.1.9', '--to', '10.96.7.7:443', '--output', 'json'];
    return (await runKpc(args, { stdin })).stdout;
  };
  expect(await ask(natTable)).not.toContain('unread-rule');
  expect(await ask(natTable.replace(captures, '$1$2'))).toContain('"kind": "unread-rule"');
});

test('kpc test --init names the missing listings beside what no listing settles', async () => {
  const masked = natTable.replace('-A KUBE-SERVICES', '-A KUBE-SERVICES -d x.x.x.x/32 -j DROP\n-A KUBE-SERVICES');
  const { stderr } = await runKpc(['test', '--init', '-'], { stdin: masked });
  expect(stderr).toContain('help: add the output of iptables-save');
});
