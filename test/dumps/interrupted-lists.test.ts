import { describe, expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { ipAddr } from './pasted.ts';

/** Each list of IPVS mode, as a command prints it. */
const lists: Readonly<Record<string, string>> = {
  'ipvsadm -Ln': `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.7.7:80 rr
  -> 10.244.1.5:8080              Masq    1      0          0
TCP  [fd00:96::7]:80 rr
  -> [fd00:244::5]:8080           Masq    1      0          0
`,
  'ipvsadm -Sn': `-A -t 10.96.7.7:80 -s rr
-a -t 10.96.7.7:80 -r 10.244.1.5:8080 -m -w 1
-A -t [fd00:96::7]:80 -s rr
-a -t [fd00:96::7]:80 -r [fd00:244::5]:8080 -m -w 1
`,
  'ipset save': `create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536
add KUBE-CLUSTER-IP 10.96.7.7,tcp:80
create KUBE-6-CLUSTER-IP hash:ip,port family inet6 hashsize 1024 maxelem 65536
add KUBE-6-CLUSTER-IP fd00:96::7,tcp:80
`,
  'ipset list': `Name: KUBE-CLUSTER-IP
Type: hash:ip,port
Revision: 5
Header: family inet hashsize 1024 maxelem 65536
Size in memory: 232
References: 2
Number of entries: 1
Members:
10.96.7.7,tcp:80

Name: cali40all
Type: list:set
Revision: 3
Header: size 8
Size in memory: 232
References: 2
Number of entries: 1
Members:
cali40s:one
`,
};

const ofOthers = [
  '===== next =====',
  'Mon Mar  4 10:00:00 UTC 2024',
  'time="2024-03-04T10:00:00Z" level=info msg="still here"',
  'Mar 04 10:00:00 node1 systemd[1]: Started session 4.',
  '(200 more)',
  '[redacted]',
  '# ... 200 more',
  '--snip--',
];

function faultsOf(text: string) {
  const { doubts, faults } = readDump(new Map([['node.txt', text]]));
  return { doubts: doubts.map(({ kind }) => kind), faults: faults.map(({ code }) => code) };
}

describe.each(Object.entries(lists))('%s', (command, list) => {
  const lines = list.trimEnd().split('\n');
  const typed = `root@node1:~# ${command}\n`;
  const whole = faultsOf(typed + list);

  test('is read without a doubt', () => {
    expect(whole.doubts.filter((kind) => kind !== 'unlisted')).toEqual([]);
  });

  test.each(ofOthers)('loses nothing to "%s", and is a part', (line) => {
    const text = typed + lines.toSpliced(Math.ceil(lines.length / 2), 0, line).join('\n');
    const { state, doubts, coverage } = readDump(new Map([['node.txt', `${text}\n`]]));
    expect(doubts).toContainEqual(expect.objectContaining({ kind: 'unread', output: command }));
    expect(coverage.sets || coverage.virtualServers).toBe(false);
    expect(state).toEqual(readDump(new Map([['node.txt', typed + list]])).state);
  });

  test.each([
    '===== next =====',
    '----------',
    '\n(what came next)',
    'root@node1:~# date\nMon Mar  4 10:00:00 UTC 2024',
  ])('is whole before "%s"', (line) => expect(faultsOf(`${typed}${list}${line}\n`).doubts).toEqual(whole.doubts));

  test.each(['root@node1:~# ', '$ ', 'sh-4.4# ', 'logout', '```', '\n  '])('is whole before "%s" at the end', (end) => {
    expect(faultsOf(typed + list + end).doubts).toEqual(whole.doubts);
  });

  test('is cut where its last line is', () => {
    const [last = ''] = lines.slice(-1);
    const indent = last.length - last.trimStart().length;
    for (const length of [indent + 1, indent + 2, Math.ceil(last.length / 2), last.length]) {
      const text = typed + [...lines.slice(0, -1), last.slice(0, length)].join('\n');
      expect(faultsOf(text).doubts, text).toContain('cut-line');
    }
  });
});

describe('a list of addresses', () => {
  const sets = 'add KUBE-CLUSTER-IP 10.96.0.10,udp:53\nadd KUBE-CLUSTER-IP 10.96.7.7,tcp:80\n';
  const servers = '-A -u 10.96.0.10:53 -s rr\n-A -t 10.96.7.7:80 -s rr\n';
  const created = 'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536\n';
  const unlistedIn = (text: string) =>
    readDump(new Map([['node.txt', text]])).doubts.filter((doubt) => doubt.kind === 'unlisted');

  test.each([
    ['sets', created + sets + servers, 'KUBE-CLUSTER-IP'],
    ['virtual servers', servers, 'ipvsadm'],
  ])('that lacks addresses of %s is in doubt', (_title, others, by) => {
    expect(unlistedIn(others + ipAddr)).toEqual([]);
    const cut = ipAddr.slice(0, ipAddr.indexOf('    inet 10.96.7.7'));
    expect(unlistedIn(others + cut)).toMatchObject([{ by, entry: '10.96.7.7,tcp:80', lacks: 'address' }]);
  });

  test("is not in doubt for other programs' virtual servers", () => {
    expect(unlistedIn(`${created}${sets}${servers}-A -t 192.0.2.7:80 -s rr\n${ipAddr}`)).toEqual([]);
  });

  test.each(['--More--', '--More--(45%)', 'lines 1-23', 'lines 1-23/50 46%', ':', '26: kube-ip', '26:'])(
    'that ends with %j is not whole',
    (end) => {
      const list = ipAddr.slice(0, ipAddr.indexOf('26: kube-ipvs0'));
      const { coverage, doubts } = readDump(new Map([['node.txt', `${list}${end}\n`]]));
      expect(coverage.links && doubts.length === 0).toBe(false);
    },
  );
});
