import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { routeKey } from '../../src/kernel/route/route.ts';
import { open } from '../../src/library/index.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const titles = `Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
`;
const server = 'TCP  10.109.131.66:6379 rr\n';
const real = '  -> 172.31.3.224:6379            Masq    1      0          0\n';
const rules = (endpoint: string) => `*nat
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/a cluster IP" -m tcp --dport 443 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "default/a -> ${endpoint}" -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m tcp -j DNAT --to-destination ${endpoint}
COMMIT
`;
const set = (address: string) =>
  `create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536\nadd KUBE-CLUSTER-IP ${address},tcp:80\n`;
const link = (address: string) => `2: eth0: <BROADCAST,UP> mtu 1500\n    inet ${address}/24 scope global eth0\n`;
const table = (endpoint: string) => `table ip kube-proxy {
	chain service-SUSTUHLJ-default/web/tcp/http {
		meta l4proto tcp dnat to ${endpoint}
	}
}
`;

const route = '10.244.2.0/24 via 192.168.50.12 dev eth0\n10.244.1.0/24 dev cni0 scope link\n';

test.for([['blackhole 10.244.2.0/24\n'], ['']])(
  'routes pasted without their command: the first listing counts%#',
  ([more]) => {
    const again = route.replace('.12 ', '.13 ') + more;
    const hops = (text: string) => open({ 'ip-route': text }).snapshots[0]?.routes.ipv4?.routes.map(routeKey);
    expect(hops(route + again)).toEqual(hops(route));
    expect(hops(again + route)).toEqual(hops(again));
    expect(hops(route + route)).toEqual(hops(route));
    expect(open({ 'ip-route': route + again }).diagnostics.map(({ code }) => code)).toContain('second-listing');
  },
);

test.for([
  ['an appended route', 'default via 192.168.50.1 dev eth0\ndefault via 192.168.50.2 dev eth0\n'],
  [
    'a broadcast address that is local',
    'broadcast 10.244.0.0 dev eth0 table local\nlocal 10.244.0.0 dev eth0 table local\n',
  ],
] as const)('one command prints one listing: %s', ([, more]) => {
  const { snapshots, diagnostics } = open({ 'ip-route': `$ ip route show table all\n${more}${route}` });
  expect(snapshots[0]?.routes.ipv4?.routes.map(({ destination }) => destination.text)).toContain('10.244.1.0/24');
  expect(diagnostics.map(({ code }) => code)).not.toContain('second-listing');
});

describe('two listings of routes or of rules that differ', () => {
  const more = 'default via 192.168.50.1 dev eth0\n';
  const routingRules = '0:\tfrom all lookup local\n32766:\tfrom all lookup main\n';
  const six =
    '::1 dev lo proto kernel metric 256 pref medium\nfd00::/64 dev eth0 proto kernel metric 256 pref medium\n';
  const json = (text: string): string =>
    JSON.stringify(
      text
        .trim()
        .split('\n')
        .map((line) => ({ dst: line.split(' ')[0], dev: line.split('dev ')[1]?.split(' ')[0], flags: [] })),
    );
  const links = '10.244.1.0/24 dev cni0\n10.244.2.0/24 dev eth0\n';
  test.each([
    ['ip route', route, more + route],
    ['ip -6 route', six, `default via fe80::1 dev eth0 metric 1024 pref medium\n${six}`],
    ['ip -j route', json(links), json(`10.244.3.0/24 dev eth0\n${links}`)],
    ['ip rule', routingRules, `${routingRules}32767:\tfrom all lookup default\n`],
    ['ip rule', routingRules, routingRules.replace('32766', '100:\tfrom all lookup 100\n32766')],
  ])('%s: the first one counts', (command, one, other) => {
    const read = (text: string) => {
      const { snapshots, diagnostics } = open({ 'node.txt': text });
      return { routes: snapshots[0]?.routes, codes: diagnostics.map(({ code }) => code) };
    };
    const print = (text: string) => `$ ${command}\n${text}\n`;
    for (const [first, second] of [
      [one, other],
      [other, one],
    ] as const) {
      const both = read(print(first) + print(second));
      expect(both.routes).toEqual(read(print(first)).routes);
      expect(both.codes).toContain('second-listing');
      expect(read(print(first) + print(first)).codes).not.toContain('second-listing');
    }
  });
});

/** What kpc describe says of listings that it skips in a dump from standard input: the line of each, and the arguments. */
async function skipped(stdin: string) {
  const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin });
  return findingsOf(stdout, 'second-listing').map(({ place, arguments: details }) => ({
    line: place?.line,
    ...details,
  }));
}

describe('a second listing of a tool, of another node or another time', () => {
  test.for([
    ['ipvsadm -Ln', titles + server + real, titles + server],
    ['ipvsadm -Ln', server + real, server],
    ['ipvsadm -Sn', '-A -t 10.9.0.1:80 -s rr\n-a -t 10.9.0.1:80 -r 10.1.0.1:80 -m -w 1\n', '-A -t 10.9.0.1:80 -s rr\n'],
    ['iptables-save', rules('10.1.0.1:443'), rules('10.1.0.2:443')],
    ['ipset save', set('10.9.0.1'), set('10.9.0.2')],
    ['ip addr', link('192.168.0.1'), link('192.168.0.2')],
    ['nft list ruleset', table('10.1.0.1:80'), table('10.1.0.2:80')],
  ] as const)('%s is left out, and said', async ([tool, first, second]) => {
    const twice = await runKpc(['describe', '-'], { stdin: first + second });
    const line = first.split('\n').length;
    expect(await skipped(first + second)).toMatchObject([{ line, output: tool }]);
    const { stdout } = await runKpc(['describe', '-'], { stdin: first });
    expect(twice.stdout).toContain(stdout);
    // Addresses alone show no Service: there is no answer.
    expect(twice.stdout.length > stdout.length).toBe(stdout !== '');
    expect(await skipped(first + first)).toEqual([]);
  });

  test('of several hosts', async () => {
    const paste = [real, '', real + real.replace('3.224', '3.225')].map(
      (reals, i) => `10.109.0.1${i} | CHANGED | rc=0 >>\n${titles}${server}${reals}\n`,
    );
    const args = ['describe', '10.109.131.66', '-', '--output', 'json'];
    const { stdout } = await runKpc(args, { stdin: paste.join('') });
    const [listing] = findingsOf(stdout, 'second-listing');
    expect(listing?.arguments).toMatchObject({ output: 'ipvsadm -Ln' });
    expect(findingsOf(stdout).map((each) => each.arguments['problem'])).not.toContain('stray-lines');
  });

  test.for([
    ['root@node-a:~# ipvsadm -Ln', 'root@node-b:~# ipvsadm -Ln'],
    ['[root@node-a ~]# ipvsadm -Ln', '[root@node-b ~]# ipvsadm -Ln'],
    ['me@node-a ~ % ipvsadm -Ln', 'me@node-b ~ % sudo ipvsadm -Ln'],
    ['node-a:~ # ipvsadm -Ln', 'node-b:~ # ipvsadm -Ln'],
    ['node-a# ipvsadm -Ln', 'node-b# ipvsadm -Ln'],
    ['$ ssh -p 22 root@node-a ipvsadm -Ln', '$ ssh root@node-b ipvsadm -Ln'],
    ['me@pc:~$ docker exec -it node-a ipvsadm -Ln', 'me@pc:~$ docker exec node-b ipvsadm -Ln'],
    ['node-a | CHANGED | rc=0 >>', 'node-b | CHANGED | rc=0 >>'],
  ])('of two hosts is never merged: %s', async ([first = '', second = '']) => {
    const stdin = `${first}\n${server}${real}${second}\n${server.replace('131.66', '131.67')}${real}`;
    const run = await runKpc(['describe', '-'], { stdin });
    expect(await skipped(stdin)).toMatchObject([{ line: 5, output: 'ipvsadm -Ln' }]);
    expect(run.stdout).not.toContain('10.109.131.67');
    expect(run.stdout).toContain('10.109.131.66');
  });

  test('of another tool, by the prompts of two hosts', async () => {
    const listing = 'create KUBE-CLUSTER-IP hash:ip,port family inet\nadd KUBE-CLUSTER-IP 10.109.131.67,tcp:80\n';
    const pasted = (prompt: string) => `root@node-a:~# ipvsadm -Ln\n${titles}${server}${real}${prompt}\n${listing}`;
    const run = await runKpc(['describe', '-'], { stdin: pasted('[root@node-b ~]# ipset save') });
    const other = { line: 7, output: 'ipset save', from: 'node-b' };
    expect(await skipped(pasted('[root@node-b ~]# ipset save'))).toEqual([other]);
    expect(run.stdout).not.toContain('10.109.131.67');
    expect(await skipped(pasted('me@pc:~$ ssh root@node-b ipset save'))).toEqual([other]);
    for (const same of ['root@node-a.example.com:~# ipset save', '# ipset save', 'root@pc:~$ ssh node-a ipset save']) {
      const one = await runKpc(['describe', '-'], { stdin: pasted(same) });
      expect(one.stderr).not.toContain('[second-listing]');
      expect(one.stdout).toContain('10.109.131.67');
    }
  });

  test('one set after another is of one node', async () => {
    const listing = (name: string, entry: string) =>
      `$ ipset save\ncreate ${name} hash:ip,port family inet\nadd ${name} ${entry}\n`;
    const stdin = listing('KUBE-CLUSTER-IP', '10.96.0.7,tcp:80') + listing('KUBE-EXTERNAL-IP', '203.0.113.7,tcp:80');
    const run = await runKpc(['describe', '-'], { stdin });
    expect(run.stderr).not.toContain('[second-listing]');
    expect(run.stdout).toContain('203.0.113.7');
  });

  test('without a single Service', async () => {
    expect(await skipped(titles + titles + server + real)).toMatchObject([{ output: 'ipvsadm -Ln' }]);
  });

  test('of sysctls', async () => {
    const stdin = `${server}$ sysctl -a\nnet.ipv4.vs.conntrack = 1\n$ sysctl -a\nnet.ipv4.vs.conntrack = 0\n`;
    expect(await skipped(stdin)).toMatchObject([{ output: 'sysctl', differences: ['net.ipv4.vs.conntrack'] }]);
  });

  test('parts that complete each other are one', async () => {
    const command = (address: string) => `$ ipvsadm -Ln -t ${address}:6379\n`;
    const other = server.replace('131.66', '131.67') + real;
    const stdin = `${command('10.109.131.66')}${server}${real}${command('10.109.131.67')}${other}`;
    const run = await runKpc(['describe', '-'], { stdin });
    expect(run.stderr).not.toContain('[second-listing]');
    expect(run.stdout).toContain('10.109.131.67');
  });

  test('two links of one node, each printed by its name, are one', async () => {
    const kubeIpvs = '5: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n    inet 10.109.131.66/32 scope global kube-ipvs0\n';
    const links = [
      ['eth0', link('192.168.0.1')],
      ['kube-ipvs0', kubeIpvs],
    ].map(([name, text]) => `$ ip addr show ${name}\n${text}`);
    for (const pasted of [links, links.toReversed()]) {
      const run = await runKpc(['describe', '-'], {
        stdin: `$ ipvsadm -Ln\n${titles}${server}${real}${pasted.join('')}`,
      });
      expect(run.stderr).not.toContain('[second-listing]');
    }
  });

  test.each([
    ['', ''],
    ['$ ip -4 addr\n', '$ ip -6 addr\n'],
  ])('the addresses of both families of one node, each printed alone, are one: "%s"', async (four, six) => {
    const ofFour =
      '1: lo: <UP>\n    inet 127.0.0.1/8 scope host lo\n2: eth0: <UP>\n    inet 192.168.0.1/24 scope global eth0\n';
    const ofSix = '1: lo: <UP>\n    inet6 ::1/128 scope host\n2: eth0: <UP>\n    inet6 fd00::1/64 scope global\n';
    const nft = 'table inet filter {\n\tchain c {\n\t}\n}\n';
    for (const parts of [
      [four + ofFour, six + ofSix],
      [six + ofSix, four + ofFour],
    ]) {
      const stdin = `$ nft list ruleset\n${nft}${parts.join('')}`;
      for (const [to, verdict] of [
        ['192.168.0.1:22', 'local'],
        ['192.168.0.2:22', 'forwarded'],
        ['[fd00::1]:22', 'local'],
        ['[fd00::2]:22', 'forwarded'],
      ] as const) {
        const from = to.startsWith('[') ? 'fd00::9' : '192.168.0.9';
        const { stdout } = await runKpc(['trace', '-', '--from', from, '--to', to, '--output', 'json'], { stdin });
        expect(findingsOf(stdout, 'second-listing')).toEqual([]);
        const [answer] = resultOf(stdout).traces;
        expect((answer.otherwise ?? answer).verdict).toBe(verdict);
      }
    }
  });

  test('the addresses of one family of two nodes are not one', async () => {
    const other = '1: lo: <UP>\n    inet6 ::1/128 scope host\n2: eth0: <UP>\n    inet6 fd00::2/64 scope global\n';
    const stdin = `$ ipvsadm -Ln\n${titles}${server}${real}${other}$ ip addr\n${other.replace('fd00::2', 'fd00::3')}`;
    expect(await skipped(stdin)).toMatchObject([{ output: 'ip addr' }]);
  });

  test('what Ansible prints of a host is as whole as the command above it says', async () => {
    const part = `$ ansible all -a "ipvsadm -Ln -t 10.109.131.66:6379"\nnode-a | CHANGED | rc=0 >>\n${titles}${server}${real}`;
    for (const stdin of [part, `node-a | CHANGED | rc=0 >>\n${server}${real}`]) {
      const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin });
      expect(findingsOf(stdout, 'reading').map((each) => each.arguments)).toContainEqual(
        expect.objectContaining({ note: 'incomplete', lacks: expect.arrayContaining(['ipvsadm -Sn']) }),
      );
    }
  });

  test('a quote that is not closed in a table of nftables is reported', async () => {
    const stdin =
      'table ip kube-proxy {\n\tset cluster-ips {\n\t\telements = { 10.9.0.1, ".9.0.2,\n\t\t\t10.9.0.3 }\n\t}\n}\n';
    for (const text of [stdin, stdin + stdin]) {
      const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin: text });
      expect(findingsOf(stdout, 'unread-line')).toMatchObject([
        { severity: 'warning', place: { line: 3, column: 1 }, arguments: { reason: 'open-quote' } },
      ]);
      expect(findingsOf(stdout, 'internal-error')).toEqual([]);
    }
  });

  const folder = mkdtempSync(join(tmpdir(), 'kpc-listings-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('in files of their own, too', async () => {
    for (const [name, text] of [
      ['node-1.txt', titles + server + real],
      ['node-2.txt', titles + server],
    ] as const)
      writeFileSync(join(folder, name), text);
    const run = await runKpc(['describe', 'node-1.txt', 'node-2.txt'], { cwd: folder });
    expect(run.stderr).toMatch(/node-2\.txt:1:1: warning: .*ipvsadm -Ln.* \[second-listing\]/);
  });
});
