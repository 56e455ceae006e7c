// Rules that keep a packet from kube-proxy's rules, and jumps that kube-proxy's masquerading lacks: the answer names them.
import { describe, expect, test } from 'vitest';
import { open, trace } from '../../src/library/index.ts';

const addresses = `2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 192.168.50.11/24 scope global eth0
`;
const nat = [
  '-A PREROUTING -j KUBE-SERVICES',
  '-A OUTPUT -j KUBE-SERVICES',
  '-A POSTROUTING -j KUBE-POSTROUTING',
  '-A KUBE-SERVICES -d 10.96.7.1/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA',
  '-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/web:http -> 10.244.2.31:8080" -j KUBE-SEP-AAAAAAAAAAAAAAAA',
  '-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m tcp -j DNAT --to-destination 10.244.2.31:8080',
  '-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN',
  '-A KUBE-POSTROUTING -j MASQUERADE',
];
const filter = [
  '-A FORWARD -j KUBE-FORWARD',
  '-A FORWARD -j KUBE-SERVICES',
  '-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT',
  '-A KUBE-SERVICES -d 10.96.7.5/32 -p tcp -m comment --comment "shop/empty has no endpoints" -m tcp --dport 80 -j REJECT',
];

function tableOf(name: string, rules: readonly string[]): string {
  const chains = ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'].map((chain) => `:${chain} ACCEPT [0:0]`);
  return [
    `*${name}`,
    ...chains.filter((chain) => name === 'filter' || !chain.includes('FORWARD')),
    ...rules,
    'COMMIT',
    '',
  ].join('\n');
}

function notesOf(inNat: readonly string[], inFilter: readonly string[], to: string, more = ''): readonly string[] {
  const [side] = open({ node: tableOf('nat', inNat) + tableOf('filter', inFilter) + addresses + more }).snapshots;
  if (!side) throw new Error('not opened');
  return trace({ side, from: '10.244.1.9', to }).trace?.traces[0]?.notes ?? [];
}

const web = '10.96.7.1:80';
const empty = '10.96.7.5:80';

describe('a rule ahead of the rule of the Service is named', () => {
  test.each([
    ['-A KUBE-SERVICES -d 10.96.7.1/32 -j RETURN', 'nat KUBE-SERVICES rule 1', web],
    ['-A PREROUTING -g OTHER\n-A OTHER -s 10.0.0.1/32 -j ACCEPT', 'nat PREROUTING rule 1', web],
  ])('%s', (rule, place, to) => {
    expect(notesOf([...rule.split('\n'), ...nat], filter, to).join()).toContain(`${place} keeps`);
  });
  test.each(['-A FORWARD -g KUBE-FORWARD', '-A FORWARD -j ACCEPT', '-A FORWARD -j RETURN'])('%s', (rule) => {
    expect(notesOf(nat, [rule, ...filter], empty).join()).toContain('filter FORWARD rule 1 keeps');
    expect(notesOf(nat, [rule, ...filter], web)).toEqual([]);
  });
  test('but an own jump to the chain of Services keeps nothing from them', () => {
    expect(notesOf(['-A PREROUTING -g KUBE-SERVICES', ...nat.slice(1)], filter, web)).toEqual([]);
  });
});

describe('a jump that masquerading needs is named', () => {
  const servers = `$ ipvsadm -Ln
IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.7.1:80 rr
  -> 10.244.2.31:8080             Masq    1      0          0
3: kube-ipvs0: <BROADCAST,NOARP> mtu 1500
    inet 10.96.7.1/32 scope global kube-ipvs0
`;
  const own = ['-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT', ...nat.slice(-2)];
  const jumps = nat.slice(0, 3);
  test.each([
    ['PREROUTING', 'KUBE-SERVICES'],
    ['POSTROUTING', 'KUBE-POSTROUTING'],
  ])('from %s', (from, to) => {
    const left = jumps.filter((jump) => !jump.startsWith(`-A ${from} `));
    const sets =
      'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536\nadd KUBE-CLUSTER-IP 10.96.7.1,tcp:80\n';
    expect(notesOf([...left, ...own], [], web, sets + servers).join()).toContain(`nothing in ${from} leads to ${to}`);
    expect(notesOf([...jumps, ...own], [], web, sets + servers).join()).not.toContain('nothing in');
  });
});
