import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyPatch } from 'diff';
import { expect, onTestFinished, test } from 'vitest';
import { formatUnifiedDiff } from '../../src/say/formats/unified.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const few = Array.from({ length: 30 }, (_, i) => `${i}\n`).join('');
const many = Array.from({ length: 6000 }, (_, i) => `line ${i}\n`).join('');
const others = Array.from({ length: 6000 }, (_, i) => `other ${i}\n`).join('');

test.for([
  ['a file that was not there', undefined, many, ['--- /dev/null', '+++ b/x', '@@ -0,0 +1,6000 @@', '+line 0']],
  ['a file that is gone', many, undefined, ['--- a/x', '+++ /dev/null', '@@ -1,6000 +0,0 @@', '-line 0']],
  ['another file', many, others, ['--- a/x', '+++ b/x', '@@ -1,6000 +1,6000 @@', '-line 0']],
] as const)('of %s, too different to compare line by line', ([, before, after, head]) => {
  const diff = formatUnifiedDiff('x', before, after).split('\n');
  expect(diff.slice(0, 4)).toEqual(head);
  expect(diff.length).toBe(3 + (before ? 6000 : 0) + (after ? 6000 : 0) + 1);
});

test('a last line without an end is marked, whichever way the diff was made', () => {
  for (const text of ['one', many.slice(0, -1)]) {
    expect(formatUnifiedDiff('x', undefined, text)).toMatch(/\n\\ No newline at end of file\n$/);
  }
});

test.each([
  ['a changed line', few, few.replace('7\n', 'seven\n')],
  ['lines in another order', few, few.split('\n').toReversed().join('\n')],
  ['no line any more', few, ''],
  ['a first line', '', 'a'],
  ['an end without a line feed', few, few.trimEnd()],
  ['a thousand lines less', many, many.slice(0, -9000)],
  ['other lines, too many to compare', many, many.replaceAll('line', 'other')],
  ['other lines without a last line feed, too many to compare', many, many.replaceAll('line', 'other').trimEnd()],
  ['empty lines, too many to compare', '\n'.repeat(6000), few],
])('a diff makes one file of the other: %s', (_, before, after) => {
  expect(applyPatch(before, formatUnifiedDiff('f', before, after))).toBe(after);
});

test('a file that is too long for a diff differs in one line', () => {
  const most = { lines: 10, characters: 100 };
  const differ = 'Files a/f and b/f differ: too long for a diff\n';
  expect(formatUnifiedDiff('f', '\n'.repeat(10), 'a', most)).toBe(differ);
  expect(formatUnifiedDiff('f', 'a', 'x'.repeat(100), most)).toBe(differ);
  expect(formatUnifiedDiff('f', '\n'.repeat(9), 'a', most)).toContain('\n+a\n');
});

test('an absolute path is written as git writes it', () => {
  expect(formatUnifiedDiff('/tmp/golden/x', 'a\n', 'b\n')).toBe(
    '--- a/tmp/golden/x\n+++ b/tmp/golden/x\n@@ -1,1 +1,1 @@\n-a\n+b\n',
  );
});

test('a dump differs in the lines that it lacks alone: no empty table, and no rule that only has another number', async () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'kpc-unified-')), 'dump');
  onTestFinished(() => rmSync(join(folder, '..'), { recursive: true, force: true }));
  cpSync(join(projectFolder, 'fixtures/dumps/kube-proxy-iptables-loadbalancer-local'), folder, { recursive: true });
  const [manifests, node, config, addresses] = ['cluster.yaml', 'node.yaml', 'config.yaml', 'ip-addr.json'].map(
    (name) => join(folder, name),
  ) as [string, string, string, string];
  const inputs = [manifests, '-f', node, '--config', config, '--host-addresses', addresses, '--output', 'unified'];
  expect(await runKpc(['diff', folder, ...inputs])).toMatchObject({ status: 0, stdout: '' });

  const save = readFileSync(join(folder, 'iptables-save'), 'utf8');
  writeFileSync(join(folder, 'iptables-save'), save.replace(/^-A INPUT .* -j KUBE-PROXY-FIREWALL\n/m, ''));
  const { status, stdout } = await runKpc(['diff', folder, ...inputs]);
  expect(status).toBe(1);
  expect(stdout.split('\n').filter((line) => /^[+-](?!\+\+|--)/.test(line))).toEqual([
    '+-A INPUT -m comment --comment "kubernetes load balancer firewall" -m conntrack --ctstate NEW -j KUBE-PROXY-FIREWALL',
  ]);
});
