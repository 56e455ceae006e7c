// Nodes in network namespaces: what their tools printed, cut to what packets of IPv4 meet, and what became of real packets. In truth.json,
// `made` is what was done on a node with a Service default/web in iptables mode: 192.168.50.11 on eth0, a router at 192.168.50.1.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatSocketAddress } from '../../../src/kernel/ports-and-marks.ts';
import { readDump } from '../../../src/dumps/read-dump.ts';
import { ask } from '../../../src/ask/trace/ask.ts';
import type { PacketProtocol } from '../../../src/packet/packet.ts';
import type { Trace } from '../../../src/ask/trace/question.ts';
import { sceneOf } from '../../../src/ask/trace/scene.ts';
import { listNotes } from '../../../src/say/way/notes.ts';
import { DumpedSnapshot } from '../../../src/snapshot/snapshot.ts';

interface Probe {
  readonly node: string;
  readonly from: string;
  readonly to: string;
  readonly inInterface?: string;
  readonly protocol?: PacketProtocol;
  /** What `made` changed in the node's listing, where several share one. */
  readonly changes?: readonly Change[];
  /** "address:port from address" of each packet that arrived; none if the client timed out. */
  readonly seen: readonly string[];
  /** kpc's verdict, and its word on the connection. */
  readonly told: readonly [string, string];
}

/** A text of a node's listing, which must be there, and what stands there instead. */
type Change = readonly [old: string | RegExp, by: string];

const probes = JSON.parse(readFileSync(join(import.meta.dirname, 'truth.json'), 'utf8')) as readonly Probe[];

type Question = Pick<Probe, 'from' | 'to' | 'inInterface' | 'protocol'>;

function traceIn(node: string, { from, to, inInterface, protocol = 'tcp' }: Question, ...changes: readonly Change[]) {
  const text = changes.reduce(
    (whole, [old, by]) => {
      expect(whole).toMatch(old);
      return whole.replaceAll(old, by);
    },
    readFileSync(join(import.meta.dirname, `${node}.txt`), 'utf8'),
  );
  const { state, ...shown } = readDump(new Map([['node.txt', text]]));
  const scene = sceneOf(new DumpedSnapshot({ name: 'node.txt', state: () => state, ...shown }));
  const found = ask({ from, to, protocol, inInterface, namespace: undefined }, scene);
  if (found.kind === 'wrong') throw new Error(found.faults.map(({ diagnostic }) => diagnostic.code).join());
  return { found: found.value, scene };
}

function trace(...asked: Parameters<typeof traceIn>): Trace {
  return traceIn(...asked).found;
}

function told({ fate }: Trace): readonly string[] {
  return [fate.verdict, fate.connection().kind];
}

test.each(probes)('$node: $from to $to, $protocol', ({ node, seen, told: expected, changes = [], ...asked }) => {
  const { fate, ...others } = trace(node, asked, ...changes);
  expect(told({ fate, ...others })).toEqual(expected);
  const known = fate.endpoints.map(
    (each) =>
      `${formatSocketAddress(each)} from ${(each.source === 'masqueraded' ? each.masqueradedAs : each.source)?.text}`,
  );
  // Where it depends on more than the rules, nothing need arrive.
  const arrived = expected.join() === 'delivered,depends' && seen.length === 0 ? [] : known.toSorted();
  expect(arrived).toEqual(expected[0] === 'delivered' ? seen : []);
});

const far = { from: '203.0.113.7', to: '192.168.50.11:30080' };
const near = { from: '192.168.50.20', to: '192.168.50.11:30080' };
const toPod = { from: '10.244.1.20', to: '10.96.0.80:80' };
const second = '9: vm0: <UP> mtu 1500 master brx\n    bridge_slave hairpin off learning on flood on isolated off';
const open: readonly Change[] = [['isolated on', 'isolated off']];
const vaOpen: Change = ['isolated on\n5: vb', 'isolated off\n5: vb'];
const vbOpen: Change = ['isolated on\n6: vc', 'isolated off\n6: vc'];

function table(family: string, rule: string): Change {
  const chain = `chain c {\n\t\ttype filter hook output priority 0; policy accept;\n${rule}\t}`;
  return ['$ ip rule', `$ nft list ruleset\ntable ${family} f {\n\t${chain}\n}\n$ ip rule`];
}

const forOther =
  '\t\tarp htype 1 arp hlen 6 arp plen 4 arp daddr ip { 10.96.0.10, 10.97.0.0/16 } counter packets 0 bytes 0 drop\n';
const chains = ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']
  .map((name) => `:${name} ACCEPT [0:0]\n`)
  .join('');
const marked = (accepts: number): readonly Change[] => [
  ['--to-destination 10.244.2.10:8080', '--to-destination 192.168.50.11:8080'],
  ['*nat\n', `*mangle\n${chains}-A PREROUTING -i eth0 -j MARK --set-xmark 0x1/0xffffffff\nCOMMIT\n*nat\n`],
  ['$ ip rule', '$ ip rule\n60:\tfrom all to 203.0.113.0/24 fwmark 0x1/0x1 blackhole'],
  ['net.ipv4.tcp_fwmark_accept = 0', `net.ipv4.tcp_fwmark_accept = ${accepts}`],
];
const byEth0 = { ...far, inInterface: 'eth0' };
const outer: readonly Change[] = [['-d 10.96.0.80/32', '-d 192.168.50.200/32']];
const twice: readonly Change[] = [
  ['172.16.0.11', '192.168.50.13'],
  ['172.16.0.0/24 dev eth1', '192.168.50.0/24 dev eth1'],
  ['eth0.rp_filter = 0', 'eth0.rp_filter = 1'],
  ['eth1.rp_filter = 0', 'eth1.rp_filter = 1'],
];
const overVxlan = { from: '10.244.1.10', to: '10.96.0.82:80' };
const accepting: Change = [':INPUT DROP', ':INPUT ACCEPT'];
const remote = 'remote 192.168.50.12 local 192.168.50.11';
const blackhole: Change = ['default via', 'blackhole 192.168.50.12\ndefault via'];
const peer: Change = ['-A INPUT -i lo', '-A INPUT -s 192.168.50.12/32 -j ACCEPT\n-A INPUT -i lo'];
const shown = 'vxlan id 1 local 192.168.50.11 dev eth0 srcport 0 0 dstport 8472 nolearning';
const ipip: readonly Change[] = [
  [shown, 'ipip any remote any local any ttl inherit nopmtudisc'],
  ['via 10.244.2.0 dev flannel.1', 'via 192.168.50.12 dev flannel.1'],
];
const gre: readonly Change[] = [[shown, 'gre remote 192.168.50.12 local 192.168.50.11 ttl inherit']];
const untracked: Change = [
  '--ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -p',
  '--ctstate RELATED -j ACCEPT\n-A INPUT -p',
];
const letIn = (rule: string): Change => ['-A INPUT -i lo', `-A INPUT ${rule} -j ACCEPT\n-A INPUT -i lo`];
const toNode = { from: '192.168.50.100', to: '192.168.50.11:22' };
const toRemote = { from: '10.244.1.20', to: '192.168.50.12:8080' };
const enslaved: readonly Change[] = [
  ['qdisc noqueue state UP\n    veth\n', 'qdisc noqueue master br-ex state UP\n    veth\n'],
  ['$ ip rule', '90: br-ex: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500\n    bridge vlan_filtering 0\n$ ip rule'],
  ['$ sysctl -a', '$ sysctl -a\nnet.ipv4.conf.br-ex.rp_filter = 0'],
];
const ofVrf = enslaved.map(([old, by]): Change => [old, by.replace('bridge vlan_filtering 0', 'vrf table 10')]);
const toPodHere = { from: 'node', to: '10.244.1.10:8080' };
const unrouted: readonly Change[] = [['10.244.1.0/24 dev cni0 proto kernel scope link src 10.244.1.1\n', '']];
const toBeside = { from: '192.168.50.100', to: '192.168.50.77:8080' };
const beside: readonly Change[] = [['default via', '192.168.50.77 dev cni0 scope link\ndefault via']];
const proxy: Change = ['$ sysctl -a', '$ sysctl -a\nnet.ipv4.conf.eth0.proxy_arp = 1'];
const byEth = { ...toNode, inInterface: 'eth0' };
const emptyBridge: readonly Change[] = [
  ['192.168.50.0/24 dev eth0', '192.168.50.0/24 dev docker0'],
  ['$ ip rule', '90: docker0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500\n    bridge vlan_filtering 0\n$ ip rule'],
];
const filledBridge: Change = ['$ ip rule', '91: v0: <BROADCAST,UP,LOWER_UP> mtu 1500 master docker0\n$ ip rule'];
const strict: Change = ['all.rp_filter = 0', 'all.rp_filter = 1'];
const oneHop: readonly Change[] = [
  ['-A KUBE-SVC-LOLE4ISW44XBNF3G ! -s 10.244.0.0/16', '-A KUBE-SVC-LOLE4ISW44XBNF3G -s 10.9.0.0/16'],
  ['\tnexthop via 172.16.0.12 dev eth1 weight 1\n', ''],
];
const noArp: Change = ['eth0: <BROADCAST', 'eth0: <NOARP,BROADCAST'];
const noArpAtPair: Change = ['eth0@if3: <BROADCAST', 'eth0@if3: <NOARP,BROADCAST'];

const toFar = { from: '10.244.1.10', to: '198.51.100.7:8080' };
const toBridged = { from: 'node', to: '10.244.1.30:8080' };
const atBridge: Change = ['mtu 1450 qdisc noqueue', 'mtu 1450 qdisc noqueue master cni0'];
const unknownBoth = ['unknown', 'unknown'] as const;
const asDports: readonly Change[] = [
  ['-A FORWARD -j DROP', '-A FORWARD -d 198.51.100.0/24 -p tcp -m multiport --dports 80,8080 -j DROP'],
  ['ip daddr { 198.51.100.0/24, 203.0.113.0/24 } drop', 'ip daddr 198.51.100.0/24 tcp dport { 80,9999 } drop'],
];
const hidden: Change = [/^\*filter\n[^]*?COMMIT\n/gm, "# Table `filter' is incompatible, use 'nft' tool.\n"];
const unlisted: Change = [/^\$ nft list ruleset\n[^]*?^\}\n/gm, ''];
const redirects: Change = ['-A PREROUTING', '-A PREROUTING -p tcp -j REDIRECT --to-ports 9999\n-A PREROUTING'];
const bareBridge: readonly Change[] = [
  ['    inet 10.244.1.1/24 scope global cni0\n', ''],
  ['10.244.1.0/24 dev cni0 proto kernel scope link src 10.244.1.1', '10.244.1.0/24 dev cni0 scope link'],
  ['local 10.244.1.1 dev cni0 table local proto kernel scope host src 10.244.1.1\n', ''],
];
const ofNeighbour = { from: 'fe80::100', to: '[fd00:50::11]:30080', inInterface: 'eth0' };
const toEth0: Change = ['fd00:244:1::/64 dev cni0', 'fd00:244:1::/64 dev eth0'];
const encapsulated: readonly Change[] = [
  ['{ 198.51.100.0/24, 203.0.113.0/24 }', '{ 203.0.113.0/24, 192.0.2.0/24 }'],
  ['default via', '198.51.100.0/24  encap ip id 7 dst 192.168.50.12 dev eth0\ndefault via'],
];

test.each<readonly [string, string, Question, readonly Change[], readonly [string, string]]>([
  ['a tunnel at a bridge, refused below', 'vxlan', toBridged, [atBridge], ['forwarded', 'unknown']],
  ['a tunnel at a bridge', 'vxlan', toBridged, [atBridge, accepting], ['forwarded', 'works']],
  [
    'accepted frames',
    'rules-by-bridge',
    toPod,
    [table('bridge', '\t\tether type ip accept\n')],
    ['delivered', 'works'],
  ],
  ['a set that only nft lists', 'native-rules', toFar, [['{ 198.51.100.0/24, 203.0.113.0/24 }', '@far']], unknownBoth],
  ['sets of iptables', 'native-rules', toFar, asDports, ['dropped', 'fails']],
  ['a hidden table', 'native-rules', toFar, [hidden], ['dropped', 'fails']],
  ['a hidden table that no listing shows', 'native-rules', toFar, [hidden, unlisted], unknownBoth],
  ['a redirect where no address is', 'vxlan', overVxlan, [redirects, ...bareBridge], ['dropped', 'fails']],
  ['a redirect', 'vxlan', overVxlan, [redirects, accepting], ['local', 'works']],
  ['a link-local source', 'pods-on-bridge-ipv6', ofNeighbour, [], ['refused', 'fails']],
  ['a link-local source of its link', 'pods-on-bridge-ipv6', ofNeighbour, [toEth0], ['delivered', 'works']],
  ['a route by encapsulation', 'native-rules', toFar, encapsulated, ['forwarded', 'unknown']],
  ['a port with hairpin', 'nic-as-only-port', far, [['hairpin off', 'hairpin on']], ['unknown', 'unknown']],
  ['a second port', 'nic-as-only-port', far, [['$ ip rule', `${second}\n$ ip rule`]], ['unknown', 'unknown']],
  [
    'frames that rules do not see',
    'nic-as-only-port',
    far,
    [['bridge-nf-call-iptables = 1', 'bridge-nf-call-iptables = 0']],
    ['delivered', 'works'],
  ],
  [
    'no bridge whose rules see frames',
    'rules-by-bridge',
    toPod,
    [['_iptables 1', '_iptables 0']],
    ['delivered', 'fails'],
  ],
  ['some isolated ports', 'isolated-ports', toPod, [vaOpen], ['unknown', 'unknown']],
  ['one isolated port', 'isolated-ports', toPod, [vaOpen, vbOpen], ['delivered', 'works']],
  [
    'ports that learn nothing and are not flooded',
    'isolated-ports',
    far,
    [...open, ['learning on flood on', 'learning off flood off']],
    ['unknown', 'unknown'],
  ],
  ['a VLAN for each port', 'isolated-ports', far, [...open, ['filtering 0', 'filtering 1']], ['unknown', 'unknown']],
  ['rules for frames', 'rules-by-bridge', toPod, [table('bridge', '\t\tdrop\n')], ['unknown', 'unknown']],
  ['a table for frames without rules', 'rules-by-bridge', toPod, [table('bridge', '')], ['delivered', 'works']],
  ['rules for ARP', 'rules-by-bridge', far, [table('arp', '\t\tdrop\n')], ['unknown', 'unknown']],
  ['ARP of the link', 'rules-by-bridge', far, [table('arp', '\t\tiifname "eth0" drop\n')], ['unknown', 'unknown']],
  ['ARP of another link', 'rules-by-bridge', far, [table('arp', '\t\tiifname "eth7" drop\n')], ['delivered', 'works']],
  ['ARP for others', 'rules-by-bridge', far, [table('arp', forOther)], ['delivered', 'works']],
  [
    'ARP for all but others',
    'rules-by-bridge',
    far,
    [table('arp', forOther.replace('ip ', 'ip != '))],
    ['unknown', 'unknown'],
  ],
  [
    'ARP for others or for all',
    'rules-by-bridge',
    far,
    [table('arp', `${forOther}\t\tdrop\n`)],
    ['unknown', 'unknown'],
  ],
  [
    'ARP of the router',
    'rules-by-bridge',
    far,
    [table('arp', '\t\tarp saddr ip 192.168.50.1 drop\n')],
    ['unknown', 'unknown'],
  ],
  ['a link that asks nobody', 'rules-by-bridge', near, [noArp, noArpAtPair], ['delivered', 'depends']],
  [
    'a link that answers nobody',
    'rules-by-bridge',
    near,
    [['$ sysctl -a', '$ sysctl -a\nnet.ipv4.conf.eth0.arp_ignore = 8']],
    ['delivered', 'depends'],
  ],
  [
    'an address of a Service beside a bridge',
    'vm-beside-lan',
    { from: '192.168.50.30', to: '192.168.50.200:80' },
    [...outer, [':FORWARD DROP', ':FORWARD ACCEPT']],
    ['delivered', 'depends'],
  ],
  ['two links in the network of the client', 'two-next-hops', near, twice, ['unknown', 'unknown']],
  ['a dead route', 'no-carrier', far, [['scope link linkdown', 'scope link dead linkdown']], ['delivered', 'depends']],
  [
    'a DNAT to the cluster IP',
    'rules-by-bridge',
    far,
    [['10.244.1.10:8080', '10.96.0.80:80']],
    ['delivered', 'depends'],
  ],
  [
    'an external IP on no link',
    'rules-by-bridge',
    { ...near, to: '192.168.50.200:80' },
    outer,
    ['delivered', 'depends'],
  ],
  [
    'one that the node answers for to the neighbours of its own link',
    'rules-by-bridge',
    { ...near, to: '192.168.50.200:80' },
    [...outer, ['$ sysctl -a', '$ sysctl -a\nnet.ipv4.conf.eth0.proxy_arp_pvlan = 1']],
    ['delivered', 'works'],
  ],
  [
    'one that a router asks for',
    'rules-by-bridge',
    { ...far, to: '192.168.50.200:80' },
    outer,
    ['delivered', 'depends'],
  ],
  ['answers of a server without the mark', 'two-next-hops', byEth0, marked(0), ['delivered', 'works']],
  [
    'answers of a server that may have the mark',
    'two-next-hops',
    byEth0,
    [...marked(0), ['net.ipv4.tcp_fwmark_accept = 0', '']],
    ['delivered', 'unknown'],
  ],
  [
    'a ping of a node that answers none',
    'rules-by-bridge',
    { ...near, to: '192.168.50.11', protocol: 'icmp' },
    [['$ sysctl -a', '$ sysctl -a\nnet.ipv4.icmp_echo_ignore_all = 1']],
    ['dropped', 'fails'],
  ],
  [
    'a port of an external IP that no Service has',
    'rules-by-bridge',
    { ...far, to: '203.0.113.5:81' },
    [
      ['-d 10.96.0.80/32', '-d 203.0.113.5/32'],
      ['default/web cluster IP', 'default/web external IP'],
    ],
    ['forwarded', 'depends'],
  ],
  [
    'a tunnel to a node by a blackhole',
    'vxlan',
    overVxlan,
    [accepting, ['local 192.168.50.11 dev eth0 srcport', `${remote} dev eth0 srcport`], blackhole],
    ['dropped', 'fails'],
  ],
  ['answers in a connection of IP in IP', 'vxlan', overVxlan, ipip, ['delivered', 'works']],
  ['IP in IP that nothing accepts', 'vxlan', overVxlan, [...ipip, untracked], ['delivered', 'fails']],
  [
    'IP in IP of another node',
    'vxlan',
    overVxlan,
    [...ipip, untracked, letIn('-s 192.168.50.13/32')],
    ['delivered', 'fails'],
  ],
  [
    'IP in IP of the next hop',
    'vxlan',
    overVxlan,
    [...ipip, untracked, letIn('-s 192.168.50.12/32 -p 4')],
    ['delivered', 'works'],
  ],
  ['IP in IP by its name', 'vxlan', overVxlan, [...ipip, untracked, letIn('-p ipencap')], ['delivered', 'works']],
  [
    'a first packet in IP in IP',
    'vxlan',
    { from: '10.244.2.20', to: '10.244.1.10:8080' },
    ipip,
    ['unknown', 'unknown'],
  ],
  ['IP in IP to a next hop by a blackhole', 'vxlan', overVxlan, [...ipip, accepting, blackhole], ['dropped', 'fails']],
  ['GRE that nothing accepts', 'vxlan', overVxlan, [...gre, untracked, letIn('-p 4')], ['delivered', 'fails']],
  ['GRE', 'vxlan', overVxlan, [...gre, untracked, letIn('-p gre')], ['delivered', 'works']],
  [
    'a tunnel to a node beside it',
    'vxlan',
    overVxlan,
    [accepting, ['local 192.168.50.11 dev eth0 srcport', `${remote} dev eth0 srcport`]],
    ['delivered', 'works'],
  ],
  ['a client behind a port that has the address', 'vxlan', toNode, enslaved, ['local', 'depends']],
  ['a port with strict rp_filter on its bridge', 'vxlan', toNode, [...enslaved, strict], ['dropped', 'fails']],
  ['a client of a network that a bridge without ports has, too', 'vxlan', byEth, emptyBridge, ['local', 'depends']],
  ['a bridge with a port for it', 'vxlan', byEth, [...emptyBridge, filledBridge], ['local', 'works']],
  ['a client behind a bridge whose port is not shown', 'vxlan', toNode, emptyBridge, ['local', 'works']],
  ['a network of pods without its route', 'rules-by-bridge', toPodHere, unrouted, ['forwarded', 'depends']],
  ['a pod with an address of the network of the client', 'rules-by-bridge', toBeside, beside, ['forwarded', 'depends']],
  ['one for which the node answers', 'rules-by-bridge', toBeside, [...beside, proxy], ['forwarded', 'works']],
  ['an endpoint behind a port', 'rules-by-bridge', toRemote, enslaved, ['forwarded', 'depends']],
  ['an endpoint behind a port of a VRF', 'rules-by-bridge', toRemote, ofVrf, ['forwarded', 'works']],
  ['rules that may be for the other end of a tunnel', 'vxlan', overVxlan, [peer], ['delivered', 'works']],
  [
    'rules that are for another host than the other end',
    'vxlan',
    overVxlan,
    [
      ['local 192.168.50.11 dev eth0 srcport', `${remote} dev eth0 srcport`],
      [peer[0], peer[1].replace('.12/', '.13/')],
    ],
    ['delivered', 'fails'],
  ],
  [
    'a client that a rule puts on a list, of which another takes no packet',
    'vxlan',
    toNode,
    [
      accepting,
      [
        '*nat\n',
        `*mangle\n${chains}-A PREROUTING -i eth0 -m recent --name bad --rcheck --seconds 60 -j DROP\n-A INPUT -m recent --name bad --set\nCOMMIT\n*nat\n`,
      ],
    ],
    ['local', 'unknown'],
  ],
  ['a pod behind a tunnel', 'vxlan', { from: '10.244.2.20', to: '10.244.1.10:8080' }, [], ['dropped', 'fails']],
  [
    'a client of the link below a tunnel',
    'vxlan',
    { from: '192.168.50.100', to: '10.96.0.82:80' },
    [accepting, ['-A KUBE-SVC-GYESO22Q7PP7NBFQ !', '-A KUBE-SVC-GYESO22Q7PP7NBFQ']],
    ['delivered', 'fails'],
  ],
  [
    'a client of another link than the endpoint',
    'two-next-hops',
    { from: '172.16.0.20', to: '10.96.0.80:80' },
    oneHop,
    ['delivered', 'depends'],
  ],
  [
    'a client of the link of the endpoint',
    'two-next-hops',
    { from: '192.168.50.20', to: '10.96.0.80:80' },
    oneHop,
    ['delivered', 'fails'],
  ],
  ['answers of a server with the mark', 'two-next-hops', byEth0, marked(1), ['delivered', 'fails']],
])('%s', (_, node, asked, changes, expected) => {
  expect(told(trace(node, asked, ...changes))).toEqual(expected);
});

test('a local route makes no address that the node sends from', () => {
  const route = 'local fd00:50::777 dev eth0 table local metric 1024\nlocal fd00:50::11 dev';
  const { fate } = trace('pods-on-bridge-ipv6', { from: 'node', to: '[fd00:50::777]:22' }, [
    'local fd00:50::11 dev',
    route,
  ]);
  expect(fate.source).toMatchObject({ text: 'fd00:50::11' });
});

test('a dead next hop is no way', () => {
  const { fate } = trace('two-next-hops', byEth0, ['dev eth1 weight 1', 'dev eth1 weight 1 dead linkdown']);
  expect(fate.endpoints.map(({ masqueradedAs }) => masqueradedAs?.text)).toEqual(['192.168.50.11']);
});

test('a link that was assumed is named if only the connection differs by another', () => {
  const asked = { from: '203.0.113.7', to: '203.0.113.5:80' };
  const { found, scene } = traceIn('two-next-hops', asked, ['-d 10.96.0.80/32', '-d 203.0.113.5/32']);
  expect(told(found)).toEqual(['delivered', 'works']);
  expect(listNotes(found, scene).join()).toContain('--in-interface eth1');
});

test('stand-ins are where the routes lead', () => {
  const blackholes: Change = ['$ sysctl -a', 'blackhole 198.51.100.0/24\nblackhole 10.244.1.0/24\n$ sysctl -a'];
  const address = (from: string, to = '10.96.0.80:80') =>
    trace('no-carrier', { from, to }, blackholes).sender.address?.text;
  expect(address('pod')).toMatch(/^10\.244\.1\.(?:11|20)$/);
  expect(address('external')).toBe('203.0.113.250');
  expect(address('remote-pod', '10.244.1.11:80')).not.toMatch(/^10\.244\.1\./);
});

test('without a way to a pod of the node, none stands for one', () => {
  const changes = ['10', '11', '20'].map((last): Change => [`10.244.1.${last} dev`, `10.9.1.${last} dev`]);
  expect(() => trace('no-carrier', { from: 'pod', to: '10.96.0.80:80' }, ...changes)).toThrow('bad-packet');
});
