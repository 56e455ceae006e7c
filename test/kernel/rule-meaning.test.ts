import { describe, expect, test } from 'vitest';
import { formatRule } from '../../src/kernel/iptables/iptables.ts';
import { ruleMeaning } from '../../src/kernel/iptables/iptables-meaning.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { parseRule } from './parse-rule.ts';

function meaning(text: string): string {
  return ruleMeaning(parseRule(text) ?? { args: [] });
}

// Left what kube-proxy writes, right what iptables-save 1.8.9 prints for it.
const pairs: readonly (readonly [string, string])[] = [
  ['-s 127.0.0.0/8 -j RETURN', '-s 127.0.0.0/8 -j RETURN'],
  [
    '-m comment --comment "ns/svc:http cluster IP" -m tcp -p tcp -d 10.0.0.1 --dport 80 ! -s 10.4.0.0/14 -j KUBE-MARK-MASQ',
    '! -s 10.4.0.0/14 -d 10.0.0.1/32 -p tcp -m comment --comment "ns/svc:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ',
  ],
  [
    '-m comment --comment ns/svc:http -m recent --name KUBE-SEP-A --set -m tcp -p tcp -j DNAT --to-destination 10.1.1.1:80',
    '-p tcp -m comment --comment "ns/svc:http" -m recent --set --name KUBE-SEP-A --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.1.1.1:80',
  ],
  [
    '-m recent --name KUBE-SEP-A --rcheck --seconds 10800 --reap -j KUBE-SEP-A',
    '-m recent --rcheck --seconds 10800 --reap --name KUBE-SEP-A --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource -j KUBE-SEP-A',
  ],
  [
    '-m recent --name KUBE-SEP-A --rcheck --seconds 180 --reap -j KUBE-SEP-A',
    '-m recent --rcheck --seconds 180 --reap --name KUBE-SEP-A --rsource -j KUBE-SEP-A',
  ],
  [
    '-m statistic --mode random --probability 0.3333333333 -j KUBE-SEP-A',
    '-m statistic --mode random --probability 0.33333333349 -j KUBE-SEP-A',
  ],
  [
    '-m statistic --mode random --probability 0.0000100000 -j KUBE-SEP-A',
    '-m statistic --mode random --probability 0.00001000008 -j KUBE-SEP-A',
  ],
  ['-j MARK --or-mark 0x00004000', '-j MARK --set-xmark 0x4000/0x4000'],
  ['-j MARK --xor-mark 0x80000000', '-j MARK --set-xmark 0x80000000/0x0'],
  ['-m mark ! --mark 0x00004000/0x00004000 -j RETURN', '-m mark ! --mark 0x4000/0x4000 -j RETURN'],
  ['-m mark --mark 5 -j RETURN', '-m mark --mark 0x5 -j RETURN'],
  [
    '-m comment --comment "block" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
    '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment block -m conntrack ! --ctstate DNAT,ESTABLISHED,RELATED -j DROP',
  ],
  ['-d fd00::0:1 -j REJECT', '-d fd00::1/128 -j REJECT --reject-with icmp6-port-unreachable'],
  ['-j REJECT', '-j REJECT --reject-with icmp-port-unreachable'],
  ['-p 132 -j DROP', '-p sctp -j DROP'],
  ['-s 0.0.0.0/0 -p all -j DROP', '-j DROP'],
  ['-s ::/0 -j DROP', '-j DROP'],
  ['-d 10.1.2.3/8 -j DROP', '-d 10.0.0.0/8 -j DROP'],
  ['-p tcp -j DNAT --to-destination [fd00:0::1]:80', '-p tcp -j DNAT --to-destination [fd00::1]:80'],
  [
    '-s fd00::1 -m ipvs --vaddr fd00:0::9 --vproto tcp --vport 80 -j DROP',
    '-s fd00::1/128 -m ipvs --vproto 6 --vaddr fd00::9 --vport 80 -j DROP',
  ],
  [
    '-m set --match-set S dst,dst -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT',
    '-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -m set --match-set S dst,dst -j ACCEPT',
  ],
  ['-m comment --comment "it\'s" -j DROP', String.raw`-m comment --comment "it\'s" -j DROP`],
  ['-m limit --limit 5/min -j DROP', '-m limit  --limit 5/min -j  DROP'],
];

// Rules that look alike and are not.
const others: readonly (readonly [string, string])[] = [
  ['-d 10.0.0.1 -j DROP', '-d 10.0.0.1/31 -j DROP'],
  ['! -d 10.0.0.1 -j DROP', '-d 10.0.0.1 -j DROP'],
  ['! -d 0.0.0.0/0 -j DROP', '-j DROP'],
  ['-j MARK --or-mark 0x4000', '-j MARK --xor-mark 0x4000'],
  ['-j MASQUERADE', '-j MASQUERADE --random-fully'],
  ['-j KUBE-A', '-g KUBE-A'],
  ['-p tcp --dport 80 -j DROP', '-p udp --dport 80 -j DROP'],
  ['-m comment --comment a -j DROP', '-j DROP'],
  ['-m set --match-set S src,dst -j DROP', '-m set --match-set S dst,src -j DROP'],
  ['-m recent --name A --set', '-m recent --name A --rcheck --seconds 1'],
  ['-m recent --name A --set -j DROP', '-m recent --name A --set --mask 255.255.255.0 -j DROP'],
  ['-m statistic --mode random --probability 0.5', '-m statistic --mode random --probability 0.4999999'],
  // The one remembers what came to port 80, the other whatever came.
  ['-p tcp --dport 80 -m recent --name A --set -j DROP', '-p tcp -m recent --name A --set -m tcp --dport 80 -j DROP'],
  ['-j LOG --log-prefix "a "', '-j LOG --log-prefix a'],
];

describe('the meaning of a rule', () => {
  test.each(pairs)('%s is %s', (written, printed) => {
    expect(meaning(printed)).toBe(meaning(written));
  });

  test.each(others)('%s is not %s', (one, other) => {
    expect(meaning(one)).not.toBe(meaning(other));
  });

  test.each([...pairs.flat(), ...others.flat()])('of the meaning is the meaning: %s', (text) => {
    expect(meaning(meaning(text))).toBe(meaning(text));
  });
});

describe('a rule of kube-proxy is written as kube-proxy writes it', () => {
  test.each([
    '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS',
    '-m comment --comment "ns/svc:http -> 10.1.1.1:80" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-A',
    '-m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT',
    '-p sctp -m comment --comment "Kubernetes nodeport SCTP port" -m set --match-set KUBE-NODE-PORT-SCTP-HASH dst,dst -j KUBE-MARK-MASQ',
    '-s 10.1.1.1 -m ipvs --vaddr 10.0.0.1 --vproto sctp --vport 9999 -j DROP',
    '-m comment --comment "x y" ! -i veth+ -j KUBE-MARK-MASQ',
    '-j MARK --xor-mark 0x00000001',
  ])('%s', (text) => {
    expect(formatRule(parseRule(text) ?? { args: [] })).toBe(text);
  });
});

describe('iptables-save', () => {
  test('counters, comments, warnings and line ends do not matter', () => {
    const plain = parseIptablesSave('*filter\n:INPUT ACCEPT [0:0]\n:A - [0:0]\n-A A -j DROP\nCOMMIT\n');
    const noisy = parseIptablesSave(
      '# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\r\n' +
        '*filter\r\n:INPUT ACCEPT [12:3456]\r\n:A - [7:8]\r\n[1:60] -A A -j DROP -c 1 60\r\nCOMMIT\r\n# Completed on\r\n',
    );
    expect(noisy).toEqual(plain);
    expect(plain.tables.filter?.get('INPUT')?.policy).toBe('ACCEPT');
  });

  test('rules are put into chains that are not declared, by -I at its place', () => {
    const { tables, unread } = parseIptablesSave(
      '*nat\n-A OUTPUT -j A\n-I OUTPUT 2 -j B\n-I OUTPUT 1 -j C\n-I OUTPUT -j D\n-I OUTPUT 6 -j E\n',
    );
    expect(tables.nat?.get('OUTPUT')?.rules.map(formatRule)).toEqual(['-j D', '-j C', '-j A', '-j B']);
    const reason = 'past-end';
    expect(unread).toEqual([{ line: 6, text: '-I OUTPUT 6 -j E', reason }]);
  });
});
