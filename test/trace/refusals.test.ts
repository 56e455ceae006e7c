// Whether the sender of a packet that a node refuses hears of it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import { ask } from '../../src/ask/trace/ask.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { projectFolder } from '../support/run-kpc.ts';

const node = readFileSync(join(projectFolder, 'fixtures/connections/node.txt'), 'utf8');

type Change = readonly [old: string, by: string];

/** The verdict, and what leaves it open. */
function told(changes: readonly Change[], from: string, to: string, inInterface?: string): readonly unknown[] {
  const text = changes.reduce((whole, [old, by]) => {
    expect(whole).toContain(old);
    return whole.replace(old, by);
  }, node);
  const { state, ...shown } = readDump(new Map([['node.txt', text]]));
  const scene = sceneOf(new DumpedSnapshot({ name: 'node.txt', state: () => state, ...shown }));
  const found = ask({ from, to, protocol: 'tcp', inInterface, namespace: undefined }, scene);
  if (found.kind === 'wrong') throw new Error(found.faults.map(({ diagnostic }) => diagnostic.code).join());
  const { verdict, reasons } = found.value.fate;
  return [
    verdict,
    ...reasons.map((reason) => {
      if (reason.kind === 'circumstance') return reason.of;
      return reason.kind === 'missing-listing' && reason.missing.kind === 'sysctl' ? reason.missing.name : reason.kind;
    }),
  ];
}

function refuse(rule: string): Change {
  return ['-A FORWARD -j KUBE-FORWARD\n', `-A FORWARD -j KUBE-FORWARD\n${rule}\n`];
}

function set(...lines: readonly string[]): Change {
  const one = 'net.ipv4.conf.all.rp_filter = 0';
  return [one, [one, ...lines.map((line) => `net.ipv4.conf.${line}`)].join('\n')];
}

const lan = '192.168.10.50';
const far = '198.51.100.200';
const vip = '203.0.113.9:81';
const error = '-A FORWARD -p tcp -m tcp --dport 81 -j REJECT';
const toPod = '-A FORWARD -p tcp -m tcp --dport 8080 -j REJECT';
const local = '10.96.0.1:80';
const bridge: Change = ['    inet 10.244.1.1/24', '    bridge forward_delay 1500\n    inet 10.244.1.1/24'];
const [off, ofAll, ofLink] = [
  set('all.send_redirects = 0', 'eth0.send_redirects = 0'),
  set('all.send_redirects = 1', 'eth0.send_redirects = 0'),
  set('all.send_redirects = 0', 'eth0.send_redirects = 1'),
];

test.each<readonly [string, readonly Change[], readonly [string, string, string?], readonly string[]]>([
  ['redirects of all links', [refuse(error), ofAll], [lan, vip], ['unknown', 'redirect']],
  ['redirects of the link', [refuse(error), ofLink], [lan, vip], ['unknown', 'redirect']],
  ['none', [refuse(error), off], [lan, vip], ['refused']],
  ['nothing shows whether', [refuse(error)], [lan, vip], ['unknown', 'net.ipv4.conf.all.send_redirects']],
  [
    'nothing shows whether on this link',
    [refuse(error), set('all.send_redirects = 0')],
    [lan, vip],
    ['unknown', 'net.ipv4.conf.eth0.send_redirects'],
  ],
  ['a reset is no error of ICMP', [refuse(`${error} --reject-with tcp-reset`), ofAll], [lan, vip], ['refused']],
  ['a client behind a router gets no redirect', [refuse(error), ofAll], [far, vip], ['refused']],
  ['nor one on another link', [refuse(error), ofAll], ['10.244.1.12', vip], ['refused']],
  ['nor what is for a pod', [refuse(error), ofAll], [lan, '10.244.1.11:81'], ['refused']],
  ['nor one whose packet a bridge carries', [refuse(toPod), ofAll, bridge], ['10.244.1.12', local], ['refused']],
  [
    'but one that the bridge gives to routing',
    [refuse(toPod), ofAll, bridge, ['call-iptables = 1', 'call-iptables = 0']],
    ['10.244.1.12', local],
    ['unknown', 'redirect'],
  ],
  ['an error that leaves by another link', [refuse(error)], [far, '10.244.1.11:81', 'eth1'], ['unknown', 'refusal']],
  ['by the same', [refuse(error)], [far, '10.244.1.11:81', 'eth0'], ['refused']],
])('%s', (_, changes, [from, to, inInterface], expected) => {
  expect(told(changes, from, to, inInterface)).toEqual(expected);
});

test.each([
  [1, ['unknown', 'refusal']],
  [0, ['refused']],
])('what is refused arrives only if ARP is answered for it: arp_ignore is %i', (value, expected) => {
  const address: Change = ['scope host lo\n', 'scope host lo\n    inet 192.168.10.99/32 scope global lo\n'];
  const route: Change = ['$ sysctl', 'local 192.168.10.99 dev lo table local proto kernel scope host\n$ sysctl'];
  const changes = [
    address,
    route,
    set(`all.arp_ignore = ${value}`),
    refuse('-A INPUT -p tcp -m tcp --dport 81 -j REJECT'),
  ];
  expect(told(changes, lan, '192.168.10.99:81')).toEqual(expected);
});
