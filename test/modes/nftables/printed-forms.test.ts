import { describe, expect, test } from 'vitest';
import type { Family } from '../../../src/kernel/address.ts';
import { diffNftTables, elementMeaning, nftRuleMeaning } from '../../../src/kernel/nftables/nft-delta.ts';
import { formatNftRule } from '../../../src/kernel/nftables/format.ts';
import { parseNftText } from '../../../src/kernel/nftables/parse-text.ts';
import type { NftRule, NftTable } from '../../../src/kernel/nftables/table.ts';

const nftFamily = { ipv4: 'ip', ipv6: 'ip6' } as const;

function onlyTable({ tables, unread }: ReturnType<typeof parseNftText>): NftTable {
  expect(unread).toEqual([]);
  const [table, ...others] = tables;
  if (!table || others.length > 0) throw new Error(`${tables.length} tables`);
  return table;
}

function ruleOfText(rule: string, family: Family = 'ipv4'): NftRule {
  const table = onlyTable(parseNftText(`table ${nftFamily[family]} t {\n\tchain c {\n\t\t${rule}\n\t}\n}\n`));
  const [first] = table.chains.get('c')?.rules ?? [];
  if (!first) throw new Error(`no rule: ${rule}`);
  return first;
}

/** What kube-proxy writes, and what versions of nft print for it. */
const forms: readonly (readonly [written: string, printed: readonly string[], family?: Family])[] = [
  [
    'mark and 0x00004000 != 0 accept',
    [
      'meta mark & 0x00004000 != 0x00000000 accept',
      'meta mark and 0x4000 != 0x0 accept',
      'meta mark & 0x00004000 == 0x00004000 accept',
      'meta mark & 0x00004000 == 16384 accept',
    ],
  ],
  ['mark and 0x80000000 != 0 accept', ['meta mark != 0x00000000/1 accept']],
  ['mark set mark or 0x00004000', ['meta mark set meta mark | 0x00004000', 'meta mark set mark or 0x4000']],
  ['mark set mark xor 0x00000001', ['meta mark set meta mark ^ 0x00000001']],
  ['reject', ['reject with icmp port-unreachable', 'reject with icmp type port-unreachable']],
  ['reject', ['reject with icmpv6 port-unreachable', 'reject with icmpv6 type port-unreachable'], 'ipv6'],
  [
    'meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 80 }',
    [
      'meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 80 }',
      'meta l4proto 6 dnat ip to numgen random mod 2 map { 1 : 10.0.0.2 . 80, 0 : 10.0.0.1 . 80 }',
    ],
  ],
  [
    'meta l4proto udp dnat to [fd00::1]:53',
    ['meta l4proto udp dnat ip6 to [fd00::1]:53', 'meta l4proto 17 dnat to [fd00::1]:53'],
    'ipv6',
  ],
  ['numgen random mod 2 vmap { 0 : goto a, 1 : goto b }', ['numgen random mod 2 vmap { 1 : goto b, 0 : goto a }']],
  [
    'ip saddr != { 10.0.0.0/8, 10.1.0.0/16, 192.168.0.0/24, 192.168.1.0/24, 192.168.2.0/24 } drop',
    ['ip saddr != { 10.0.0.0/8, 192.168.0.0-192.168.2.255 } drop'],
  ],
  [
    'ip6 saddr != { 2001:db8::/33, 2001:db8:8000::/33 } drop',
    ['ip6 saddr != { 2001:db8::/32 } drop', 'ip6 saddr != 2001:db8::/32 drop'],
    'ipv6',
  ],
  [
    'ip saddr != { 10.0.0.1/32, 10.0.0.2 } drop',
    ['ip saddr != 10.0.0.1-10.0.0.2 drop', 'ip saddr != { 10.0.0.2, 10.0.0.1/32, 10.0.0.1 } drop'],
  ],
  ['ip saddr != { 10.0.0.2, 10.0.0.1, 10.0.0.2 } drop', ['ip saddr != { 10.0.0.1, 10.0.0.2 } drop']],
  ['ip saddr != { 192.0.2.1/32 } drop', ['ip saddr != 192.0.2.1 drop', 'ip saddr != { 192.0.2.1 } drop']],
  ['iifname veth* jump c2', ['iifname "veth*" jump c2', 'meta iifname "veth*" jump c2']],
];

describe('one meaning', () => {
  test.each(forms.map(([written, printed, family = 'ipv4']) => ({ written, printed, family })))(
    '$written',
    ({ written, printed, family }) => {
      const meaning = nftRuleMeaning(ruleOfText(written, family));
      for (const text of printed) expect(nftRuleMeaning(ruleOfText(text, family)), text).toBe(meaning);
    },
  );

  test.each([
    ['mark and 0x00004000 != 0 accept', 'mark and 0x00004000 0 accept'],
    ['mark and 0x00000003 != 0 accept', 'meta mark & 0x00000003 == 0x00000003 accept'],
    ['ip saddr != { 10.0.0.0/8 } drop', 'ip saddr { 10.0.0.0/8 } drop'],
    ['ip saddr != { 10.0.0.0/8 } drop', 'ip saddr != { 10.0.0.0/9 } drop'],
    // nft merges networks, but no single addresses: it lists these as they are.
    ['ip saddr != { 10.0.0.1, 10.0.0.2 } drop', 'ip saddr != 10.0.0.1-10.0.0.2 drop'],
    ['ip saddr != { 10.0.0.2, 10.0.0.3 } drop', 'ip saddr != 10.0.0.2/31 drop'],
    ['ip saddr != { 10.0.0.1, 10.0.0.3 } drop', 'ip saddr != 10.0.0.1-10.0.0.3 drop'],
    ['ip saddr != { 10.0.0.0/24, 10.0.2.0/24 } drop', 'ip saddr != 10.0.0.0-10.0.2.255 drop'],
    ['reject', 'reject with tcp reset'],
    ['reject', 'reject with icmp host-unreachable'],
    ['masquerade', 'masquerade fully-random'],
    ['jump c2', 'goto c2'],
    ['accept comment "a"', 'accept comment "b"'],
    ['accept', 'accept comment "a"'],
    ['numgen random mod 2 vmap { 0 : goto a, 1 : goto b }', 'numgen random mod 2 vmap { 0 : goto b, 1 : goto a }'],
  ])('%s is not %s', (one, other) => {
    expect(nftRuleMeaning(ruleOfText(one))).not.toBe(nftRuleMeaning(ruleOfText(other)));
  });
});

describe('what kpc does not write', () => {
  test.each([
    'ct state established, related accept',
    'tcp flags syn / fin , syn , rst , ack counter packets 0 bytes 0 drop',
    'numgen inc mod 2 vmap { 0 : goto a , 1 : goto b }',
    'numgen random mod 3 vmap { 0 : goto a , 1 : goto b }',
    'numgen random mod 2 vmap { 0 : goto a , 2 : goto b }',
    'numgen random mod 2 vmap { 0-1 : goto a }',
    'limit rate 5/second accept',
    'log prefix "a b"',
    'ip ttl < 64 drop',
    'ct original ip saddr 10.0.0.1 accept',
    'ip saddr vmap { 10.0.0.1 : accept }',
    'ip saddr . tcp dport != { 10.0.0.1 . 80, 10.0.0.2 . 90-99 } drop',
    'ct mark set mark and 0x000000ff xor 0x00000001',
    'mark set 0x00000001',
    'dnat to 10.0.0.1',
    'masquerade to :1024-65535',
    'update @seen { ip saddr timeout 5m limit rate over 10/second } drop',
  ])('is kept: %s', (text) => {
    expect(formatNftRule(ruleOfText(text))).toBe(text);
    expect(nftRuleMeaning(ruleOfText(text))).toBe(nftRuleMeaning(ruleOfText(text.replace(' ', '   '))));
  });
});

test.each([
  ['tcp flags & (fin | syn) == 0x0', { mask: ['fin', 'syn'], operator: '==', flags: [] }],
  ['tcp flags != syn / fin,syn', { mask: ['fin', 'syn'], operator: '!=', flags: ['syn'] }],
  ['tcp flags fin,psh', { mask: undefined, operator: 'any', flags: ['fin', 'psh'] }],
  ['tcp flags ! syn', { mask: undefined, operator: 'none', flags: ['syn'] }],
  ['tcp flags == syn', { mask: undefined, operator: '==', flags: ['syn'] }],
  ['numgen inc mod 3 vmap { 0-1 : goto a, 2 : jump b }', { verdicts: ['a', 'a', 'b'].map((chain) => ({ chain })) }],
  ['numgen inc mod 3 vmap { 0-9999 : goto a, 9-2 : jump b }', { kind: 'unknown' }],
  ['ip protocol 6', { right: { elements: [{ key: [{ text: 'tcp' }] }] } }],
])('%s is read', (text, read) => {
  expect(ruleOfText(`${text} drop`).expressions[0]).toMatchObject(read);
});

describe('tables', () => {
  const listed = `# Warning: table ip nat is managed by iptables-nft, do not touch!
table inet firewall { # handle 1
	flowtable f { hook ingress priority 0; devices = { eth0 }; }
	chain input { type filter hook input priority filter; policy drop; tcp dport { 22, 80 } accept; }
}
table ip kube-proxy { # handle 2
	comment "rules for kube-proxy"
	set affinity-X-a/b/tcp/__10.0.0.1/80 { # handle 22
		type ipv4_addr
		size 65535
		flags dynamic,timeout
		timeout 3h
		elements = { 192.0.2.1 expires 2h59m58s120ms,
			     192.0.2.2 timeout 1h expires 59m comment "kept" }
	}

	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
		comment "ClusterIP, ExternalIP and LoadBalancer IP traffic"
		elements = { 10.96.0.1 . tcp . 80 comment "a/b" : goto reject-chain, 10.96.0.2 . 17 . 53 : drop }
	}

	chain filter-output-pre-dnat { # handle 9
		type filter hook output priority dstnat - 10; policy accept;
		ct state new jump x # handle 12
	}
	chain nat-postrouting {
		type nat hook postrouting priority srcnat; policy accept;
	}
}
`;

  test('of other families are passed over, and comments, handles and warnings with them', () => {
    const table = onlyTable(parseNftText(listed));
    expect(table).toMatchObject({ family: 'ipv4', name: 'kube-proxy', comment: 'rules for kube-proxy' });
    expect([...table.chains.values()].map(({ name, base }) => [name, base?.priority])).toEqual([
      ['filter-output-pre-dnat', -110],
      ['nat-postrouting', 100],
    ]);
    expect(table.sets.get('affinity-X-a/b/tcp/__10.0.0.1/80')).toMatchObject({
      flags: ['dynamic', 'timeout'],
      timeoutSeconds: 10800,
      size: 65535,
      elements: [{ key: [{ kind: 'address', address: { text: '192.0.2.1' } }] }, { comment: 'kept' }],
    });
    expect(table.sets.get('service-ips')?.elements[0]).toMatchObject({ comment: 'a/b' });
    expect(table.sets.get('service-ips')?.elements.map(elementMeaning)).toEqual([
      '10.96.0.1 . tcp . 80 : goto reject-chain',
      '10.96.0.2 . udp . 53 : drop',
    ]);
  });

  test('that are not asked for are passed over', () => {
    expect(parseNftText(listed, (_, name) => name === 'other')).toEqual({ tables: [], unread: [] });
  });

  test('sets that rules write to compare without their elements, their size and the flag dynamic', () => {
    const set = (properties: string) =>
      parseNftText(`table ip t {\n set s {\n type ipv4_addr\n ${properties}\n }\n}\n`).tables;
    const made = set('flags dynamic, timeout\n timeout 10800s');
    const used = set('size 65535\n flags timeout\n timeout 3h\n elements = { 192.0.2.1 expires 5s }');
    expect(diffNftTables(made, used)).toEqual([]);
    expect(diffNftTables(made, set('flags dynamic, timeout\n timeout 1h'))).toMatchObject([
      { changes: [{ kind: 'set', from: {}, to: {} }] },
    ]);
  });

  test('lines that cannot be read are told with their numbers', () => {
    const text =
      'table ip t {\n\tct helper h {\n\t\ttype "ftp" protocol tcp;\n\t}\n\tset s {\n\t\tstrange 5\n\t}\n}\nwhat\n';
    expect(parseNftText(text).unread.map(({ line, reason }) => [line, reason])).toEqual([
      [2, 'other-object'],
      [6, 'other-property'],
      [9, 'other-line'],
    ]);
    const cut = 'table ip t {\n\tchain c {\n\t\t...\n\t}\n}\n';
    expect(parseNftText(cut).unread).toMatchObject([{ line: 3, reason: 'elided' }]);
    expect(parseNftText('table ip t {\n\tchain c {\n').unread).toMatchObject([{ reason: 'open-brace' }, {}]);
  });
});
