import { expect, test } from 'vitest';
import type { InputDocument } from '../../src/input/documents/document.ts';
import { readDocuments } from '../../src/input/documents/read-documents.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { costInMegabytes } from '../support/cpu-time.ts';

/**
 * What a hostile megabyte may cost, in ordinary ones. The dearest costs half of it; what takes time in the square of its
 * length costs hundreds.
 */
const most = 8;

const size = 1 << 20;

function fill(part: string): string {
  return part.repeat(Math.ceil(size / part.length));
}

function fillNumbered(part: (i: number) => string): string {
  const parts: string[] = [];
  for (let i = 0, length = 0; length < size; i++) {
    parts.push(part(i));
    length += part(i).length;
  }
  return parts.join('');
}

const bomb = fillNumbered(
  (i) =>
    `b${i}: &b${i} [${Array(9)
      .fill(i === 0 ? 'x' : `*b${i - 1}`)
      .join(', ')}]\n`,
);

const megabytes: readonly (readonly [of: string, text: string])[] = [
  ['empty mappings', fill('{}')],
  ['lists in lists', fill('[')],
  ['keys in keys', fill('? ')],
  ['items in items', fill('- ')],
  ['values in values', fill(': ')],
  ['mappings in mappings', fillNumbered((i) => `${' '.repeat(i)}a:\n`)],
  ['comments', `a: 1\n${fill('# comment\n')}\tb`],
  ['anchors', fillNumbered((i) => `- &a${i} x\n`)],
  ['aliases that multiply', bomb],
  ['merges', `a: &a { x: 1 }\nb: { <<: [${fill('*a, ')}] }\n`],
  ['errors', fill('}\n')],
  ['empty items', `a: [${fill(',')}]`],
  ['texts in quotes on many lines', fillNumbered((i) => `k${i}: "a\nb"\n`)],
  ['quotes', `a: '${fill("''")}`],
  ['spaces before a tab', `- ${fill(' ')}x\ty: 1`],
  ['colons in brackets', `[a${fill(':')}b]`],
  ['blank lines in a block', `a: |2\n${fill('  \n')}b`],
];

test.each(megabytes)('much of %s costs a few times as much as ordinary text', async (_, text) => {
  const cost = await costInMegabytes(() => {
    const { diagnostics } = readDocuments(new TextFile('in.yaml', text));
    for (const { place } of diagnostics.slice(0, 20)) place?.locate();
  });
  expect(cost).toBeLessThan(most);
});

test('each of very many fields is found in its place at once', async () => {
  const names = Array.from({ length: 40_000 }, (_, i) => `k${i}`);
  const text = `m: &m { a: 1 }\n${names.map((name) => `${name}: 1\n`).join('')}<<: *m\n`;
  let document: InputDocument | undefined;
  let lines: readonly (number | undefined)[] = [];
  const cost = await costInMegabytes(() => {
    [document] = readDocuments(new TextFile('in.yaml', text)).documents;
    lines = names.map((name) => document?.source.keyPlace([name]).locate().line);
  });
  expect(lines).toEqual(names.map((_, i) => i + 2));
  expect(document?.source.place(['a']).locate()).toMatchObject({ line: 1, column: 12 });
  expect(cost).toBeLessThan(most);
});

const millions: readonly (readonly [of: string, text: string])[] = [
  ['characters', `a: ${'xy z'.repeat(3_000_000)}\nb: 1\n`],
  ['empty lines', `a: x\n${'\n'.repeat(12_000_000)}b: 1\n`],
  ['comments', `a: x\n${'#\n'.repeat(4_900_000)}b: 1\n`],
];

test.each(millions)('millions of %s do not exhaust the stack', async (_, text) => {
  const cost = await costInMegabytes(() => {
    const { documents, diagnostics } = readDocuments(new TextFile('in.yaml', text));
    expect(diagnostics).toEqual([]);
    expect(documents[0]?.value).toMatchObject({ b: 1 });
  });
  expect(cost).toBeLessThan(most);
});
