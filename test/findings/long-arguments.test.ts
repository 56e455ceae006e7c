import { mostOfCode } from '../../src/base/findings/finding.ts';
import { describe, expect, test } from 'vitest';
import { compile } from '../../src/library/compile.ts';
import { triesAll } from '../support/rounds.ts';

const long = 'a'.repeat(200_000);

function service(fields: object): string {
  const metadata = { name: 'web', namespace: 'default' };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }], ...fields } });
}

describe('what is very long is cut in a diagnostic', () => {
  test.each<[string, string]>([
    ['a value', service({ type: long })],
    ['a name of a port', service({ ports: [{ port: 80, name: long }] })],
    ['a key that is not known', service({ [long]: 1 })],
    ['a key of a map', service({ selector: { [long]: 1 } })],
    ['a half of a surrogate pair at the place of the cut', service({ type: `${'a'.repeat(4092)}\u{1F600}${long}` })],
  ])('%s', (_, text) => {
    const { diagnostics } = compile({ manifests: [{ name: 'svc.json', text }], proxyMode: 'ipvs' });
    expect(diagnostics.length).toBeGreaterThan(0);
    expect(JSON.stringify(diagnostics).length).toBeLessThan(20_000);
  });
});

test('a text that an alias makes the value of thousands of fields is no more than can be written', () => {
  const first = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: s, namespace: default, annotations: {x: &a "${long}"}}, spec: {type: *a}}
`;
  const others = Array.from(
    { length: triesAll ? 3000 : mostOfCode },
    (_, i) => `- {apiVersion: v1, kind: Service, metadata: {name: s${i}, namespace: default}, spec: {type: *a}}\n`,
  );
  const { diagnostics } = compile({
    manifests: [{ name: 'svc.yaml', text: first + others.join('') }],
    proxyMode: 'ipvs',
  });
  expect(diagnostics.filter(({ code }) => code === 'bad-value')).toHaveLength(mostOfCode);
  expect(JSON.stringify(diagnostics).length).toBeLessThan(50_000_000);
});
