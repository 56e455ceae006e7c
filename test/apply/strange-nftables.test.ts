import { describe, expect, test } from 'vitest';
import { listNftChanges } from '../../src/ask/changes/nft-changes.ts';
import { countsOf } from '../../src/ask/changes/kernel-change.ts';
import { describeKernelChange } from '../../src/say/changes.ts';
import type { SideOwners } from '../../src/kube-proxy/owners.ts';
import { diffNftTables, splitNftDelta } from '../../src/kernel/nftables/nft-delta.ts';
import { applyNftDelta } from '../support/apply-nft-delta.ts';
import { formatNftDelta } from '../../src/kernel/nftables/format-delta.ts';
import { formatTables } from '../../src/kernel/nftables/format.ts';
import { isOwnedByProgram, type NftTable } from '../../src/kernel/nftables/table.ts';
import { parseNodeTables } from '../../src/apply/node/node-reading.ts';

const chains = '\tchain a {\n\t\ttype filter hook input priority filter; policy accept;\n\t\tdrop\n\t}\n';
const listed = (strange: string, rest = chains) => `table ip kube-proxy {\n${strange}${rest}}\n`;

function read(text: string): NftTable {
  const [table] = parseNodeTables(text);
  if (!table) throw new Error('no table');
  return table;
}

const plain = read(listed(''));
const ownerless = {
  ofNftChain: () => undefined,
  ofNftSet: () => undefined,
  ofNftElement: () => undefined,
};
const owners = { from: ownerless, to: ownerless } as unknown as SideOwners;
const told = (from: NftTable, to: NftTable) =>
  listNftChanges(diffNftTables([from], [to]), owners).map(
    (change) => `${change.change} ${describeKernelChange(change)}`,
  );

const strangeParts: readonly (readonly [what: string, text: string, heads: readonly string[]])[] = [
  ['a quota', '\tquota q {\n\t\tover 10 mbytes\n\t}\n', ['quota q']],
  ['a limit', '\tlimit l {\n\t\trate 10/second\n\t}\n', ['limit l']],
  ['a helper', '\tct helper h {\n\t\ttype "ftp" protocol tcp\n\t\tl3proto ip\n\t}\n', ['ct helper h']],
  [
    'a flowtable',
    '\tflowtable ft {\n\t\thook ingress priority filter\n\t\tdevices = { eth0 }\n\t}\n',
    ['flowtable ft'],
  ],
  ['a table that sleeps', '\tflags dormant\n\n', ['flags dormant']],
  ['several', '\tflags dormant\n\n\tquota q {\n\t\tover 10 mbytes\n\t}\n', ['flags dormant', 'quota q']],
];

describe.each(strangeParts)('%s', (_, text, heads) => {
  const strange = read(listed(text));

  test('is named, and the rest is not said to be new', () => {
    expect(strange.strange?.heads).toEqual(heads);
    expect(told(strange, plain)).toEqual([
      `changed table kube-proxy (nftables): recreated without ${heads.join(', ')}`,
    ]);
    expect(listNftChanges(diffNftTables([strange], [plain]), owners).flatMap(countsOf)).toEqual([
      ['table', 'changed', 1],
    ]);
  });

  test('goes: the table is replaced in one transaction', () => {
    const deltas = diffNftTables([strange], [plain]);
    expect(formatNftDelta(deltas)).toBe(formatTables([plain]));
    expect(diffNftTables(applyNftDelta([strange], deltas), [plain])).toEqual([]);
  });

  test('stays where the same is wanted, as a roll back does', () => {
    expect(diffNftTables([strange], [read(listed(text))])).toEqual([]);
    const other = read(listed(text, chains.replace('drop', 'accept')));
    expect(diffNftTables([strange], [other]).map(({ kind }) => kind)).toEqual(['change-table']);
  });

  test('that it comes back is told', () => {
    expect(told(plain, strange)).toEqual([`changed table kube-proxy (nftables): recreated with ${heads.join(', ')}`]);
  });

  test.each([
    ['of a table without it', plain],
    ['where no table is left', undefined],
  ])('comes back by its own text: %s', (_what, from) => {
    const deltas = diffNftTables(from ? [from] : [], [strange]);
    expect(formatNftDelta(deltas)).toBe(`table ip kube-proxy\ndelete table ip kube-proxy\n${listed(text)}`);
    expect(diffNftTables(applyNftDelta(from ? [from] : [], deltas), [strange])).toEqual([]);
  });
});

test('what else differs of a table that is made anew is told too', () => {
  const strange = read(listed('\tquota q {\n\t\tover 10 mbytes\n\t}\n', `${chains}\tchain b {\n\t\tdrop\n\t}\n`));
  expect(told(strange, plain)).toEqual([
    'changed table kube-proxy (nftables): recreated without quota q',
    'removed chain b (nftables) with 1 rule',
  ]);
});

test.each([
  ['\tflags owner\n\n', true],
  ['\tflags owner,persist\n\n', true],
  ['\tflags dormant,owner\n\n', true],
  ['\tflags persist\n\n', false],
  ['\tflags dormant\n\n', false],
  ['\tcounter owner {\n\t}\n', false],
  ['', false],
])('%j: whether a running program has it to itself', (text, isOwned) => {
  expect(isOwnedByProgram(read(listed(text)))).toBe(isOwned);
});

test.each([
  ['policy accept', 'policy drop'],
  ['priority filter', 'priority 5'],
  ['hook input', 'hook output'],
])('a chain whose %s is %s: the words name both', (ours, theirs) => {
  const other = read(listed('', chains.replace(ours, theirs)));
  const [text = ''] = told(other, plain);
  expect(text).toMatch(
    /^changed chain a \(nftables\): type filter hook .* → type filter hook input priority 0; policy accept$/,
  );
  expect(text).not.toContain('order');
});

describe('a named counter', () => {
  const counting = read(
    listed(
      '\tcounter hits {\n\t\tpackets 3 bytes 180\n\t}\n',
      `${chains}\tchain b {\n\t\tcounter name "hits" reject\n\t}\n`,
    ),
  );

  test('is an object of the table, and what it counted takes no part', () => {
    expect(counting.strange).toBeUndefined();
    const [same] = parseNodeTables(formatTables([counting]));
    expect(same && diffNftTables([counting], [same])).toEqual([]);
    expect(counting.chains.get('b')?.rules[0]?.expressions).toEqual([
      { kind: 'counter', counter: 'hits' },
      { kind: 'reject' },
    ]);
  });

  test('comes before the rules that count in it, and goes after them', () => {
    expect(formatNftDelta(diffNftTables([plain], [counting]))).toBe(
      'add counter ip kube-proxy hits\nadd chain ip kube-proxy b\nadd rule ip kube-proxy b counter name "hits" reject\n',
    );
    const { additions, removals } = splitNftDelta(diffNftTables([counting], [plain]));
    expect(formatNftDelta(additions)).toBe('flush chain ip kube-proxy b\n');
    expect(formatNftDelta(removals)).toBe('delete chain ip kube-proxy b\ndelete counter ip kube-proxy hits\n');
    expect(told(counting, plain)).toContain('removed counter hits (nftables)');
  });
});
