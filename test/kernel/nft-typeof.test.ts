import { expect, test } from 'vitest';
import { parseNftText } from '../../src/kernel/nftables/parse-text.ts';

function readSet(declaration: string, listed: string) {
  const text = `table ip t {\n\tset s {\n\t\t${declaration}\n\t\telements = { ${listed} }\n\t}\n}\n`;
  const { tables, unread } = parseNftText(text);
  const { keyType, elements = [] } = tables[0]?.sets.get('s') ?? {};
  return {
    keyType,
    kinds: elements.flatMap(({ key }) => key.map(({ kind }) => kind)),
    reasons: unread.map(({ reason }) => reason),
  };
}

test.each([
  ['ip saddr . tcp dport', '10.0.0.1 . 22', ['ipv4_addr', 'inet_service'], ['address', 'number']],
  ['ip6 daddr', 'fd00::1', ['ipv6_addr'], ['address']],
  ['meta l4proto . iifname', 'tcp . "eth0"', ['inet_proto', 'iifname'], ['word', 'word']],
  ['meta mark', '0x1', ['mark'], ['number']],
])('a set typeof %s has their types', (fields, elements, keyType, kinds) => {
  expect(readSet(`typeof ${fields}`, elements)).toEqual({ keyType, kinds, reasons: [] });
});

test('a field that is not known', () => {
  expect(readSet('typeof osf name', '"Linux"').reasons).toContain('other-property');
});
