// What is wrong in one part of a document hides nothing of the others, and is reported once, at its place.
import { expect, test } from 'vitest';
import { mostOfCode, type Finding } from '../../src/base/findings/finding.ts';
import { readConfigText, resolveSettings } from '../../src/input/configuration/read-settings.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { sortDiagnostics } from '../../src/input/sort-diagnostics.ts';

function placesOf(findings: readonly Finding[]): readonly string[] {
  return sortDiagnostics(findings).map(({ code, place }) => {
    const { line, column } = place?.locate() ?? {};
    return `${line}:${column} ${code}`;
  });
}

function findingsOf(text: string, skipInvalid = false): readonly Finding[] {
  return collectFiles([new TextFile('in.yaml', text)], { skipInvalid }).diagnostics;
}

const head = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec:\n';

const lacking = `${head}  clusterIP: x\n  externalIPs: [.nan, y]\n  1.5: a\n  ports: [{ port: .inf }, { port: !!int b }]\n`;

test('values that JSON lacks are reported beside the other errors of their document', () => {
  expect(placesOf(findingsOf(lacking)).filter((each) => !each.endsWith('unnamed-port'))).toEqual([
    '5:14 bad-value',
    '6:17 bad-yaml',
    '6:23 bad-value',
    '7:3 bad-yaml',
    '8:19 bad-yaml',
    '8:41 bad-yaml',
  ]);
});

test('a document with such a value is no part of what is left when it is skipped', () => {
  const right =
    'apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}\n';
  const wrong = right.replace('name: a', 'name: b, labels: {x: .nan}');
  const read = collectFiles([new TextFile('in.yaml', `${right}---\n${wrong}`)], { skipInvalid: true });
  expect(read.services.map(({ object }) => object.metadata.name)).toEqual(['a']);
});

test.each([
  ['9007199254740993', '9007199254740993'],
  ['123456789012345678901234567890', '123456789012345678901234567890'],
  ['8.50', '8.50'],
])('the number %s is shown as it is written', (number, written) => {
  for (const text of [
    `${head}  clusterIP: 10.96.0.1\n  ports: [{ port: ${number} }]\n`,
    `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"clusterIP":"10.96.0.1","ports":[{"port":${number}}]}}`,
  ])
    expect(findingsOf(text)).toMatchObject([{ code: 'bad-value', arguments: { found: { type: 'number', written } } }]);
});

const nulls = `${head}  clusterIP: 10.96.0.1\n  clusterIPs: [10.96.0.1, null, 3]\n  ports: [{ port: 80 }]\n`;

test('an item that is wrong has one error, and its list none', () => {
  expect(placesOf(findingsOf(nulls))).toEqual(['6:27 bad-value', '6:33 bad-value']);
});

test('an item of a setting that is wrong has one error', () => {
  const text =
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nnodePortAddresses: [null, 3, x]\nipvs: {excludeCIDRs: [null]}\n';
  const { config, diagnostics } = readConfigText(new TextFile('config.yaml', text));
  const settings = resolveSettings(config, {});
  expect(placesOf([...diagnostics, ...settings.diagnostics])).toEqual([
    '3:21 bad-value',
    '3:27 bad-value',
    '3:30 bad-value',
    '4:23 bad-value',
  ]);
});

const many = 20_000;

test.each([
  ['items', `  externalIPs:\n${'  - 3\n'.repeat(many)}`, 'bad-value', 'error'],
  ['fields', Array.from({ length: many }, (_, i) => `  f${i}: 3\n`).join(''), 'unknown-field', 'warning'],
] as const)('of very many wrong %s all are counted, and those shown have places', (_, lines, code, severity) => {
  const text = `${head}  clusterIP: 10.96.0.1\n  ports: [{ port: 80 }]\n${lines}`;
  const findings = findingsOf(text);
  const shown = findings.filter((each) => each.code === code);
  expect(shown.map(({ place }) => place?.locate().line).at(-1)).toBe(mostOfCode + (code === 'bad-value' ? 7 : 6));
  expect(findings).toContainEqual(
    expect.objectContaining({ code: 'not-shown', arguments: { severity, count: many - mostOfCode, of: code } }),
  );
});
