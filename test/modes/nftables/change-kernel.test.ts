import { describe, expect, test } from 'vitest';
import { diffNftTables, splitNftDelta } from '../../../src/kernel/nftables/nft-delta.ts';
import { applyNftDelta } from '../../support/apply-nft-delta.ts';
import { formatNftDelta } from '../../../src/kernel/nftables/format-delta.ts';
import { formatTables } from '../../../src/kernel/nftables/format.ts';
import type { NftTable } from '../../../src/kernel/nftables/table.ts';
import { parseNftText } from '../../../src/kernel/nftables/parse-text.ts';
import { inNetwork, whyNoNetwork } from './network.ts';

const table = ({
  timeout = '3h',
  priority = '-100',
  chain = 'ip saddr @seen goto two',
  ports = '{ tcp . 80 : goto two }',
}: { timeout?: string; priority?: string; chain?: string; ports?: string } = {}) => `table ip kube-proxy {
	set seen {
		type ipv4_addr
		flags dynamic,timeout
		timeout ${timeout}
	}

	map ports {
		type inet_proto . inet_service : verdict
		elements = ${ports}
	}

	chain first {
		type nat hook output priority ${priority};
		jump one
		meta l4proto . th dport vmap @ports
	}

	chain one {
		${chain}
	}

	chain two {
		update @seen { ip saddr }
	}
}
`;

function tables(text: string): readonly NftTable[] {
  const { tables: read, unread } = parseNftText(text);
  expect(unread).toEqual([]);
  return read;
}

const delta = (from: string, to: string) => diffNftTables(tables(from), tables(to));
const missing = whyNoNetwork();

/** What is changed, and the lines that change it. */
const changes: readonly (readonly [what: string, to: string, lines: readonly string[]])[] = [
  ['a rule', table({ chain: 'accept' }), ['flush chain ip kube-proxy one', 'add rule ip kube-proxy one accept']],
  [
    'the value of an element',
    table({ ports: '{ tcp . 80 : drop }' }),
    ['delete element ip kube-proxy ports { tcp . 80 }', 'add element ip kube-proxy ports { tcp . 80 : drop }'],
  ],
  [
    'one element of two',
    table({ ports: '{ tcp . 80 : goto two, udp . 53 : drop }' }),
    ['add element ip kube-proxy ports { udp . 53 : drop }'],
  ],
  [
    'the priority of a hook',
    table({ priority: '-90' }),
    [
      'flush chain ip kube-proxy first',
      'delete chain ip kube-proxy first',
      'add chain ip kube-proxy first { type nat hook output priority -90; policy accept; }',
      'add rule ip kube-proxy first jump one',
      'add rule ip kube-proxy first meta l4proto . th dport vmap @ports',
    ],
  ],
  [
    'the timeout of a set that rules look up and write to',
    table({ timeout: '1h' }),
    [
      'flush chain ip kube-proxy one',
      'flush chain ip kube-proxy two',
      'delete set ip kube-proxy seen',
      'add set ip kube-proxy seen { type ipv4_addr; flags dynamic, timeout; timeout 3600s; }',
      'add rule ip kube-proxy one ip saddr @seen goto two',
      'add rule ip kube-proxy two update @seen { ip saddr }',
    ],
  ],
  [
    'a chain with all that leads to it',
    table({ chain: 'accept', ports: '{ tcp . 80 : drop }' }).replace(/\n\tchain two[^}]*\{[^}]*\}\n\t\}\n/, ''),
    [
      'flush chain ip kube-proxy one',
      'flush chain ip kube-proxy two',
      'delete element ip kube-proxy ports { tcp . 80 }',
      'delete chain ip kube-proxy two',
      'add rule ip kube-proxy one accept',
      'add element ip kube-proxy ports { tcp . 80 : drop }',
    ],
  ],
  [
    'a counter, which must be there before the rule that counts in it',
    table({ chain: 'counter name "hits" accept' }).replace('\tset seen', '\tcounter hits {\n\t}\n\n\tset seen'),
    [
      'flush chain ip kube-proxy one',
      'add counter ip kube-proxy hits',
      'add rule ip kube-proxy one counter name "hits" accept',
    ],
  ],
  ['all of it', '', ['delete table ip kube-proxy']],
];

describe('a change of', () => {
  test.each(changes)('%s is made by these lines', (_, to, lines) => {
    expect(formatNftDelta(delta(table(), to)).trimEnd().split('\n')).toEqual(lines);
    expect(diffNftTables(applyNftDelta(tables(table()), delta(table(), to)), tables(to))).toEqual([]);
  });

  test.skipIf(missing !== undefined).each(changes)('%s is taken by a real kernel, there and back', (_, to) => {
    const files = {
      'first.nft': table(),
      'there.nft': formatNftDelta(delta(table(), to)),
      'back.nft': formatNftDelta(delta(to, table())),
    };
    const { listed } = inNetwork(
      'nft -f first.nft; nft -f there.nft; nft list ruleset >there; nft -f back.nft; nft list ruleset >back',
      files,
      ['there', 'back'],
    );
    expect(diffNftTables(tables(listed['there'] ?? ''), tables(to))).toEqual([]);
    expect(diffNftTables(tables(listed['back'] ?? ''), tables(table()))).toEqual([]);
  });

  test.skipIf(missing !== undefined)('other things leaves the elements that rules have made', () => {
    const to = table({ chain: 'accept', priority: '-90' });
    const { listed } = inNetwork(
      'nft -f first.nft; nft add element ip kube-proxy seen { 192.0.2.7 }; nft -f change.nft; nft list ruleset >after',
      { 'first.nft': table(), 'change.nft': formatNftDelta(delta(table(), to)) },
      ['after'],
    );
    const [after] = tables(listed['after'] ?? '');
    expect(after?.sets.get('seen')?.elements).toMatchObject([{ key: [{ address: { text: '192.0.2.7' } }] }]);
    expect(diffNftTables(after ? [after] : [], tables(to))).toEqual([]);
  });
});

test('a chain that goes is emptied first, and deleted in the second part', () => {
  const to = table({ chain: 'accept', ports: '{ tcp . 80 : drop }' }).replace(
    /\n\tchain two[^}]*\{[^}]*\}\n\t\}\n/,
    '',
  );
  const { additions, removals } = splitNftDelta(delta(table(), to));
  expect(formatNftDelta(additions)).toContain('flush chain ip kube-proxy two\n');
  expect(formatNftDelta(additions)).not.toContain('delete chain');
  expect(formatNftDelta(removals)).toBe('delete chain ip kube-proxy two\n');
});

test('a counter that goes is deleted in the second part, after the rules that counted in it', () => {
  const counting = table({ chain: 'counter name "hits" accept' }).replace(
    '\tset seen',
    '\tcounter hits {\n\t}\n\n\tset seen',
  );
  const { additions, removals } = splitNftDelta(delta(counting, table()));
  expect(formatNftDelta(additions)).toContain('flush chain ip kube-proxy one\n');
  expect(formatNftDelta(additions)).not.toContain('counter');
  expect(formatNftDelta(removals)).toBe('delete counter ip kube-proxy hits\n');
});

test('a new table is written as a bundle has it', () => {
  expect(formatNftDelta(diffNftTables([], tables(table())))).toBe(formatTables(tables(table())));
});
