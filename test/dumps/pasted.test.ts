import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { ipAddr, ipBrief, ipsetList, ipvsServers, ipvsTitles, natTable, rules } from './pasted.ts';
import { resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-pasted-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let written = 0;

function write(content: string | Uint8Array): string {
  const file = join(scratch, `pasted-${written++}`);
  writeFileSync(file, content);
  return file;
}

const web = /^shop\/web:http +ClusterIP +10\.96\.7\.7 +80\/TCP +2$/m;

function eachLine(text: string, change: (line: string) => string): string {
  return text.trimEnd().split('\n').map(change).join('\n');
}

/** A session at a terminal: what was typed, what came of it. */
const session = `Welcome to Ubuntu 22.04 LTS
Last login: Sat Sep 23 20:00:00 2023
[root@node1 ~]# iptables-save -t nat
# Warning: iptables-legacy tables present, use iptables-legacy-save to see them
${natTable}[root@node1 ~]# ipvsadm -ln
${ipvsTitles}[root@node1 ~]# ip -br addr
${ipBrief}[root@node1 ~]# exit
logout
Connection to node1 closed.
`;

describe('a Service is read from', () => {
  test.each([
    ['rules without the line of their table', rules],
    ['rules with counters', eachLine(rules, (line) => `[12:3456] ${line}`)],
    ['rules in a block of Markdown', `Here:\n\`\`\`\n${rules}\`\`\`\nWhat is wrong?\n`],
    ['rules that are moved in', eachLine(rules, (line) => `    ${line}`)],
    ['rules in an answer to a mail', eachLine(rules, (line) => `> ${line}`)],
    ['rules in a log', eachLine(rules, (line) => `Nov 14 11:06:11 node1 kube-proxy[12085]: ${line}`)],
    ['rules that grep -n numbered', eachLine(rules, (line) => `12:${line}`)],
    ['lines that end as on Windows', rules.replaceAll('\n', '\r\n')],
    ['what is behind a prompt', `$ sudo iptables-save | grep web\n${rules}$ `],
    [
      'iptables -S',
      `root@node1:~# iptables -t nat -S\n-P PREROUTING ACCEPT\n-P OUTPUT ACCEPT\n-N KUBE-SERVICES\n${rules}`,
    ],
    [
      'kubectl exec',
      `Defaulted container "kube-proxy" out of: kube-proxy\nUnable to use a TTY - input is not a terminal\n${natTable}command terminated with exit code 1\n`,
    ],
    ['a whole session', session],
    ['a table that is cut off', `${natTable.slice(0, natTable.indexOf('COMMIT'))}-A KUBE-MARK-MASQ -j MA`],
    [
      'several commands, one chain each',
      `# iptables -t nat -S KUBE-SERVICES\n${rules.split('\n')[0]}\n# iptables -t nat -S KUBE-SVC-AAAAAAAAAAAAAAAA\n${rules.split('\n').slice(1).join('\n')}`,
    ],
  ])('%s', async (_, text) => {
    const run = await runKpc(['describe', write(text)]);
    expect(run.stderr).not.toContain('error');
    expect(run.stdout).toMatch(web);
    expect(run.status).toBe(0);
  });

  test('UTF-16, as PowerShell writes it', async () => {
    const bytes = Buffer.from(`\ufeff${natTable.replaceAll('\n', '\r\n')}`, 'utf16le');
    expect((await runKpc(['describe', write(bytes)])).stdout).toMatch(web);
  });

  test('standard input, by -f as by the argument', async () => {
    for (const args of [
      ['describe', '-'],
      ['describe', '-f', '-'],
      ['describe', 'web', '-f', '-'],
    ]) {
      const run = await runKpc(args, { stdin: rules });
      expect(run).toMatchObject({ status: 0 });
      expect(run.stdout).toContain('shop/web:http');
    }
  });

  test('only a part of its chains: what nothing tells is not said', async () => {
    const run = await runKpc(['describe', write(`${rules.split('\n')[0]}\n`)]);
    expect(run.stdout).toMatch(/^shop\/web:http .* \?$/m);
    const one = await runKpc(['describe', 'web', write(`${rules.split('\n')[0]}\n`)]);
    expect(one.stdout).toMatch(/endpoints: unknown\b.*chains/);
  });

  test('rules of kube-proxy before 1.15, which put a colon after a port without a name', async () => {
    const old = rules.replaceAll('shop/web:http', 'shop/web:').replaceAll(/ -> [\d.:]+"/g, '"');
    expect((await runKpc(['describe', write(old)])).stdout).toMatch(
      /^shop\/web +ClusterIP +10\.96\.7\.7 +80\/TCP +2$/m,
    );
  });

  test('rules whose targets another version of iptables could not print: the addresses of the endpoints are there', async () => {
    const garbled = rules.replaceAll(
      /--to-destination \S+/g,
      '--to-destination :0 --persistent --to-destination :0 --persistent',
    );
    const run = await runKpc(['describe', 'web', write(garbled.replaceAll(/ -> [\d.:]+"/g, '"'))]);
    expect(run.stdout).toContain('    10.244.1.5  for policy Cluster\n    10.244.1.6  for policy Cluster\n');
  });
});

test('virtual servers of firewall marks are the list of a node, although they are not read', async () => {
  const marks = `-A -f 1 -s rr\n-a -f 1 -r 10.244.1.5:8080 -m -w 1\n-A -f 2 -s rr\n`;
  const run = await runKpc(['describe', '--from-dump', write(marks)]);
  expect(run.stderr).toContain('firewall-mark');
  expect(run.stderr).not.toContain('ipvsadm -Sn');
});

describe('virtual servers are read from', () => {
  const table = [
    /^10\.96\.7\.7:80\/TCP .* 10\.96\.7\.7 +80\/TCP +2$/m,
    // Without titles or a command, the list may be a part.
    /^10\.96\.0\.10:53\/UDP .* 53\/UDP +[0?]$/m,
    /^\[fd00:96::7\]:80\/TCP .* fd00:96::7 +80\/TCP +1$/m,
    /^node:30080\/TCP +NodePort +the node's, IPv4 +30080\/TCP +2$/m,
  ];
  test.each([
    ['ipvsadm -Ln', `${ipvsTitles}${ipvsServers}`],
    ['ipvsadm -Ln without its titles', ipvsServers],
    [
      'a page that took the blanks away',
      eachLine(`${ipvsTitles}${ipvsServers}`, (line) => line.trim().replaceAll(/ +/g, ' ')),
    ],
    [
      'ipvsadm -Sn',
      `-A -t 10.96.7.7:80 -s rr -p 10800
-a -t 10.96.7.7:80 -r 10.244.1.5:8080 -m -w 1
-a -t 10.96.7.7:80 -r 10.244.1.6:8080 -m -w 1
-A -u 10.96.0.10:53 -s rr
-A -t 172.17.0.1:30080 -s rr
-a -t 172.17.0.1:30080 -r 10.244.1.5:8080 -m -w 1
-a -t 172.17.0.1:30080 -r 10.244.1.6:8080 -m -w 1
-A -t [fd00:96::7]:80 -s mh -b mh-fallback,mh-port
-a -t [fd00:96::7]:80 -r [fd00:244::9]:8080 -m -w 1
`,
    ],
  ])('%s', async (_, text) => {
    const run = await runKpc(['describe', write(text)]);
    expect(run.status).toBe(0);
    for (const row of table) expect(run.stdout).toMatch(row);
  });

  test('with persistence, scheduler and flags, as ipvsadm -Sn prints them', async () => {
    const one = await runKpc(['describe', '10.96.7.7', write(ipvsServers)]);
    expect(one.stdout).toContain('session affinity by client for 10800 s, scheduler rr');
    const saved =
      '-A -t [fd00:96::7]:80 -s mh -b mh-fallback,mh-port\n-a -t [fd00:96::7]:80 -r [fd00:244::9]:8080 -m -w 1\n';
    const listed =
      'TCP  [fd00:96::7]:80 mh (mh-fallback,mh-port)\n  -> [fd00:244::9]:8080 Masq    1      0          0         \n';
    const titled = `$ ipvsadm -Ln\n${listed}`;
    const run = await runKpc(['diff', write(`$ ipvsadm -Sn\n${saved}`), write(titled)]);
    expect(run.stdout).toMatch(/^No difference in what could be compared/);
    const other = await runKpc(['diff', write(`$ ipvsadm -Sn\n${saved}`), write(titled.replace(' 1 ', ' 0 '))]);
    expect(other.stdout).toContain('real server [fd00:244::9]:8080 -m -w 1 → -m -w 0');
  });
});

describe('sets and addresses are read from', () => {
  test('ipset list, with timeouts and comments', async () => {
    const run = await runKpc(['describe', write(ipsetList)]);
    expect(run.stdout).toMatch(/^10\.96\.7\.7:80\/TCP +ClusterIP +10\.96\.7\.7 +80\/TCP +\?$/m);
    expect(run.stdout).toMatch(/^node:30080\/TCP +NodePort /m);
    expect(run.stderr).not.toContain('warning');
  });

  test.each([
    ['ip addr', ipAddr],
    ['ip -br addr', ipBrief],
    [
      'ip -o addr',
      `1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: eth0    inet 192.168.50.11/24 brd 192.168.50.255 scope global eth0\\       valid_lft forever
26: kube-ipvs0    inet 10.96.0.10/32 scope global kube-ipvs0\\       valid_lft forever
26: kube-ipvs0    inet 10.96.7.7/32 scope global kube-ipvs0\\       valid_lft forever
`,
    ],
    ['ip -c -br addr, with its colours', ipBrief.replace('kube-ipvs0 ', '\u001b[36mkube-ipvs0 \u001b[0m')],
    [
      'ip -j -p addr',
      JSON.stringify(
        [
          { ifname: 'lo', addr_info: [{ local: '127.0.0.1', prefixlen: 8 }] },
          { ifname: 'eth0', addr_info: [{ local: '192.168.50.11', prefixlen: 24 }] },
          {
            ifname: 'kube-ipvs0',
            addr_info: [
              { local: '10.96.0.10', prefixlen: 32 },
              { local: '10.96.7.7', prefixlen: 32 },
            ],
          },
        ],
        undefined,
        4,
      ),
    ],
  ])('%s: which virtual servers are of Services, which of node ports and which of another program', async (_, text) => {
    const more = 'TCP  203.0.113.9:80 wlc\n';
    const run = await runKpc(['describe', write(`$ ipvsadm -Ln\n${ipvsServers}${more}$ ip a\n${text}$ `)]);
    expect(run.stdout).toMatch(/^10\.96\.7\.7:80\/TCP /m);
    expect(run.stdout).toMatch(/^node:30080\/TCP /m);
    expect(run.stdout).not.toContain('203.0.113.9');
    expect(run.stderr).toContain('so another program made them');
  });

  test('--host-addresses takes the text of ip addr', async () => {
    const manifests = write(
      'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { type: NodePort, clusterIP: 10.96.7.7, ports: [{ port: 80, nodePort: 30080 }] }\n',
    );
    for (const text of [ipAddr, ipBrief]) {
      const flags = ['--proxy-mode', 'ipvs', '--host-addresses', write(text), '--print', 'ipvsadm'];
      const run = await runKpc(['compile', manifests, ...flags]);
      expect(run.stdout).toContain('-A -t 192.168.50.11:30080 -s rr\n');
      expect(run.stdout).not.toContain('10.96.0.10');
    }
  });
});

describe('one sentence says what to print instead of', () => {
  const stats =
    'IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port               Conns   InPkts  OutPkts  InBytes OutBytes\n  -> RemoteAddress:Port\nTCP  10.96.7.7:80                        0        0        0        0        0\n  -> 10.244.1.5:8080                     0        0        0        0        0\n';
  test.each([
    [
      'ipvsadm --stats',
      stats,
      'ipvsadm with other columns leaves out schedulers, weights or how real servers are reached: print ipvsadm -Ln or ipvsadm -Sn instead',
    ],
    [
      'ipvsadm --rate',
      stats.replace('Conns   InPkts  OutPkts  InBytes', '  CPS    InPPS   OutPPS    InBPS'),
      'ipvsadm with other columns leaves out',
    ],
    [
      'ipvsadm -Ln --persistent-conn',
      'Prot LocalAddress:Port            Weight    PersistConn ActiveConn InActConn\n  -> RemoteAddress:Port\nTCP  10.96.7.7:80 rr\n  -> 10.244.1.5:8080 1 0 0 0\n',
      'ipvsadm with other columns leaves out',
    ],
    [
      'ipvsadm -Lnc',
      'IPVS connection entries\npro expire state       source             virtual            destination\n',
      'lists connections',
    ],
    [
      'ipset list -o xml',
      '<ipsets>\n<ipset name="KUBE-CLUSTER-IP">\n</ipset>\n</ipsets>\n',
      'print ipset save instead',
    ],
    [
      'ip -br link',
      'lo               UNKNOWN        00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>\n',
      'print ip addr instead',
    ],
  ])('%s', async (_, text, sentence) => {
    const run = await runKpc(['describe', write(text)]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(sentence);
    expect(run.stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  test('names for addresses, in lists and saved: said once for all lines', async () => {
    const listed =
      'TCP  dns.example:domain rr\n  -> pod.example:domain            Masq    1      0          0\n'.repeat(20);
    const run = await runKpc(['describe', write(listed)]);
    expect(run.stderr.match(/an address or port that is not numeric \(save with ipvsadm -Sn\)/g)).toHaveLength(1);
    expect(run.stderr).toContain('(and 39 more lines)');
    const saved = await runKpc(['describe', write('-A -t 10.96.0.10:strange -s rr\n'.repeat(20))]);
    expect(saved.stderr.match(/save with ipvsadm -Sn/g)).toHaveLength(1);
  });

  test('names of ports are looked up where the addresses are numbers', async () => {
    const listed = 'TCP  10.96.7.7:http rr\n  -> 10.244.1.5:http-alt            Masq    1      0          0\n';
    const saved = '-A -u 10.96.0.10:domain -s rr\n-a -u 10.96.0.10:domain -r 10.244.0.2:domain -m -w 1\n';
    const list = await runKpc(['describe', '-q', write(`${ipvsTitles}${listed}`), '--output', 'json']);
    expect(resultOf(list.stdout)).toMatchObject({
      servicePorts: [{ port: 80, endpoints: [{ endpoint: '10.244.1.5:8080' }] }],
    });
    const save = await runKpc(['describe', '-q', write(saved), '--output', 'json']);
    expect(resultOf(save.stdout)).toMatchObject({
      servicePorts: [{ port: 53, endpoints: [{ endpoint: '10.244.0.2:53' }] }],
    });
  });

  test('a file that is packed', async () => {
    const run = await runKpc(['describe', write(gzipSync(natTable))]);
    expect(run.status).toBe(2);
    expect(run.stderr).toMatch(/error: .*gzip.*gunzip.*\[[a-z-]+\]/);
  });

  test('ipset list -t, which has no members; and a list that is cut off', async () => {
    const terse = ipsetList.replaceAll(/Members:\n(?:\S.*\n)*/g, '');
    expect((await runKpc(['describe', write(terse)])).stderr).toMatch(/ipset list -t .*\[unread-output\]/);
    const cut = await runKpc(['diff', write(ipsetList.slice(0, ipsetList.indexOf(',tcp:80'))), write(ipsetList)]);
    expect(cut.stderr).toMatch(/warning: .*ipset list .*\[unread-file\]/);
    expect(cut.stdout).not.toContain('No difference.');
  });
});

test('manifests that hold rules as a text are manifests', async () => {
  const manifests = `apiVersion: v1
kind: ConfigMap
metadata: { name: rules }
data:
  save: |
${eachLine(natTable, (line) => `    ${line}`)}
`;
  const run = await runKpc(['describe', write(manifests)]);
  expect(run.stderr).toMatch(/note: .*: 1 ConfigMap\b.*\[skipped-kinds\]/);
});

test('the lines that grep finds of a chain which both tables have are put into their tables', async () => {
  const found = `$ iptables-save | grep KUBE-SERVICES
:KUBE-SERVICES - [0:0]
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
${rules.split('\n')[0]}
:KUBE-SERVICES - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.9.9/32 -p tcp -m comment --comment "shop/none has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
`;
  const run = await runKpc(['describe', write(found)]);
  expect(run.stdout).toMatch(/^shop\/none +ClusterIP +10\.96\.9\.9 +80\/TCP +0$/m);
  expect(run.stdout).toMatch(/^shop\/web:http +ClusterIP +10\.96\.7\.7 +80\/TCP +\?$/m);
});

test('dots in the place of lines make a list a part of one', async () => {
  const shortened = `u@node$ ipvsadm -ln\n${ipvsTitles}...\nTCP  10.96.7.7:80 rr\n  -> 10.244.1.5:8080 Masq 1 0 0\n...\n`;
  const run = await runKpc(['diff', write(shortened), write(`${ipvsTitles}${ipvsServers}`)]);
  expect(run.stdout).toContain('10.96.7.7:80/TCP changed\n');
  expect(run.stdout).toContain('    endpoint 10.244.1.6:8080 added\n');
  expect(run.stdout).toContain('not compared: IPv4 rules, IPv6 rules, sets, virtual servers, ');
  expect(run.stdout).not.toContain('10.96.0.10');
});
