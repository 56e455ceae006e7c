// Several Nodes, of which none is named: what depends on the node is not compared.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-unnamed-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const node = (name: string, address: string, zone = 'a', more = '') =>
  `---\n{apiVersion: v1, kind: Node, metadata: {name: ${name}, labels: {topology.kubernetes.io/zone: ${zone}${more}}}, status: {addresses: [{type: InternalIP, address: ${address}}]}}\n`;
const service =
  '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.10, type: NodePort, ports: [{port: 80, nodePort: 30080}]}}\n';
const first = service + node('one', '192.0.2.1');

const write = (name: string, text: string): void => writeFileSync(join(cwd, name), text);
write('from.yaml', first + node('two', '192.0.2.2'));

const ofNode = /\(one, two\)/;

test.each([
  ['an address', node('two', '192.0.2.3'), true],
  ['a zone', node('two', '192.0.2.2', 'b'), true],
  ['a label that kube-proxy does not read', node('two', '192.0.2.2', 'a', ', more: b'), false],
  ['nothing', node('two', '192.0.2.2'), false],
])('diff names it if a Node changes: %s', async (_, second, isSaid) => {
  write('to.yaml', first + second);
  for (const output of ['text', 'json', 'markdown', 'github', 'junit']) {
    const { status, stdout } = await runKpc(['diff', '-q', 'from.yaml', 'to.yaml', '--output', output], { cwd });
    expect({ output, status, isSaid: ofNode.test(stdout) }).toEqual({ output, status: 0, isSaid });
  }
  const named = await runKpc(['diff', 'from.yaml', 'to.yaml', '--node', 'one'], { cwd });
  expect(named.stdout).not.toMatch(ofNode);
});

test('a golden records no Node: --check and diff name all, or the others if a node is named', async () => {
  for (const [flags, notCompared] of [
    [[], [expect.stringMatching(ofNode)]],
    [['--node', 'one'], ['the other node (two)']],
  ] as const) {
    const folder = `golden${flags.length}`;
    await runKpc(['compile', '-f', 'from.yaml', ...flags, '--golden', folder], { cwd });
    for (const words of [
      ['compile', '-f', 'from.yaml', '--check', folder],
      ['diff', folder, 'from.yaml'],
    ]) {
      const { status, stdout } = await runKpc([...words, ...flags, '--output', 'json'], { cwd });
      expect({ status, ...resultOf(stdout) }).toMatchObject({ status: 0, notCompared });
    }
  }
});

test('a change of node ports depends on the node', async () => {
  const listening = (port: number) =>
    `{apiVersion: v1, kind: Service, metadata: {name: np}, spec: {type: NodePort, clusterIP: 10.96.0.99, ports: [{port: 80, nodePort: ${port}}]}}\n---\n`;
  write('from.yaml', listening(30080) + first + node('two', '192.0.2.2'));
  write('to.yaml', listening(30081) + first + node('two', '192.0.2.2'));
  const unnamed = await runKpc(['diff', 'from.yaml', 'to.yaml', '--output', 'json'], { cwd });
  expect(resultOf(unnamed.stdout)).toMatchObject({ notCompared: [expect.stringMatching(ofNode)] });
  const named = await runKpc(['diff', 'from.yaml', 'to.yaml', '--node', 'one'], { cwd });
  expect(named.stdout).not.toMatch(ofNode);
});
