// The addresses that kpc chooses for senders that stand for others.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { traceMatrix } from '../../src/ask/trace/matrix.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { open, trace } from '../../src/library/index.ts';
import { linesUnder } from '../../src/say/trace-answer.ts';
import { projectFolder } from '../support/run-kpc.ts';

const node = readFileSync(join(projectFolder, 'test/trace/two-endpoints.txt'), 'utf8');

/** Replaces a text, which must be there. */
function changed(old: string | RegExp, by: string): string {
  expect(node).toMatch(old);
  return node.replace(old, by);
}

function traced(dump: string, from: string, to: string) {
  const [side] = open({ 'node.txt': dump }).snapshots;
  return side && trace({ side, from, to }).trace?.traces[0];
}

test.each([
  ['listed as broadcast', '', 'broadcast 10.244.1.255 dev cni0 table local proto kernel scope link src 10.244.1.1'],
  ['the last of its network', 'inet 10.244.1.1/25', '10.244.1.128/32 dev cni0'],
])('no pod has an address that is %s', (_, link, route) => {
  const base = link === '' ? changed(/^1: lo[^]*?^default/m, 'default') : changed('inet 10.244.1.1/24', link);
  const found = traced(`${base}${route}\n`, 'pod', '10.96.0.80:80');
  expect(found?.from.address).toMatch(/^10\.244\.1\.(?!0$|127$|128$|255$)/);
});

test('rules that name a network that no pod here is in: the table says that no example address is known', () => {
  const [side] = open({ 'node.txt': node.replaceAll('10.244.0.0/16', '10.200.0.0/16') }).snapshots;
  const scene = side && sceneOf(side);
  const matrix = scene && traceMatrix(scene.side.ports, scene);
  const asked = matrix?.open.map(({ from, why }) => ({ from, what: why.arguments }));
  expect(asked).toContainEqual({ from: 'pod', what: { problem: 'no-address-for', sender: 'pod' } });
  expect(scene && matrix && linesUnder(matrix, scene).join('\n')).toContain('such as 10.244.1.5');
});
