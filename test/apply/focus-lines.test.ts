import { expect, test } from 'vitest';
import { focusOn } from '../../src/apply/quick/focus.ts';
import type { NodeReading } from '../../src/apply/node/node-reading.ts';

const seen = 'KUBE-SVC-AAAAAAAAAAAAAAAA';
const aside = 'KUBE-SEP-BBBBBBBBBBBBBBBB';

const bundleWith = (rule: string) =>
  new Map([['iptables.restore', `*nat\n:${seen} - [0:0]\n-A ${seen} ${rule}\nCOMMIT\n`]]);

/** What stays in sight of a family's tables, where one chain of the bundle has changed. */
function look(ipv4: string): string {
  const focus = focusOn(bundleWith('-j ACCEPT'), bundleWith('-j RETURN'), []);
  const reading: NodeReading = {
    ipv4,
    ipv6: '',
    'nft ipv4': '',
    'nft ipv6': '',
    ipset: '',
    ipvsadm: '',
    'ipvs timeouts': '',
    addresses: '',
    settings: {},
  };
  return focus?.node(reading).ipv4 ?? 'everything';
}

test('chains of Service ports that have not changed are set aside, and rules of the chains that lead to them', () => {
  const others = [
    '*nat',
    ':PREROUTING ACCEPT [0:0]',
    ':KUBE-SERVICES - [0:0]',
    `:${seen} - [0:0]`,
    '-A PREROUTING -j KUBE-SERVICES',
    `-A ${seen} -j ACCEPT`,
  ];
  const services = [`:${aside} - [0:0]`, `-A KUBE-SERVICES -j ${seen}`, `-A ${aside} -j MARK --set-xmark 0x1`];
  const text = (lines: readonly string[]) => [...lines, 'COMMIT', ''].join('\n');
  expect(look(text([...others, ...services]))).toBe(text(others));
  expect(look(text(others))).toBe(text(others));
  // The last line may have no end.
  expect(look(`${others.join('\n')}\n-A ${aside} -j ACCEPT`)).toBe(`${others.join('\n')}\n`);
});

test.each<readonly [string, string]>([
  ['a name that goes on', `-A ${aside}-OLD -j ACCEPT\n`],
  ['a shorter name', '-A KUBE-SEP-BBBB -j ACCEPT\n'],
  ['a rule that leads there', `-A FORWARD -j ${aside} \n`],
  // iptables takes any text for a comment and prints it as it is; JavaScript takes these characters for ends of lines.
  ...['\u2028', '\u2029', '\r'].map(
    (end) => ['a comment', `-A FORWARD -m comment --comment "x${end}-A ${aside} y${end}" -j DROP\n`] as const,
  ),
])("another program's line stays as it is: %s", (_, line) => {
  expect(look(line)).toBe(line);
});

test('a line is set aside to its end, whatever is in it', () => {
  const line = `-A ${aside} -m comment --comment "x\u2028-A FORWARD y" -j ACCEPT\n`;
  expect(look(`${line}-A FORWARD -j DROP\n`)).toBe('-A FORWARD -j DROP\n');
});
