import { describe, expect, test } from 'vitest';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { parseIpsetSave } from '../../src/kernel/ipset/ipset.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';
import { emptyState, type KernelState } from '../../src/kernel/state.ts';
import { prepare } from '../../src/packet/evaluate.ts';
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
  const evaluate = prepare({ ...emptyState, ...state }, eth0);
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
    ['meta skuid lo drop', 'unknown'],
    ['oifname lo drop', 'forwarded'],
    ['oifname != lo drop', 'dropped'],
    ['oifname eth1 drop', 'unknown'],
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
    ['-p tcp --sport 40000 -j DROP', 'unknown'],
    ['-j NFQUEUE --queue-num 1', 'unknown'],
    ['-m set --match-set elsewhere src -j DROP', 'unknown'],
  ])('%s: %s', (rule, verdict) => {
    expect(ask(filter(rule)).verdict).toBe(verdict);
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
