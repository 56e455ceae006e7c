import { describe, expect, test } from 'vitest';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { parseIpsetSave } from '../../src/kernel/ipset/ipset.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import { emptyState, type KernelState } from '../../src/kernel/state.ts';
import { prepareEvaluator } from '../../src/packet/evaluate.ts';
import { stationsOf, type Knowledge } from '../../src/packet/knowledge.ts';
import { knowAll } from './know-all.ts';
import type { Link } from '../../src/kernel/link/link.ts';
import type { Packet, PacketProtocol } from '../../src/packet/packet.ts';
import { evaluatorOf, inShort, labSide, packet, readAddress, type SenderName } from './lab.ts';

const ab = (source: string): string => `delivered 10.1.1.10:8080 50% ${source}, 10.1.2.10:8080 50% ${source}`;
const local = 'delivered 10.1.1.11:8080 100%';
const everywhere = (source: string): string => `delivered 10.1.1.11:8080 50% ${source}, 10.1.2.11:8080 50% ${source}`;

/** What kernels do, as packet-truth of test/kernel-lab saw them: from whom, to where, and in each mode. */
const cases: readonly (readonly [
  what: string,
  from: SenderName,
  to: readonly [address: string, port: number, protocol?: PacketProtocol],
  ipvs: string,
  iptables: string,
  nftables: string,
])[] = [
  ['a cluster IP', 'pod-b', ['10.96.0.10', 80], ab('as 10.1.1.11'), ab('as 10.1.1.11'), ab('as 10.1.1.11')],
  ['one from outside', 'client', ['10.96.0.10', 80], ab('masqueraded'), ab('masqueraded'), ab('masqueraded')],
  ['one from the node', 'node', ['10.96.0.10', 80], ab('masqueraded'), ab('masqueraded'), ab('masqueraded')],
  ['a wrong port of it', 'client', ['10.96.0.10', 81], 'refused', 'forwarded', 'refused'],
  ['a ping to it', 'pod-b', ['10.96.0.10', 0, 'icmp'], 'refused', 'forwarded', 'refused'],
  ['no endpoints', 'pod-b', ['10.96.0.22', 80], 'refused', 'refused', 'refused'],
  [
    'a pod that is its own only endpoint',
    'pod-a',
    ['10.96.0.23', 80],
    'delivered 10.1.1.10:8080 100% masqueraded',
    'delivered 10.1.1.10:8080 100% masqueraded',
    'delivered 10.1.1.10:8080 100% masqueraded',
  ],
  [
    'policy Local, from a pod',
    'pod-a',
    ['192.168.0.1', 30081],
    `${local} as 10.1.1.10`,
    everywhere('as 10.1.1.10'),
    everywhere('as 10.1.1.10'),
  ],
  [
    'policy Local without endpoints here',
    'client',
    ['203.0.113.23', 80],
    'delivered 10.1.2.11:8080 100% as 192.168.0.100',
    'dropped',
    'dropped',
  ],
  ['source ranges', 'stranger', ['203.0.113.20', 80], 'dropped', 'dropped', 'dropped'],
  ['a node port on loopback', 'node', ['127.0.0.1', 30080], 'local', ab('masqueraded'), 'local'],
  ['a daemon', 'client', ['192.168.0.1', 22], 'local', 'local', 'local'],
];

describe.each(['ipvs', 'iptables', 'nftables'] as const)('%s: what kernels were seen to do', (mode) => {
  const column = { ipvs: 3, iptables: 4, nftables: 5 } as const;
  test.each(cases)('%s', async (...row) => {
    const [, from, [address, port, protocol]] = row;
    const evaluate = evaluatorOf(await labSide(mode));
    expect(inShort(evaluate(packet(from, address, port, protocol)))).toBe(row[column[mode]]);
  });
});

const eth0: readonly Link[] = [
  { name: 'lo', addresses: [{ family: 'ipv4', address: readAddress('127.0.0.1'), prefixLength: 8 }] },
  { name: 'eth0', addresses: [{ family: 'ipv4', address: readAddress('192.0.2.1'), prefixLength: 24 }] },
];

function ask(state: Partial<KernelState>, question: Partial<Packet> = {}) {
  const evaluate = prepareEvaluator({ ...emptyState, ...state }, knowAll(eth0));
  return evaluate({
    source: readAddress('192.0.2.9'),
    destination: readAddress('10.0.0.1'),
    protocol: 'tcp',
    port: 80,
    enters: {},
    ...question,
  });
}

const iptables = (text: string): Partial<KernelState> => ({ iptables: { ipv4: parseIptablesSave(text).tables } });
const filter = (...rules: readonly string[]): Partial<KernelState> =>
  iptables(`*filter\n:FORWARD ACCEPT [0:0]\n${rules.map((rule) => `-A FORWARD ${rule}\n`).join('')}COMMIT\n`);
const nft = (text: string): Partial<KernelState> => ({ nftables: parseNftText(text).tables });

describe("other programs' rules", () => {
  test.each([
    ['fib saddr oifname lo drop', 'unknown'],
    // Only a packet of the node's own programs has an owner.
    ['meta skuid lo drop', 'forwarded'],
    ['oifname lo drop', 'forwarded'],
    ['oifname != lo drop', 'dropped'],
    ['oifname eth1 drop', 'unknown'],
    // The kernel compares the whole status, in which there are other bits.
    ['ct status != dnat drop', 'dropped'],
    ['ct status dnat drop', 'forwarded'],
    ['ct status == dnat drop', 'forwarded'],
    ['ip ttl set 1', 'unknown'],
    ['ip ttl set 64', 'forwarded'],
  ])('with %s in nftables: %s', (rule, verdict) => {
    const text = `table ip t {\n chain c {\n type filter hook forward priority 0; policy accept;\n ${rule}\n }\n}\n`;
    expect(ask(nft(text), { enters: { interface: 'eth0' } }).verdict).toBe(verdict);
  });

  test.each([
    ['-m string --string x --algo bm -j DROP', 'unknown'],
    ['-m string --string x --algo bm -p udp -j DROP', 'forwarded'],
    ['-m string --string x --algo bm -j LOG', 'forwarded'],
    ['-m string --string x --algo bm -j ACCEPT', 'forwarded'],
    ['-m multiport --dports 22,80:90 -j DROP', 'dropped'],
    ['-p tcp -m tcp ! --syn -j DROP', 'forwarded'],
    ['-m state --state NEW -j REJECT', 'refused'],
    ['-m limit --limit 1/sec -j NFLOG', 'forwarded'],
    ['-i eth0 -j DROP', 'dropped'],
    ['-i eth+ -o eth1 -j DROP', 'unknown'],
    ['-o lo -j DROP', 'forwarded'],
    ['-p tcp --sport 1:1023 -j DROP', 'forwarded'],
    ['-p tcp --sport 1024:65535 -j DROP', 'dropped'],
    ['-p tcp --sport 1024:40000 -j DROP', 'unknown'],
    ['-p tcp --sport 40000 -j DROP', 'unknown'],
    ['-m conntrack --ctorigdst 10.0.0.1 -j DROP', 'dropped'],
    ['-m conntrack --ctorigdst 10.0.0.0/24 -j DROP', 'dropped'],
    ['-m conntrack ! --ctorigdst 10.0.0.1 -j DROP', 'forwarded'],
    ['-m conntrack --ctorigdst 10.0.0.2 -j DROP', 'forwarded'],
    ['-m rt --rt-type 0 -j DROP', 'forwarded'],
    ['-m conntrack --ctstatus SEEN_REPLY -j DROP', 'forwarded'],
    ['-m conntrack --ctstatus NONE -j DROP', 'forwarded'],
    ['-m conntrack ! --ctstatus DNAT -j DROP', 'dropped'],
    ['-m conntrack --ctdir ORIGINAL -j DROP', 'dropped'],
    ['-m connmark --mark 0x0/0xff -j DROP', 'dropped'],
    ['-m iprange --src-range 192.0.2.1-192.0.2.9 -j DROP', 'dropped'],
    ['-m iprange ! --dst-range 10.0.0.0-10.0.0.9 -j DROP', 'forwarded'],
    ['-p tcp -m multiport --ports 22,80 -j DROP', 'dropped'],
    ['-p tcp -m multiport ! --dports 22,http -j DROP', 'unknown'],
    ['-m pkttype --pkt-type unicast -j DROP', 'dropped'],
    ['-m addrtype --dst-type LOCAL,MULTICAST -j DROP', 'forwarded'],
    ['-m owner ! --uid-owner 0 -j DROP', 'dropped'],
    ['-m statistic --mode nth --every 1 --packet 0 -j DROP', 'dropped'],
    ['! -i eth+ -j DROP', 'forwarded'],
    // An asterisk is no wildcard.
    ['-i eth* -j DROP', 'forwarded'],
    ['-m dccp --dport 80 -j DROP', 'unknown'],
    ['-j TTL --ttl-set 1', 'unknown'],
    ['-j TTL --ttl-inc 1', 'forwarded'],
    ['-j NFQUEUE --queue-num 1', 'unknown'],
    ['-m set --match-set elsewhere src -j DROP', 'unknown'],
  ])('%s: %s', (rule, verdict) => {
    expect(ask(filter(rule)).verdict).toBe(verdict);
  });

  test.each([
    ['add @s { ip saddr }', 'ip saddr @s drop', 'dropped'],
    ['tcp dport 80 update @s { ip saddr timeout 1h }', 'ip saddr @s drop', 'dropped'],
    ['tcp dport 81 update @s { ip saddr timeout 1h }', 'ip saddr @s drop', 'forwarded'],
    ['add @s { ip saddr }', 'ip saddr != @s drop', 'forwarded'],
    ['add @s { ip saddr }', 'ip daddr @s drop', 'dropped'],
    ['add @s { ip daddr . tcp dport }', 'ip saddr @s drop', 'unknown'],
    ['delete @s { ip daddr }', 'ip daddr @s drop', 'forwarded'],
    ['tcp dport 80 accept', 'ip daddr @s drop', 'forwarded'],
  ])('a set that a rule writes and a later one asks: %s, %s: %s', (write, match, verdict) => {
    const set = 'set s {\n type ipv4_addr\n flags dynamic\n elements = { 10.0.0.1 }\n }';
    const chain = `chain c {\n type filter hook forward priority 0; policy accept;\n ${write}\n ${match}\n }`;
    expect(ask(nft(`table ip t {\n ${set}\n ${chain}\n}\n`)).verdict).toBe(verdict);
  });

  test.each([
    '-m connmark --mark 0x0',
    '-m connmark ! --mark 0x1',
    '-m conntrack --ctorigdst 10.0.0.1',
    '-m conntrack ! --ctorigdst 10.0.0.9',
    '-m conntrack ! --ctstatus DNAT',
  ])('a packet that is not tracked passes neither %s nor its negation', (match) => {
    const raw = '*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j NOTRACK\nCOMMIT\n';
    const rule = `*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD ${match} -j DROP\nCOMMIT\n`;
    expect(ask(iptables(raw + rule)).verdict).toBe('forwarded');
  });

  test.each([
    ['--connlimit-above 5', 'forwarded'],
    ['! --connlimit-above 5', 'dropped'],
    ['! --connlimit-upto 5', 'forwarded'],
  ])('-m connlimit %s: %s as long as the limit is not reached', (match, verdict) => {
    expect(ask(filter(`-p tcp -m connlimit ${match} -j DROP`))).toMatchObject({
      verdict: 'unknown',
      otherwise: { verdict },
    });
  });

  test('a packet that came in by a bridge is told by -m physdev, alone or with other options', () => {
    const sysctls = new Map([['net.bridge.bridge-nf-call-iptables', '1']]);
    const links: readonly Link[] = [{ name: 'cni0', kind: 'bridge', addresses: [] }];
    for (const match of ['! --physdev-is-in', '! --physdev-is-in ! --physdev-is-bridged']) {
      const rule = filter(`-m physdev ${match} -j DROP`);
      const verdictBy = (name: string) => ask({ ...rule, sysctls, links }, { enters: { interface: name } }).verdict;
      expect([match, verdictBy('cni0'), verdictBy('eth0')]).toEqual([match, 'forwarded', 'unknown']);
      expect(ask(rule).verdict).toBe('dropped');
    }
  });

  test('what the node sends to itself has a way back', () => {
    const text = (rule: string): string =>
      `table ip t {\n chain c {\n type filter hook prerouting priority -300; policy accept;\n ${rule}\n }\n}\n`;
    const own = readAddress('192.0.2.1');
    const question = { source: own, destination: own, enters: undefined };
    expect(ask(nft(text('fib saddr . iif oif missing drop')), question).verdict).toBe('local');
    const raw = '*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m rpfilter --invert -j DROP\nCOMMIT\n';
    expect(ask(iptables(raw), question).verdict).toBe('local');
  });

  test('a set of ipset that a rule adds to', () => {
    const rules = filter('-j SET --add-set s src --exist', '-m set --match-set s src -j DROP');
    const { sets } = parseIpsetSave('create s hash:ip family inet\n');
    expect(ask({ ...rules, sets }).verdict).toBe('dropped');
  });

  test.each([
    ['--ctorigdstport 80', 'dropped'],
    ['--ctorigdstport 8080', 'delivered'],
    ['--ctorigdst 10.0.0.1', 'dropped'],
    ['--ctorigdst 10.0.0.2', 'delivered'],
  ])('%s asks what the client asked for, not what DNAT made of it: %s', (match, verdict) => {
    const nat = '*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.2:8080\nCOMMIT\n';
    const rule = `*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m conntrack ${match} -j DROP\nCOMMIT\n`;
    expect(ask(iptables(nat + rule)).verdict).toBe(verdict);
  });

  test('what cannot be told is named: the last step is the rule', () => {
    const { verdict, steps } = ask(filter('-p tcp -j RETURN', '-j DROP'));
    expect([verdict, steps.map(({ kind }) => kind)]).toEqual(['forwarded', ['route', 'rule', 'route']]);
    const unknown = ask(filter('-m string --string x --algo bm -j DROP', '-p tcp -j ACCEPT'));
    expect(unknown.verdict).toBe('unknown');
    expect(unknown.steps.at(-1)).toMatchObject({ kind: 'rule', chain: 'FORWARD', position: 1 });
  });

  test('a policy that drops', () => {
    const { verdict, steps } = ask(iptables('*filter\n:FORWARD DROP [0:0]\nCOMMIT\n'));
    expect(verdict).toBe('dropped');
    expect(steps.at(-1)).toMatchObject({ kind: 'policy', chain: 'FORWARD' });
  });

  test('chains of nftables see packets by their priority, and an earlier drop decides', () => {
    const text = `table ip other {
      chain early { type filter hook forward priority -10; policy accept; tcp dport 80 drop }
      chain late { type filter hook forward priority 10; policy accept; reject }
    }`;
    expect(ask(nft(text)).verdict).toBe('dropped');
    expect(ask(nft(text), { port: 81 }).verdict).toBe('refused');
  });

  test.each([
    ['udp sport != 53 drop', 'forwarded'],
    ['udp dport != 53 drop', 'forwarded'],
    ['tcp sport != 53 drop', 'dropped'],
    ['tcp dport != 53 drop', 'dropped'],
  ])('a rule of nftables about the ports of one protocol: %s', (rule, verdict) => {
    const text = `table ip other {\n\tchain forward {\n\t\ttype filter hook forward priority 0; policy accept;\n\t\t${rule}\n\t}\n}\n`;
    expect(ask(nft(text)).verdict).toBe(verdict);
  });
});

describe('the kernel', () => {
  test('drops what it is not to forward', () => {
    const sysctls = new Map([['net.ipv4.ip_forward', '0']]);
    expect(ask({ sysctls })).toMatchObject({
      verdict: 'dropped',
      steps: [{ decision: { kind: 'not-forwarding' } }],
    });
  });

  test('shares by weight, and takes none of weight 0', () => {
    const { virtualServers } = parseIpvsadm(
      '-A -t 192.0.2.1:80 -s wrr\n-a -t 192.0.2.1:80 -r 10.0.0.2:80 -m -w 3\n-a -t 192.0.2.1:80 -r 10.0.0.3:80 -m -w 1\n-a -t 192.0.2.1:80 -r 10.0.0.4:80 -m -w 0\n',
    );
    const fate = ask({ virtualServers }, { destination: readAddress('192.0.2.1') });
    expect(fate.endpoints.map(({ probability }) => probability)).toEqual([0.75, 0.25]);
  });

  test('looks into sets of networks', () => {
    const { sets } = parseIpsetSave('create far hash:net family inet\nadd far 10.0.0.0/8\n');
    const rule = '-m set --match-set far dst -j DROP';
    expect(ask({ ...filter(rule), sets }).verdict).toBe('dropped');
    expect(ask({ ...filter(rule), sets }, { destination: readAddress('11.0.0.1') }).verdict).toBe('forwarded');
  });
});

// kube-proxy marks a packet once for each reason to masquerade it: a second time must not take the mark away.
test.each([
  ['marked twice', ['--set-xmark 0x4000/0x4000', '--set-xmark 0x4000/0x4000'], '0x4000'],
  ['by --or-mark twice', ['--or-mark 0x4000', '--or-mark 0x4000'], '0x4000'],
  ['beside other bits', ['--set-mark 0x8001', '--set-xmark 0x4000/0x4000'], '0xc001'],
  ['as a whole', ['--set-mark 0x8001', '--set-mark 0x4000'], '0x4000'],
  ['down to some bits', ['--set-mark 0x40ff', '--and-mark 0xff'], '0xff'],
  ['and unmarked', ['--set-mark 0x4001', '--xor-mark 0x4000'], '0x1'],
  ['in the highest bit', ['--set-mark 0x1', '--or-mark 0x80000000'], '0x80000001'],
])('a packet %s has its mark', (_, changes, mark) => {
  const rules = changes.map((change) => `-j MARK ${change}`);
  expect(ask(filter(...rules, `-m mark --mark ${mark} -j DROP`)).verdict).toBe('dropped');
});

// icmp_err_convert: a program hears of these answers with a socket of TCP, and not with one of UDP.
test.each([
  ['-j REJECT --reject-with icmp-host-unreachable', 'dropped', 'refused'],
  ['-j REJECT --reject-with icmp-net-unreachable', 'dropped', 'refused'],
  ['-j REJECT --reject-with icmp-admin-prohibited', 'refused', 'refused'],
  ['-j REJECT --reject-with icmp-host-prohibited', 'refused', 'refused'],
  ['-j REJECT', 'refused', 'refused'],
])('%s: UDP is %s, TCP is %s', (rule, udp, tcp) => {
  expect(ask(filter(rule), { protocol: 'udp' }).verdict).toBe(udp);
  expect(ask(filter(rule), { protocol: 'tcp' }).verdict).toBe(tcp);
});

describe('what decides between near rules', () => {
  const chain = (hook: string, ...rules: readonly string[]): string =>
    `table ip t {\n chain ${hook} {\n type filter hook ${hook} priority 0; policy accept;\n${rules.join('\n')}\n }\n}\n`;
  const verdictOf = (rule: string, question: Partial<Packet> = {}) =>
    ask(nft(chain('forward', rule)), question).verdict;

  test.each([
    ['reject with tcp reset', 'tcp', 'refused'],
    // nft has such a rule ask for TCP, and does not print it.
    ['reject with tcp reset', 'udp', 'forwarded'],
    ['reject with icmp host-unreachable', 'udp', 'dropped'],
    ['reject with icmpx no-route', 'udp', 'dropped'],
    ['reject with icmpx admin-prohibited', 'udp', 'refused'],
    ['tcp dport 70-90 drop', 'tcp', 'dropped'],
    ['tcp dport { 1-79, 81-90 } drop', 'tcp', 'forwarded'],
    ['tcp dport != 80 drop', 'tcp', 'forwarded'],
    ['tcp dport < 80 drop', 'tcp', 'forwarded'],
    ['tcp dport <= 80 drop', 'tcp', 'dropped'],
    ['tcp dport > 80 drop', 'tcp', 'forwarded'],
    ['tcp dport >= 80 drop', 'tcp', 'dropped'],
    ['ip saddr . tcp dport { 192.0.2.9 . 80-81 } drop', 'tcp', 'dropped'],
    ['ip saddr . tcp dport { 192.0.2.8 . 80-81 } drop', 'tcp', 'forwarded'],
    ['ct state vmap { established : accept, new : drop }', 'tcp', 'dropped'],
    ['ct state established,related drop', 'tcp', 'forwarded'],
    ['tcp flags & (fin | syn | rst | ack) == syn drop', 'tcp', 'dropped'],
    ['tcp flags & (fin | syn | rst | ack) != syn drop', 'tcp', 'forwarded'],
    ['tcp flags syn / syn,rst drop', 'tcp', 'dropped'],
    ['tcp flags ! syn drop', 'tcp', 'forwarded'],
    ['continue drop', 'tcp', 'dropped'],
    ['limit rate 5/second drop', 'tcp', 'unknown'],
    ['limit rate 5/second accept', 'tcp', 'forwarded'],
    [
      'meta mark set 0x80 ct mark set meta mark meta mark set 0 meta mark set ct mark and 0xf0 mark 0x80 drop',
      'tcp',
      'dropped',
    ],
    ['icmp type echo-request drop', 'icmp', 'dropped'],
    ['icmp type { echo-reply, time-exceeded } drop', 'icmp', 'forwarded'],
    ['ip ttl 64 drop', 'tcp', 'unknown'],
    ['queue to 1', 'tcp', 'unknown'],
    ['update @seen { ip saddr timeout 5m } drop', 'tcp', 'dropped'],
  ] as const)('%s, of %s: %s', (rule, protocol, verdict) => {
    expect(verdictOf(rule, { protocol: protocol as PacketProtocol })).toBe(verdict);
  });

  test('a range in a named set holds its ports, and a name that is not understood compares with none', () => {
    const named = (elements: string): string =>
      `table ip t {\n set ports {\n type inet_service\n flags interval\n elements = { ${elements} }\n }\n chain c {\n type filter hook forward priority 0; policy accept;\n tcp dport @ports drop\n }\n}\n`;
    expect(ask(nft(named('70-90'))).verdict).toBe('dropped');
    expect(ask(nft(named('81-90'))).verdict).toBe('forwarded');
    const unread = ask(nft(named('http')));
    expect([unread.verdict, unread.reasons[0]?.kind]).toEqual(['unknown', 'unread-value']);
  });

  test('of chains of one hook and priority, the kernel enters the one that was registered last first', () => {
    const table = (name: string, target: string): string =>
      `table ip ${name} {\n chain pre {\n type nat hook prerouting priority -100; policy accept;\n dnat to ${target}\n }\n}\n`;
    const state = nft(table('a', '10.0.0.11:80') + table('b', '10.0.0.12:80'));
    const listed = new Map([
      ['ipv4 a', { listing: 'one', place: 0 }],
      ['ipv4 b', { listing: 'one', place: 1 }],
    ]);
    const of = (known: Knowledge['listed'], others: Partial<KernelState> = {}, isWhole = true) =>
      prepareEvaluator(
        { ...emptyState, ...state, ...others },
        { ...knowAll(eth0), listed: known, listsRuleset: () => isWhole },
      )({
        source: readAddress('192.0.2.9'),
        destination: readAddress('10.0.0.1'),
        protocol: 'tcp',
        port: 80,
        enters: {},
      });
    expect(of(listed).endpoints.map(({ address }) => address.text)).toEqual(['10.0.0.12']);
    const elsewhere = new Map([...listed, ['ipv4 b', { listing: 'other', place: 0 }] as const]);
    expect(of(elsewhere)).toMatchObject({ verdict: 'unknown', reasons: [{ kind: 'unknown-order', isListable: true }] });
    // Not in nft's list of all tables, so of iptables-legacy.
    const rules = '*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j DNAT --to-destination 10.0.0.13\nCOMMIT\n';
    for (const isWhole of [true, false])
      expect(of(listed, iptables(rules), isWhole).reasons).toMatchObject([
        { kind: 'unknown-order', isListable: !isWhole },
      ]);
  });

  test('what is not shown stops a packet where it would see it, and not before', () => {
    const gap = {
      family: 'ipv4',
      stations: stationsOf(['filter']),
      reason: { kind: 'unread-rule', of: 'table x' },
    } as const;
    const evaluate = (state: Partial<KernelState>) =>
      prepareEvaluator(
        { ...emptyState, ...state },
        { ...knowAll(eth0), gaps: [gap] },
      )({
        source: readAddress('192.0.2.9'),
        destination: readAddress('10.0.0.1'),
        protocol: 'tcp',
        port: 80,
        enters: {},
      });
    expect(evaluate({})).toMatchObject({ verdict: 'unknown', otherwise: { verdict: 'forwarded' } });
    expect(evaluate(iptables('*mangle\n:PREROUTING DROP [0:0]\nCOMMIT\n')).verdict).toBe('dropped');
  });

  test('goto does not come back to the rules behind it', () => {
    const text =
      '*filter\n:FORWARD ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n-A FORWARD -j A\n-A A -g B\n-A A -j DROP\n-A B -j RETURN\nCOMMIT\n';
    expect(ask(iptables(text)).verdict).toBe('forwarded');
    expect(ask(iptables(text.replace('-g B', '-j B'))).verdict).toBe('dropped');
  });

  test('a virtual server of port 0 takes all ports', () => {
    const { virtualServers } = parseIpvsadm('-A -t 192.0.2.1:0 -s rr -p\n-a -t 192.0.2.1:0 -r 10.0.0.2:0 -m -w 1\n');
    expect(ask({ virtualServers }, { destination: readAddress('192.0.2.1'), port: 8443 }).verdict).toBe('delivered');
  });

  test('without the connection tracking of IPVS, nothing is masqueraded', () => {
    const { virtualServers } = parseIpvsadm('-A -t 192.0.2.1:80 -s rr\n-a -t 192.0.2.1:80 -r 10.0.0.2:80 -m -w 1\n');
    const rules = iptables('*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n');
    const sourceWith = (value: string) =>
      ask(
        { ...rules, virtualServers, sysctls: new Map([['net.ipv4.vs.conntrack', value]]) },
        { destination: readAddress('192.0.2.1') },
      ).endpoints.map(({ source }) => (source === 'masqueraded' ? source : source.text));
    expect([sourceWith('1'), sourceWith('0')]).toEqual([['masqueraded'], ['192.0.2.9']]);
  });

  test('the kernel reads no ports of SCTP in a set of ports, nor of pings', () => {
    const { sets } = parseIpsetSave('create ports bitmap:port range 0-65535\nadd ports 80\n');
    const verdictFor = (protocol: PacketProtocol) =>
      ask({ ...filter('-m set --match-set ports dst -j DROP'), sets }, { protocol }).verdict;
    expect((['tcp', 'udp', 'sctp'] as const).map(verdictFor)).toEqual(['dropped', 'dropped', 'forwarded']);
  });

  test('an exception in a set of networks is the most specific', () => {
    const { sets } = parseIpsetSave(
      'create nets hash:net family inet\nadd nets 10.0.0.0/8\nadd nets 10.0.0.0/24 nomatch\n',
    );
    const rule = filter('-m set --match-set nets dst -j DROP');
    expect(ask({ ...rule, sets }).verdict).toBe('forwarded');
    expect(ask({ ...rule, sets }, { destination: readAddress('10.1.0.1') }).verdict).toBe('dropped');
  });

  test('another host throws away what comes from a loopback address', () => {
    const rules = iptables('*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -j DNAT --to-destination 10.0.0.2:80\nCOMMIT\n');
    const sysctls = new Map([['net.ipv4.conf.all.route_localnet', '1']]);
    const question = { source: readAddress('127.0.0.1'), destination: readAddress('127.0.0.1'), enters: undefined };
    expect(ask({ ...rules, sysctls }, question)).toMatchObject({
      verdict: 'dropped',
      steps: expect.arrayContaining([expect.objectContaining({ decision: { kind: 'loopback-source' } })]),
    });
  });
});
