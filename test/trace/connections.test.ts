// The whole connection on one node, with its routes changed, its settings, or another program's rules: what packets of both directions met there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { failingShare, otherwiseShare, type Connection } from '../../src/packet/packet.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import { ask } from '../../src/ask/trace/ask.ts';
import { compareFate } from '../../src/ask/trace/expectation.ts';
import { connectionWords } from '../../src/say/way/connection.ts';
import { traceMatrix } from '../../src/ask/trace/matrix.ts';
import type { Trace } from '../../src/ask/trace/question.ts';
import { sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { linesUnder } from '../../src/say/trace-answer.ts';
import { describeTrace } from '../../src/say/way/trace.ts';
import { projectFolder } from '../support/run-kpc.ts';

const node = readFileSync(join(projectFolder, 'fixtures/connections/node.txt'), 'utf8');

/** Replaces a text of the node's listing, which must be there. */
type Change = readonly [old: string, by: string];

function after(line: string, more: string): Change {
  return [line, `${line}\n${more}`];
}

function sceneWith(changes: readonly Change[]): Scene {
  const text = changes.reduce((whole, [old, by]) => {
    expect(whole).toContain(old);
    return whole.replace(old, by);
  }, node);
  const { state, coverage, doubts, flows, routes, log } = readDump(new Map([['node.txt', text]]));
  const side = new DumpedSnapshot({ name: 'node.txt', state: () => state, coverage, doubts, flows, routes, log });
  return sceneOf(side);
}

function trace(changes: readonly Change[], from: string, to: string, protocol: 'tcp' | 'udp', input?: string): Trace {
  const found = ask({ from, to, protocol, inInterface: input, namespace: undefined }, sceneWith(changes));
  if (found.kind === 'wrong') throw new Error(found.faults.map(({ diagnostic }) => diagnostic.code).join());
  return found.value;
}

function causeOf({ ways }: Connection): string {
  const losses = ways.flatMap(({ outcome }) =>
    'loss' in outcome && outcome.loss.kind !== 'first-lost' ? [outcome.loss] : [],
  );
  return [
    ...new Set(
      losses.map((loss) => {
        if (loss.kind === 'untranslated') return loss.why;
        if (loss.kind !== 'stopped') return loss.kind;
        const last = loss.steps.at(-1);
        const where = last?.kind === 'route' ? last.decision.kind : last && 'chain' in last ? last.chain : '';
        return `${loss.turn} ${where}`;
      }),
    ),
  ].join();
}

const local = '10.96.0.1:80';
const remote = '10.96.0.2:80';
const pod = '10.244.1.12';
const lan = '192.168.10.50';
const far = '198.51.100.200';
const main = 'default via 192.168.10.1 dev eth0';
const established = '-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n';
const strict: readonly Change[] = [['net.ipv4.conf.all.rp_filter = 0', 'net.ipv4.conf.all.rp_filter = 1']];
const unseen: readonly Change[] = [['bridge-nf-call-iptables = 1', 'bridge-nf-call-iptables = 0']];
const toRemote = '10.244.2.0/24 via 192.168.10.12 dev eth0\n';
const noDefault: readonly Change[] = [[`${main}\n`, '']];
const closed: Change = [
  ':FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE',
  ':FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE',
];
const drops: readonly Change[] = [closed, ['-A FORWARD -j KUBE-FORWARD\n', '-A FORWARD -i cni0 -j ACCEPT\n']];
const notrack: readonly Change[] = [
  [
    ':PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT',
    ':PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -p tcp -m tcp --sport 8080 -j CT --notrack\nCOMMIT',
  ],
];
const zoned: readonly Change[] = [
  [notrack[0]?.[0] ?? '', (notrack[0]?.[1] ?? '').replace('--sport 8080 -j CT --notrack', '--dport 80 -j CT --zone 7')],
];
const secondTable: readonly Change[] = [
  after('0:\tfrom all lookup local', '1000:\tfrom 172.16.20.11 lookup 200'),
  after(main, 'default via 172.16.20.1 dev eth1 table 200'),
];

/** The local Service in IPv6 as well, on a node that forwards nothing. */
const stillIPv6: readonly Change[] = [
  [
    'COMMIT\n$ nft list ruleset',
    `COMMIT
$ ip6tables-save
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d fd00:96::1/128 -p tcp -m tcp --dport 80 -j DNAT --to-destination [fd00:244:1::11]:8080
-A PREROUTING -d fd00:96::2/128 -p tcp -m tcp --dport 80 -j DNAT --to-destination [fd00:244:2::11]:8080
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
$ nft list ruleset`,
  ],
  after('    inet 10.244.1.1/24 brd 10.244.1.255 scope global cni0', '    inet6 fd00:244:1::1/64 scope global'),
  after(
    'local 192.168.10.11 dev eth0 table local proto kernel scope host src 192.168.10.11',
    'fd00:244:1::/64 dev cni0 metric 256 pref medium\nfd00:244:2::/64 via fe80::12 dev eth0 metric 1024 pref medium\nlocal fd00:244:1::1 dev cni0 table local metric 0 pref medium',
  ),
  after('net.ipv4.ip_forward = 1', 'net.ipv6.conf.all.forwarding = 0\nnet.bridge.bridge-nf-call-ip6tables = 1'),
];

describe.each<readonly [name: string, changes: readonly Change[], rows: readonly (readonly string[])[]]>([
  [
    'as it is',
    [],
    [
      [pod, local, 'delivered', 'works', ''],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
      ['node', remote, 'delivered', 'works', ''],
      [lan, remote, 'delivered', 'works', ''],
    ],
  ],
  [
    // The kernel routes again after the translation, and OUTPUT still has the interface of the first route.
    'a rule of OUTPUT for the interface of the endpoint',
    [after('-A FORWARD -j KUBE-FORWARD', '-A OUTPUT -o cni0 -p tcp -m tcp --dport 8080 -j DROP')],
    [['node', local, 'delivered', 'works', '']],
  ],
  [
    'a rule of OUTPUT for the interface of the way to the Service',
    [after('-A FORWARD -j KUBE-FORWARD', '-A OUTPUT -o eth0 -p tcp -m tcp --dport 8080 -j DROP')],
    [['node', local, 'dropped', 'fails', '']],
  ],
  [
    'a bridge whose packets rules do not see',
    unseen,
    [
      [pod, local, 'delivered', 'fails', 'bridge'],
      [pod, remote, 'delivered', 'works', ''],
      [pod, '10.244.1.11:8080', 'forwarded', 'works', ''],
    ],
  ],
  [
    'a blackhole before the other node',
    [[toRemote, 'blackhole 10.244.2.0/24\n']],
    [
      [pod, remote, 'dropped', 'fails', ''],
      ['node', remote, 'dropped', 'fails', ''],
    ],
  ],
  [
    'a route that forbids',
    [after(main, 'prohibit 203.0.113.0/24')],
    [
      [pod, '203.0.113.9:80', 'refused', 'fails', ''],
      ['203.0.113.9', '192.168.10.11:30081', 'delivered', 'fails', 'answer prohibit'],
    ],
  ],
  [
    'a route that leaves it to the next rule',
    [
      after('0:\tfrom all lookup local', '900:\tfrom all lookup 90'),
      after(main, 'throw 10.244.0.0/16 table 90\nthrow 192.168.0.0/16 table 90\nblackhole default table 90'),
    ],
    [
      [pod, remote, 'delivered', 'works', ''],
      [far, '192.168.10.11:30081', 'delivered', 'fails', 'answer blackhole'],
    ],
  ],
  [
    'no default route',
    noDefault,
    [
      ['node', remote, 'refused', 'fails', ''],
      ['node', '192.168.10.11:30082', 'delivered', 'works', ''],
      [far, '192.168.10.11:30081', 'delivered', 'fails', 'answer no-route'],
      [pod, '203.0.113.9:80', 'refused', 'fails', ''],
    ],
  ],
  [
    'no default route but that of IPv6',
    [[`${main}\n`, 'default via fd00:50::1 dev eth0 metric 1024 pref medium\n']],
    [['node', remote, 'refused', 'fails', '']],
  ],
  [
    'loopback addresses on the interface of the endpoint alone',
    [
      after('net.ipv4.conf.all.route_localnet = 0', 'net.ipv4.conf.eth0.route_localnet = 1'),
      [
        '-A KUBE-POSTROUTING -m mark ! --mark',
        '-A KUBE-POSTROUTING -s 127.0.0.0/8 -j MASQUERADE\n-A KUBE-POSTROUTING -m mark ! --mark',
      ],
    ],
    [
      ['node', '127.0.0.1:30082', 'delivered', 'works', ''],
      ['node', '127.0.0.1:30081', 'dropped', 'fails', ''],
    ],
  ],
  [
    'a rule of routing ahead of the local table',
    [['0:\tfrom all lookup local', '50:\tfrom all to 192.168.10.11 unreachable\n100:\tfrom all lookup local']],
    [
      [lan, '192.168.10.11:9090', 'refused', 'fails', ''],
      ['node', '192.168.10.11:9090', 'refused', 'fails', ''],
      ['node', remote, 'delivered', 'fails', 'answer unreachable'],
      [lan, '192.168.10.11:30081', 'delivered', 'works', ''],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
    ],
  ],
  [
    'rules of routing by protocol, port and user',
    [
      after(
        '0:\tfrom all lookup local',
        '300:\tfrom all iif eth1 ipproto tcp dport 8080 prohibit\n301:\tfrom all ipproto udp blackhole\n302:\tfrom all to 10.244.2.11 uidrange 1000-1999 unreachable',
      ),
    ],
    [
      ['172.16.20.50', '172.16.20.11:30082', 'refused', 'fails', ''],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
      ['node', '10.244.2.11:8080', 'unknown', 'unknown', ''],
      ['node', local, 'delivered', 'works', ''],
    ],
  ],
  [
    'a source that the node does not have',
    [
      after(
        '-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
        '-A POSTROUTING -s 10.244.1.12/32 -j SNAT --to-source 192.168.10.77',
      ),
    ],
    [
      [pod, remote, 'delivered', 'depends', 'foreign-source'],
      [pod, local, 'delivered', 'works', ''],
    ],
  ],
  [
    'an endpoint on the network of one card, and its client behind another',
    [
      ['-j DNAT --to-destination 10.244.2.11:8080', '-j DNAT --to-destination 192.168.10.60:8080'],
      [
        '-A KUBE-EXT-REMOTEAAAAAAAAAAA -m comment --comment "masquerade traffic for default/remote:http external destinations" -j KUBE-MARK-MASQ\n',
        '',
      ],
    ],
    [
      ['172.16.20.50', '172.16.20.11:30082', 'delivered', 'depends', 'own-gateway'],
      [pod, remote, 'delivered', 'works', ''],
    ],
  ],
  [
    'a client whose packets are not tracked',
    [[notrack[0]?.[0] ?? '', (notrack[0]?.[1] ?? '').replace('--sport 8080', '--dport 80')]],
    [[far, remote, 'forwarded', 'depends', 'left']],
  ],
  [
    'acknowledgements dropped that come from the other node',
    [
      [
        ':FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n',
        ':FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n-A FORWARD -i eth0 -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK ACK -j DROP\n',
      ],
    ],
    [
      [pod, remote, 'delivered', 'fails', 'data FORWARD'],
      [pod, local, 'delivered', 'works', ''],
    ],
  ],
  [
    // The mark for masquerading comes on top of it, and rules of type nat see only the first packet.
    'a routing rule for a mark that the first packet of a masqueraded connection does not have alone',
    [
      [
        ':POSTROUTING ACCEPT [0:0]\nCOMMIT\n*raw',
        ':POSTROUTING ACCEPT [0:0]\n-A PREROUTING -i eth1 -j MARK --set-xmark 0x100/0xffffffff\nCOMMIT\n*raw',
      ],
      after('0:\tfrom all lookup local', '1000:\tfrom all fwmark 0x100 lookup 100'),
      after(main, 'default via 172.16.20.1 dev eth1 table 100'),
    ],
    [
      ['172.16.20.50', '172.16.20.11:30081', 'delivered', 'depends', 'other-hop'],
      ['172.16.20.50', '172.16.20.11:30082', 'delivered', 'depends', 'other-hop'],
      [lan, '192.168.10.11:30081', 'delivered', 'works', ''],
    ],
  ],
  [
    'a pod of another node, which answers a client of the second card by that node’s routes',
    [],
    [['172.16.20.50', '10.244.2.11:8080', 'forwarded', 'depends', 'later KUBE-FORWARD']],
  ],
  [
    'rules for ports of a bridge, which only what came in by the bridge has',
    [
      after(
        '-A FORWARD -j KUBE-FORWARD',
        '-A FORWARD -m physdev --physdev-in veth99 -j DROP\n-A FORWARD -m physdev --physdev-is-bridged -j DROP\n-A INPUT -m physdev --physdev-out veth11 -j DROP',
      ),
    ],
    [
      [pod, local, 'dropped', 'fails', ''],
      [pod, remote, 'delivered', 'works', ''],
      [pod, '10.244.1.1:9090', 'local', 'works', ''],
      [lan, '192.168.10.11:30081', 'delivered', 'works', ''],
    ],
  ],
  [
    'a rule of routing by which answers of the node to pods leave by another link',
    [
      after('0:\tfrom all lookup local', '1000:\tnot from 192.168.10.0/24 to 198.51.100.0/24 lookup 100'),
      after(main, 'default via 172.16.20.1 dev eth1 table 100'),
    ],
    [[pod, '192.168.10.11:9090', 'local', 'depends', 'other-way']],
  ],
  [
    'a refusal without a route to the sender',
    [...noDefault, after('-A FORWARD -j KUBE-FORWARD', '-A FORWARD -p tcp -m tcp --dport 81 -j REJECT')],
    [
      [far, '10.244.1.11:81', 'dropped', 'fails', ''],
      [lan, '10.244.1.11:81', 'refused', 'fails', ''],
    ],
  ],
  ...(
    [
      ['NEW,ESTABLISHED', 'dropped'],
      ['RELATED', 'refused'],
    ] as const
  ).map(
    ([states, verdict]) =>
      [
        `a refusal past rules of OUTPUT that accept ${states}`,
        [
          [
            ':OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n',
            `:OUTPUT DROP [0:0]\n:KUBE-FORWARD - [0:0]\n-A OUTPUT -m conntrack --ctstate ${states} -j ACCEPT\n-A FORWARD -p tcp -m tcp --dport 81 -j REJECT\n`,
          ],
        ],
        [
          [lan, '10.244.1.11:81', verdict, 'fails', ''],
          [pod, '203.0.113.9:81', verdict, 'fails', ''],
        ],
      ] satisfies readonly [string, readonly Change[], readonly (readonly string[])[]],
  ),
  ...(['tcp', 'ipv6-icmp'] as const).map(
    (accepted): readonly [string, readonly Change[], readonly (readonly string[])[]] => {
      const kind = accepted === 'tcp' ? 'depends' : 'works';
      const loss = accepted === 'tcp' ? 'no-neighbour' : '';
      return [
        `rules of IPv6 that accept ${accepted} and what is established: neighbours find each other only by ICMPv6`,
        [
          ...stillIPv6,
          ['conf.all.forwarding = 0', 'conf.all.forwarding = 1'],
          [
            ':INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n*mangle',
            `:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT\n-A INPUT -p ${accepted} -j ACCEPT\n-A FORWARD -p tcp -m tcp --dport 81 -j REJECT\nCOMMIT\n*mangle`,
          ],
        ],
        [
          ['fd00:244:1::12', '[fd00:244:2::11]:81', loss ? 'unknown' : 'refused', 'fails', ''],
          ['fd00:244:1::12', '[fd00:96::1]:80', 'delivered', kind, loss],
          ['node', '[fd00:244:1::11]:8080', 'forwarded', kind, loss],
        ],
      ];
    },
  ),
  [
    'marks of OUTPUT by which routing rules lead what the node tells its neighbours elsewhere',
    [
      ...stillIPv6,
      ['conf.all.forwarding = 0', 'conf.all.forwarding = 1'],
      [
        ':OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n$ nft',
        ':OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A OUTPUT -d fd00:244:1::/65 -j MARK --set-mark 5\nCOMMIT\n*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n$ nft',
      ],
      [
        '$ ip route show table all',
        '$ ip -6 rule\n0:\tfrom all lookup local\n100:\tfrom all fwmark 0x5 lookup 100\n32766:\tfrom all lookup main\n$ ip route show table all',
      ],
      ['fd00:244:1::/64 dev cni0', 'fd00:244:1::/65 via fe80::1 dev eth0 table 100 metric 5\nfd00:244:1::/64 dev cni0'],
    ],
    [
      ['fd00:244:1::12', '[fd00:96::2]:80', 'delivered', 'depends', 'no-neighbour'],
      ['fd00:244:2::11', '[fd00:96::1]:80', 'delivered', 'depends', 'no-neighbour'],
      ['fd00:244:1:0:8000::1', '[fd00:96::2]:80', 'delivered', 'works', ''],
    ],
  ],
  [
    'a reverse path of IPv6 in rules, and neighbours behind a router: they ask from their link-local addresses',
    [
      ...stillIPv6,
      ['conf.all.forwarding = 0', 'conf.all.forwarding = 1'],
      [
        '*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n$ nft',
        '*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -m rpfilter --invert -j DROP\nCOMMIT\n$ nft',
      ],
      ['fd00:244:1::/64 dev cni0', 'fe80::/64 dev cni0 metric 256 pref medium\nfd00:244:1::/64 dev cni0'],
    ],
    [['fd00:244:2::11', '[fd00:96::1]:80', 'delivered', 'works', '']],
  ],
  ...['DROP', 'REJECT'].map((target): readonly [string, readonly Change[], readonly (readonly string[])[]] => [
    `solicitations of the node meet ${target}: it does not find its next hop`,
    [
      ...stillIPv6,
      ['conf.all.forwarding = 0', 'conf.all.forwarding = 1'],
      [
        ':OUTPUT ACCEPT [0:0]\nCOMMIT\n*mangle',
        `:OUTPUT ACCEPT [0:0]\n-A OUTPUT -o eth0 -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ${target}\nCOMMIT\n*mangle`,
      ],
    ],
    [
      ['fd00:244:1::12', '[fd00:96::2]:80', 'delivered', 'depends', 'no-neighbour'],
      ['fd00:244:1::12', '[fd00:96::1]:80', 'delivered', 'works', ''],
    ],
  ]),
  [
    'a chain where packets come in by a port of the bridge',
    [
      after(
        '$ nft list ruleset',
        'table netdev guard {\n\tchain port {\n\t\ttype filter hook ingress device "veth11" priority filter; policy accept;\n\t\ttcp dport 80 drop\n\t}\n}',
      ),
    ],
    [
      [pod, remote, 'unknown', 'unknown', ''],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
    ],
  ],
  [
    'chains where packets come in: of the bridge, after other rules have seen them',
    [
      after(
        '$ nft list ruleset',
        'table netdev guard {\n\tchain b {\n\t\ttype filter hook ingress device "cni0" priority 0; policy accept;\n\t\tip daddr 10.96.0.2 drop\n\t}\n\tchain c {\n\t\ttype filter hook ingress device "eth0" priority 0; policy accept;\n\t\tip saddr 10.244.2.11 drop\n\t}\n}',
      ),
    ],
    [
      [pod, remote, 'unknown', 'unknown', ''],
      ['10.244.2.11', local, 'dropped', 'fails', ''],
      [lan, '192.168.10.11:30082', 'delivered', 'fails', 'answer c'],
      ['node', local, 'delivered', 'unknown', ''],
    ],
  ],
  [
    'data of pods dropped',
    [
      [
        ':FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n',
        ':FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n-A FORWARD -i cni0 -p tcp -m tcp --tcp-flags PSH PSH -j DROP\n',
      ],
    ],
    [
      [lan, '192.168.10.11:30081', 'delivered', 'fails', 'data FORWARD'],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
    ],
  ],
  [
    'a rule of routing by the port that rules of OUTPUT have given a packet',
    [after('0:\tfrom all lookup local', '300:\tfrom all iif lo ipproto tcp dport 8080 blackhole')],
    [
      ['node', remote, 'dropped', 'fails', ''],
      [pod, remote, 'delivered', 'works', ''],
    ],
  ],
  [
    'a local route in a table of its own, for an address that no link has',
    [
      after('0:\tfrom all lookup local', '5:\tfrom all to 203.0.113.77 lookup 104'),
      after(main, 'local 203.0.113.77 dev lo table 104 scope host'),
    ],
    [
      [lan, '203.0.113.77:443', 'local', 'depends', 'not-held'],
      [lan, '192.168.10.11:22', 'local', 'works', ''],
    ],
  ],
  [
    'a dead route to pods of another node beside the one that packets take',
    [
      [
        toRemote,
        `10.244.2.0/24 via 172.16.20.1 dev eth1 metric 10 dead linkdown\n10.244.2.0/25 via 172.16.20.1 dev eth1 dead linkdown\n${toRemote}`,
      ],
    ],
    [[pod, remote, 'delivered', 'works', '']],
  ],
  [
    'a routing rule that leads packets for pods of another node to a router, past a closer route',
    [
      after('0:\tfrom all lookup local', '700:\tfrom all iif cni0 lookup 103'),
      after(main, 'default via 172.16.20.1 dev eth1 table 103'),
    ],
    [
      [pod, remote, 'delivered', 'depends', 'closer-route'],
      [pod, `${far}:80`, 'forwarded', 'works', ''],
      [lan, remote, 'delivered', 'works', ''],
    ],
  ],
  [
    'no forwarding in IPv6: a bridge carries on what it has sent to another port',
    stillIPv6,
    [
      ['fd00:244:1::12', '[fd00:96::1]:80', 'delivered', 'works', ''],
      ['fd00:244:1::12', '[fd00:96::2]:80', 'dropped', 'fails', ''],
    ],
  ],
  [
    'a strict reverse path',
    strict,
    [
      ['172.16.20.50', '192.168.10.11:30081', 'dropped', 'fails', ''],
      [far, '172.16.20.11:30081', 'dropped', 'fails', ''],
      // Nothing says by which card its router sends what is for a cluster IP.
      [far, remote, 'unknown', 'unknown', ''],
      ['10.244.2.11', local, 'delivered', 'works', ''],
      ['172.16.20.50', '172.16.20.11:30081', 'delivered', 'works', ''],
    ],
  ],
  [
    'a strict reverse path, and a rule by which answers to pods go elsewhere: no ARP request of theirs is answered',
    [
      ...strict,
      after('0:\tfrom all lookup local', '1000:\tfrom 10.244.1.0/24 lookup 100'),
      after(main, 'default via 172.16.20.1 dev eth1 table 100'),
    ],
    [
      [pod, remote, 'delivered', 'depends', 'no-arp'],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
    ],
  ],
  [
    'addresses that no link answers ARP for where the client is',
    [
      [
        'net.ipv4.conf.all.rp_filter = 0',
        'net.ipv4.conf.all.rp_filter = 0\nnet.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.eth1.arp_filter = 1',
      ],
      after('    inet 127.0.0.1/8 scope host lo', '    inet 192.168.10.200/32 scope global lo'),
      after(
        '    inet 172.16.20.11/24 brd 172.16.20.255 scope global eth1',
        '    inet 192.168.10.201/24 scope global eth1',
      ),
      after(
        'local 192.168.10.11 dev eth0 table local proto kernel scope host src 192.168.10.11',
        'local 192.168.10.200 dev lo table local proto kernel scope host src 192.168.10.200\nlocal 192.168.10.201 dev eth1 table local proto kernel scope host src 192.168.10.201',
      ),
    ],
    [
      [lan, '192.168.10.200:30082', 'delivered', 'depends', 'no-arp'],
      [lan, '192.168.10.201:30082', 'delivered', 'depends', 'no-arp'],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
      // Its router asks for the address of the node's link.
      [far, '192.168.10.11:30082', 'delivered', 'works', ''],
    ],
  ],
  [
    'pods of the node behind a router, which may send packets to them back',
    [
      after('0:\tfrom all lookup local', '700:\tfrom all lookup 103'),
      after(main, 'default via 172.16.20.1 dev eth1 table 103\nthrow 192.168.10.0/24 table 103'),
      after('-A FORWARD -j KUBE-FORWARD', '-A FORWARD -p tcp -m tcp --dport 81 -j REJECT'),
    ],
    [
      [lan, '192.168.10.11:30081', 'delivered', 'depends', 'own-network'],
      [lan, '10.244.2.11:81', 'refused', 'fails', ''],
      [pod, '10.244.2.11:81', 'unknown', 'fails', ''],
    ],
  ],
  [
    'a bridge to pods in the network of all nodes, with closer routes to theirs',
    [
      ['    inet 10.244.1.1/24', '    inet 10.244.1.1/16'],
      ['10.244.1.0/24 dev cni0', '10.244.0.0/16 dev cni0'],
    ],
    [[pod, remote, 'delivered', 'works', '']],
  ],
  [
    'a second card with a table of its own',
    secondTable,
    [
      [far, '172.16.20.11:30081', 'delivered', 'depends', 'other-way'],
      [far, '172.16.20.11:9090', 'local', 'works', ''],
      [far, '192.168.10.11:30081', 'delivered', 'works', ''],
    ],
  ],
  [
    'no forwarding of IPv6 but of what comes from pods',
    [...stillIPv6, after('net.ipv6.conf.all.forwarding = 0', 'net.ipv6.conf.cni0.force_forwarding = 1')],
    [['fd00:244:1::12', '[fd00:244:2::11]:8080', 'forwarded', 'fails', 'answer not-forwarding']],
  ],
  [
    'no forwarding of what comes from pods',
    [['conf.cni0.forwarding = 1', 'conf.cni0.forwarding = 0']],
    [
      [lan, '192.168.10.11:30081', 'delivered', 'fails', 'answer not-forwarding'],
      [lan, '192.168.10.11:30082', 'delivered', 'works', ''],
      [pod, remote, 'dropped', 'fails', ''],
      ['node', local, 'delivered', 'works', ''],
    ],
  ],
  [
    'a policy that drops, and pods accepted alone',
    drops,
    [
      [pod, remote, 'delivered', 'fails', 'answer FORWARD'],
      [pod, local, 'delivered', 'works', ''],
      ['node', remote, 'delivered', 'works', ''],
    ],
  ],
  [
    'answers that are not tracked',
    notrack,
    [
      [pod, remote, 'delivered', 'fails', 'untracked'],
      // The client's next packet starts no connection that conntrack knows.
      [pod, '10.244.2.11:8080', 'forwarded', 'fails', 'later KUBE-FORWARD'],
    ],
  ],
  [
    'a zone of the direction that answers do not have',
    [
      [
        ':PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n*filter',
        ':PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -s 10.244.2.0/24 -i eth0 -j CT --zone-orig 7\nCOMMIT\n*filter',
      ],
    ],
    [[pod, remote, 'delivered', 'works', '']],
  ],
  ['answers in another zone', zoned, [[pod, remote, 'delivered', 'fails', 'answer KUBE-FORWARD']]],
  [
    'clients that keep their address',
    [
      [
        '-A KUBE-SVC-REMOTEAAAAAAAAAAA ! -s 10.244.0.0/16 -d 10.96.0.2/32 -p tcp -m comment --comment "default/remote:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ\n',
        '',
      ],
    ],
    [
      [lan, remote, 'delivered', 'fails', 'past'],
      [pod, remote, 'delivered', 'works', ''],
    ],
  ],
  [
    'no rule for what follows the answer',
    [[established, ''], closed, after('-A FORWARD -j KUBE-FORWARD', '-A FORWARD -i cni0 -j ACCEPT')],
    [[lan, '192.168.10.11:30081', 'delivered', 'fails', 'later FORWARD']],
  ],
])('%s', (_, changes, rows) => {
  test.each(rows)('%s to %s: %s, %s %s', (from, to, verdict, connection, cause) => {
    const { fate } = trace(changes, from, to, 'tcp');
    const found = fate.connection();
    expect([fate.verdict, found.kind, causeOf(found)]).toEqual([verdict, connection, cause]);
  });
});

test('of ports with hairpin and without, nothing shows which one a pod is behind', () => {
  const [port = ''] = /^5: veth11@[^]*?bridge_slave .*\n/m.exec(node) ?? [];
  const other = port.replace('5: veth11', '9: veth19').replace('hairpin on', 'hairpin off');
  const { fate } = trace([after(port.trimEnd(), other.trimEnd())], '10.244.1.11', local, 'tcp');
  expect(fate.verdict).toBe('unknown');
  expect(fate.reasons).toMatchObject([{ kind: 'circumstance', of: 'bridge-port', text: 'cni0' }]);
});

test('what matters to the connection alone is asked, though the first packet is delivered either way', () => {
  const zone = zoned[0]?.[1].replace('--dport 80', '--sport 40000:50000') ?? '';
  const { fate } = trace([[zoned[0]?.[0] ?? '', zone]], far, '192.168.10.11:30082', 'tcp');
  expect([fate.verdict, fate.connection().kind]).toEqual(['delivered', 'unknown']);
  const asked = fate.connection().ways.map(({ outcome }) => 'reasons' in outcome && outcome.reasons);
  expect(asked).toMatchObject([[{ kind: 'circumstance', of: 'source-port' }]]);
});

describe('a rule that only the answer meets, and that nothing decides', () => {
  const rule = '-s 10.244.1.11/32 -m length --length 0:80 -j DROP';
  const undecided: Change = ['-A FORWARD -j KUBE-FORWARD', `-A FORWARD ${rule}\n-A FORWARD -j KUBE-FORWARD`];
  const [jump = ''] = /^-A KUBE-SVC-LOCALA+ .*-j KUBE-SEP-LOCALA+$/m.exec(node) ?? [];
  const half =
    '-A KUBE-SVC-LOCALAAAAAAAAAAAA -m statistic --mode random --probability 0.5 -j KUBE-SEP-REMOTEAAAAAAAAAAA';
  const asked = [far, '192.168.10.11:30081', 'tcp'] as const;

  test('leaves the connection open, beside a packet that is delivered', () => {
    const scene = sceneWith([undecided]);
    const found = trace([undecided], ...asked);
    expect(found.fate.verdict).toBe('delivered');
    const { kind, isUndecided, reason } = connectionWords(found, scene);
    expect([kind, isUndecided]).toEqual(['unknown', true]);
    expect(reason).toContain(rule);
    const words = describeTrace(found, scene);
    expect(words.isGood).toBe(false);
    expect(words.verdict).toContain(rule);
    expect(linesUnder(traceMatrix(scene.side.ports, scene), scene).join()).toContain(rule);
  });

  test('of two endpoints, it concerns one', () => {
    const changes = [undecided, [jump, `${half}\n${jump}`]] as const;
    const { kind, byEndpoint } = connectionWords(trace(changes, ...asked), sceneWith(changes));
    expect([kind, ...byEndpoint]).toEqual(['unknown', ['10.244.2.11:8080', 'works'], ['10.244.1.11:8080', 'unknown']]);
  });

  test('is not asked on a side without routes, which shows no answers', () => {
    const changes: readonly Change[] = [undecided, [node.slice(node.indexOf('$ ip rule')), '']];
    const { kind, isUndecided } = connectionWords(trace(changes, ...asked), sceneWith(changes));
    expect([kind, isUndecided]).toEqual(['unknown', false]);
  });
});

test('the link by which a packet is taken to come in is told where another would do', () => {
  const arrivalOf = (from: string, to: string) => trace(strict, from, to, 'tcp').fate.arrival();
  expect(arrivalOf('172.16.20.50', '192.168.10.11:30081')).toEqual({ link: 'eth0', others: ['eth1'] });
  expect(arrivalOf(far, '172.16.20.11:30081')).toEqual({ link: 'eth1', others: ['eth0'] });
  const told = describeTrace(trace(strict, far, '172.16.20.11:30081', 'tcp'), sceneWith(strict)).notes;
  expect(told.filter((note) => note.includes('--in-interface eth0'))).toHaveLength(1);
  // Beside the node, or on it, there is one way.
  expect(arrivalOf(lan, '192.168.10.11:30081')).toBeUndefined();
  expect(arrivalOf(pod, remote)).toBeUndefined();
});

test('what the first packet writes into a set, later packets meet', () => {
  const rules = [
    '-A FORWARD -m set --match-set seen dst -j DROP',
    '-A FORWARD -m conntrack --ctstate NEW -j SET --add-set seen dst',
    '-A FORWARD -j KUBE-FORWARD',
  ].join('\n');
  const changes = [
    ['-A FORWARD -j KUBE-FORWARD', rules],
    ['$ ip rule', '$ ipset save\ncreate seen hash:ip family inet hashsize 1024 maxelem 65536\n$ ip rule'],
  ] as const;
  const { fate } = trace(changes, far, '192.168.10.11:30081', 'tcp');
  expect([fate.verdict, fate.connection().kind]).toEqual(['delivered', 'unknown']);
  const reasons = fate.connection().ways.flatMap(({ outcome }) => ('reasons' in outcome ? outcome.reasons : []));
  expect(reasons).toMatchObject([{ kind: 'circumstance', of: 'memory' }]);
});

test.each([
  ['172.16.20.50', [{ kind: 'depends', loss: { kind: 'unbound', source: { text: '172.16.20.11' } } }]],
  [lan, [{ kind: 'works' }]],
] as const)('the address that a UDP program on the node answers from: to %s', (from, outcomes) => {
  const [jump = ''] = /^-A PREROUTING .* -j KUBE-SERVICES$/m.exec(node) ?? [];
  const rule = '-A PREROUTING -p udp -m udp --dport 53 -j DNAT --to-destination 192.168.10.11:5353';
  const changes: readonly Change[] = [[jump, `${rule}\n${jump}`]];
  const { fate } = trace(changes, from, '172.16.20.11:53', 'udp');
  expect(fate.verdict).toBe('delivered');
  expect(fate.connection().ways.map(({ outcome }) => outcome)).toMatchObject(outcomes);
});

test('of two links of one network, either may be the one that a packet comes in by', () => {
  const changes = [
    ...strict,
    after(
      '    inet 172.16.20.11/24 brd 172.16.20.255 scope global eth1',
      '    inet 192.168.10.13/24 scope global secondary eth1',
    ),
    after(
      'local 192.168.10.11 dev eth0 table local proto kernel scope host src 192.168.10.11',
      'local 192.168.10.13 dev eth1 table local proto kernel scope host src 192.168.10.13',
    ),
  ];
  for (const to of ['192.168.10.13:30081', '192.168.10.11:30081']) {
    const { fate } = trace(changes, lan, to, 'tcp');
    expect(fate.verdict).toBe('unknown');
    expect(fate.reasons).toMatchObject([{ kind: 'missing-flag', flag: '--in-interface' }]);
  }
  expect(trace(changes, lan, '192.168.10.13:30081', 'tcp', 'eth0').fate.verdict).toBe('delivered');
});

test('a redirect to the node itself names the port', () => {
  const rule = '-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 7777';
  const [jump = ''] = /^-A PREROUTING .* -j KUBE-SERVICES$/m.exec(node) ?? [];
  const changes: readonly Change[] = [[jump, `${rule}\n${jump}`]];
  const found = trace(changes, pod, local, 'tcp');
  expect(found.fate).toMatchObject({ verdict: 'local', redirectedTo: 7777 });
  // It is what keeps the packet from kube-proxy's rules.
  expect(describeTrace(found, sceneWith(changes)).notes.join()).toContain('nat PREROUTING rule 1');
});

test.each([
  ['127.0.0.1', local, 'tcp', 'refused'],
  ['127.0.0.1', local, 'udp', 'refused'],
  // Routing asks again once rules have changed the destination: TCP does not learn of that.
  ['127.0.0.1', '127.0.0.1:30081', 'tcp', 'dropped'],
] as const)('routing refuses that loopback addresses leave the node: %s to %s, %s', (from, to, protocol, verdict) => {
  const { fate } = trace([], from, to, protocol);
  expect([fate.verdict, fate.steps.at(-1)]).toMatchObject([verdict, { decision: { kind: 'loopback-outside' } }]);
});

test('a default route with several next hops may begin a listing, and leaves the source open', () => {
  const hops = 'default \n\tnexthop via 192.168.10.1 dev eth0 weight 1 \n\tnexthop via 172.16.20.1 dev eth1 weight 1 ';
  const { routes } = readDump(new Map([['ip-route.txt', `${hops}\n10.244.1.0/24 dev cni0 scope link \n`]]));
  expect(routes.ipv4?.routes.map((route) => route.hops.length)).toEqual([2, 1]);
  const { fate } = trace([[main, hops]], 'node', `${far}:80`, 'tcp');
  expect(fate.ways[0]?.end).toMatchObject({ candidates: [{ text: '192.168.10.11' }, { text: '172.16.20.11' }] });
});

test('a packet that a bridge throws away: the endpoint is the client, behind a port that takes nothing back', () => {
  const { fate } = trace([['hairpin on', 'hairpin off']], '10.244.1.11', local, 'tcp');
  expect([fate.verdict, fate.connection().kind]).toEqual(['dropped', 'fails']);
});

test('past the node: a client of the same link stalls where INVALID is dropped, if it came by the node', () => {
  const asked = [lan, '10.244.2.11:8080', 'tcp'] as const;
  expect(trace([], ...asked, 'eth0').fate.connection().kind).toBe('fails');
  expect(trace([], ...asked).fate.connection().kind).toBe('depends');
  expect(trace([], lan, '10.244.2.11:8080', 'udp', 'eth0').fate.connection().kind).toBe('works');
});

test('the source that masquerading and the node choose', () => {
  const changes = [
    [main, `${main} src 172.16.20.11`],
    after(
      '    inet 192.168.10.11/24 brd 192.168.10.255 scope global eth0',
      '    inet 192.168.10.99/24 scope global secondary eth0',
    ),
  ] as const;
  expect(trace(changes, 'node', '198.51.100.7:80', 'tcp').fate.source).toMatchObject({ text: '172.16.20.11' });
  expect(trace(changes, lan, '192.168.10.11:30082', 'tcp').fate.masqueradedAs?.text).toBe('192.168.10.11');
});

test.each([
  // Nothing shows which of the other links was there first.
  [[], undefined],
  [[after('    inet 127.0.0.1/8 scope host lo', '    inet 203.0.113.8/32 scope global lo')], '203.0.113.8'],
] as const)('the source of what the node masquerades to itself is one of the loopback link: %#', (changes, source) => {
  const toSelf: Change = ['--to-destination 10.244.2.11:8080', '--to-destination 192.168.10.11:8080'];
  expect(trace([toSelf, ...changes], 'node', remote, 'tcp').fate.masqueradedAs?.text).toBe(source);
});

test('without routes, nothing newly fails', () => {
  const cut = node.slice(0, node.indexOf('$ ip rule'));
  const { state, coverage, doubts, routes } = readDump(new Map([['node.txt', cut]]));
  const scene = sceneOf(new DumpedSnapshot({ name: '-', state: () => state, coverage, doubts, routes }));
  const found = ask(
    { from: far, to: '192.168.10.11:30081', protocol: 'tcp', inInterface: undefined, namespace: undefined },
    scene,
  );
  expect(found.kind === 'read' && [found.value.fate.verdict, found.value.fate.connection().kind]).toEqual([
    'delivered',
    'unknown',
  ]);
});

test('an answer over a bridge of which nothing shows whether rules see it', () => {
  const { fate } = trace([['net.bridge.bridge-nf-call-iptables = 1\n', '']], pod, local, 'tcp');
  const reasons = fate.connection().ways.flatMap(({ outcome }) => ('reasons' in outcome ? outcome.reasons : []));
  expect(reasons).toMatchObject([{ missing: { kind: 'bridge', link: 'cni0', lost: 'answer' } }]);
});

test('what the node sends on to a Service by chance is open: it fails nowhere, and does not end as the rest', () => {
  const portals = '-A PREROUTING -m comment';
  const byChance: Change = [
    portals,
    `-A PREROUTING -m statistic --mode random --probability 0.50000000000 -j ACCEPT\n${portals}`,
  ];
  const { fate } = trace([byChance], pod, remote, 'tcp');
  expect([fate.verdict, fate.connection().kind]).toEqual(['delivered', 'depends']);
  expect([failingShare(fate), otherwiseShare(fate)]).toEqual([0, 0.5]);
  const expected = { verdict: 'delivered', endpoints: undefined, source: undefined } as const;
  const found = compareFate(trace([byChance], pod, remote, 'tcp'), expected, sceneWith([byChance]));
  expect(found).toEqual([{ kind: 'lost', share: 0.5 }]);
});

test.each([
  // However most end.
  ['DROP', 'delivered', 0.25],
  ['ACCEPT\n-A FORWARD -j REJECT', 'delivered', 0.75],
])('connections that fail are those that are lost: %s', (target, verdict, failing) => {
  const rule = `-A FORWARD -m statistic --mode random --probability 0.25000000000 -j ${target}\n`;
  const { fate } = trace([['-A FORWARD -j', `${rule}-A FORWARD -j`]], pod, remote, 'tcp');
  expect([fate.verdict, failingShare(fate)]).toEqual([verdict, failing]);
});

test('a step says that its rule may not match', () => {
  const stepOf = (match: string): string | undefined => {
    const found = trace([after('-A FORWARD -j KUBE-FORWARD', `-A FORWARD ${match} -j DROP`)], pod, remote, 'tcp');
    const { steps } = describeTrace(found, sceneWith([]));
    return steps.find(({ where }) => where === 'iptables filter FORWARD rule 2')?.what;
  };
  expect(stepOf('-p tcp')).not.toMatch(/\bif\b/);
  expect(stepOf('-m length --length 0:80')).toMatch(/\bif\b/);
});
