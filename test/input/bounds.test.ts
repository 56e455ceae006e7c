import { compile } from '../../src/library/index.ts';
import { expect, test } from 'vitest';
import { holdsMoreItems, TextBudget } from '../../src/base/bounds.ts';
import { Tally } from '../../src/base/findings/finding.ts';
import { splitOutputs } from '../../src/dumps/split-outputs.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { LineList, lineOf, countUnread, readLines } from '../../src/kernel/lines.ts';

test('lines that are not empty are counted over all texts of an input, and others cost nothing', () => {
  const budget = new TextBudget({ lines: 10, bytes: 1000 });
  expect(budget.add('\n\r\n'.repeat(100))).toBeUndefined();
  expect(budget.add('a\n\n\n'.repeat(6))).toBeUndefined();
  expect(budget.add('b\n'.repeat(4))).toBeUndefined();
  expect(budget.add('c\n')).toEqual({ of: 'lines', most: 10 });
  expect(budget.add('c'.repeat(1000))).toEqual({ of: 'bytes', most: 1000 });
});

test.each([
  ['null,'.repeat(9), false],
  ['{},'.repeat(9), true],
  ['['.repeat(11), true],
  [`"${',['.repeat(20)}\\","\\\\",`, false],
  [`"${','.repeat(20)}`, false],
])('the values of JSON are counted without parsing it, those in texts not: %s', (text, expected) => {
  expect(holdsMoreItems(text + ' '.repeat(21), 10)).toBe(expected);
});

test('of one code and severity some are made, and the others counted', () => {
  const tally = new Tally(2);
  const admitted = Array.from({ length: 5 }, () => tally.admits('bad-value', 'error'));
  expect(admitted).toEqual([true, true, false, false, false]);
  expect(tally.admits('bad-value', 'warning')).toBe(true);
  expect(tally.admits('missing-field', 'error')).toBe(true);
  expect(tally.rest('in.yaml').map(({ code, arguments: details }) => [code, details])).toEqual([
    ['not-shown', { severity: 'error', count: 3, of: 'bad-value' }],
  ]);
});

test.each(['{}', '[]', 'null', '{"kind":"Service","apiVersion":"v1"}'])(
  'a list of wrong items says how many are wrong: %s',
  (item) => {
    const text = `{"kind":"List","apiVersion":"v1","items":[${`${item},`.repeat(999)}${item}]}`;
    const { diagnostics } = collectFiles([new TextFile('in.json', text)], { mostOfCode: 5 });
    const made = diagnostics.filter(({ code, severity }) => code !== 'not-shown' && severity === 'error');
    const rest = diagnostics.flatMap((each) => (each.code === 'not-shown' ? [each.arguments] : []));
    for (const { count, of } of rest) {
      expect(made.filter(({ code }) => code === of)).toHaveLength(5);
      expect(count + 5).toBeGreaterThanOrEqual(1000);
    }
    expect(rest.length).toBeGreaterThan(0);
  },
);

test('keeps some hundred lines of one reason, and counts the others', () => {
  const unread = readLines('x\n'.repeat(5000), [], () => 'other-line');
  expect(unread.length).toBeLessThan(1000);
  expect(unread[0]).toMatchObject({ line: 1, text: 'x' });
  expect(countUnread(unread)).toBe(5000);
});

test('the empty lines of a dump cost no more than their characters', () => {
  const list = new LineList();
  for (const line of ['', 'a', ...Array.from({ length: 1000 }, () => ''), 'b']) list.push(line);
  expect(list.parts()).toEqual(['', 'a', '\n'.repeat(999), 'b']);
});

test('a dump with empty lines says the same, with the numbers of its own lines', () => {
  const head = '*nat\n:KUBE-SERVICES - [0:0]\n';
  const empty = '\n'.repeat(5000);
  const read = (between: string) =>
    readDump(new Map([['node.txt', `${head}${between}-A KUBE-SERVICES -j ACCEPT\nx\nCOMMIT\n`]]));
  expect(read(empty).state).toEqual(read('').state);
  expect(read(empty).faults.map(({ line }) => line)).toEqual(read('').faults.map(({ line }) => (line ?? 0) + 5000));
  const [output] = splitOutputs(`${head}${empty}COMMIT\n`).outputs;
  expect(lineOf(output?.text ?? '', 5003)).toBe('COMMIT');
});

test.each([1, 63, 64, 65, 129, 500])('finds a line and an offset in a long file: line %i', (line) => {
  const lines = Array.from({ length: 500 }, (_, i) => (i % 3 === 0 ? '' : `line ${i + 1}`));
  const file = new TextFile('in.yaml', `${lines.join('\n')}\n`);
  const offset = lines.slice(0, line - 1).join('\n').length + (line === 1 ? 0 : 1);
  expect(file.offsetOf(line)).toBe(offset);
  expect(file.lineAt(line)).toBe(lines[line - 1]);
  expect(file.locationAt(offset)).toEqual({ file: 'in.yaml', line, column: 1 });
});

test('what is wrong in a configuration is made to a bound, and counted; of a flag, all of it is made', () => {
  const wrong = Array.from({ length: 400 }, (_, i) => `x${i}`).join(',');
  const text = `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: "${wrong}"\n`;
  const manifests = {
    'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }',
  };
  const inFile = compile({ manifests, config: { name: 'config.yaml', text } }).diagnostics;
  const named = compile({ manifests, clusterCidr: wrong }).diagnostics;
  const counts = [inFile, named].map((all) => all.filter(({ code }) => code === 'bad-value').length);
  expect(counts).toEqual([300, 400]);
  expect(inFile.filter(({ code }) => code === 'not-shown')).toMatchObject([
    { place: { file: 'config.yaml' }, severity: 'error' },
  ]);
  expect(named.some(({ code }) => code === 'not-shown')).toBe(false);
});
