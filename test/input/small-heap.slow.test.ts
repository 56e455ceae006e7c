import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { kpcProgram } from '../support/run-kpc.ts';

const lines = 300_000;
const service = 'apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  annotations:\n';

/** What the program says of a text where its heap holds 64 MB, and with which status it ends. */
function compileInSmallHeap(text: string): { readonly status: number | null; readonly said: string } {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--max-old-space-size=64', kpcProgram, 'compile', '-f', '-', '--node', 'n'],
    { input: text, encoding: 'utf8' },
  );
  return { status, said: stderr };
}

const texts: readonly (readonly [what: string, text: string])[] = [
  ['a plain mapping', Array.from({ length: lines }, (_, i) => `    key-${i}: value ${i}\n`).join('')],
  ['a plain list', `    a:\n${'    - - b\n'.repeat(lines)}`],
  ['a list in brackets', `    a: [${'b, '.repeat(lines)}b]\n`],
  ['a list that is not plain', `    a:\n${'    - !x b\n'.repeat(lines)}`],
  ['a text in quotes', `    a: "${String.raw`\x41`.repeat(2 * lines)}"\n`],
  ['a text without end', `    a: "${'b '.repeat(4 * lines)}\n`],
  ['a block of short lines', `    a: !x |\n${'     b\n'.repeat(lines)}`],
];

test.each(texts)('%s that the heap does not hold is refused', (_, text) => {
  const { status, said } = compileInSmallHeap(service + text);
  expect(said).toContain('[too-long]');
  expect(status).toBe(2);
});

test('a text that the heap does hold is read', () => {
  const text = Array.from({ length: lines / 6 }, (_, i) => `    key-${i}: value ${i}\n`).join('');
  expect(compileInSmallHeap(service + text).said).not.toContain('[too-long]');
});
