// What the endpointslice controller made of random Pods, Services and Nodes (k8s.io/endpointslice v0.36.3), in
// fixtures/controller: from the Pods comes the same bundle as from the controller's slices.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fixturesFolder } from '../../support/fixtures.ts';
import { runKpc } from '../../support/run-kpc.ts';

const folder = join(fixturesFolder, 'controller');
const cases = readdirSync(folder).toSorted();

/** The documents of a case's file, each with its kind. */
function documents(name: string, file: string): readonly { readonly kind: string; readonly text: string }[] {
  const texts = readFileSync(join(folder, name, file), 'utf8')
    .split(/^---\n/m)
    .filter(Boolean);
  return texts.map((text) => ({ kind: /^kind: (\w+)$/m.exec(text)?.[1] ?? '', text }));
}

async function compile(texts: readonly string[], mode: string, node: string): Promise<string> {
  const args = ['compile', '-f', '-', '--proxy-mode', mode, '--node', node, '--allow-empty'];
  const { status, stdout, stderr } = await runKpc(args, { stdin: texts.join('---\n') });
  expect(status, stderr).toBe(0);
  return stdout;
}

test('there are enough cases, and slices with endpoints in most', () => {
  expect(cases.length).toBeGreaterThan(10);
  const texts = cases.map((name) => readFileSync(join(folder, name, 'slices.yaml'), 'utf8'));
  expect(texts.filter((text) => text.includes('targetRef')).length).toBeGreaterThan(cases.length * 0.8);
  expect(texts.some((text) => text.includes('forNodes'))).toBe(true);
});

describe.each(cases)('case %s', (name) => {
  const input = documents(name, 'input.yaml');
  const withoutPods = input.filter(({ kind }) => kind !== 'Pod').map(({ text }) => text);
  const withSlices = [...withoutPods, ...documents(name, 'slices.yaml').map(({ text }) => text)];
  const withPods = input.map(({ text }) => text);

  for (const mode of ['ipvs', 'iptables', 'nftables']) {
    test(`compiles to the same in mode ${mode}`, async () => {
      for (const node of ['node-1', 'node-2']) {
        expect(await compile(withPods, mode, node)).toBe(await compile(withSlices, mode, node));
      }
      expect(await compile(withPods.toReversed(), mode, 'node-1')).toBe(await compile(withPods, mode, 'node-1'));
    });
  }
});
