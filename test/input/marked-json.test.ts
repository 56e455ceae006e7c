import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { readMarkedJson } from '../../src/input/documents/read-documents.ts';
import { parseYamlValue } from '../../src/input/yaml/parse.ts';
import { rounds } from '../support/rounds.ts';
import { createRandom, mutate, realDocuments, type Random } from '../fast-yaml/documents.ts';

const runs = rounds(4000);
const firstSeed = 1;

describe('JSON in a stream of YAML documents', () => {
  const read = (text: string) => readMarkedJson(text, { start: 0, end: text.length });

  test.each(['---\n{"a":1}\n', '--- {\n "a": 1\n}\n'])('reads %j', (text) => {
    expect(read(text)).toEqual({ value: { a: 1 } });
  });

  test('keeps blanks, quotes and braces in strings', () => {
    const value = { 'a b': 'c \\ "d\n  e" {f} 😀', g: [' ', ''] };
    expect(read(`---\n${JSON.stringify(value, undefined, 3)}\n`)).toEqual({ value });
  });

  test.each([
    ['no start marker', '{"a":1}'],
    ['a comment', '---\n{"a":1} # one'],
    ['a key twice, which YAML refuses', '---\n{"a":1,"a":2}'],
    ['a tab, which YAML takes only in some places', '---\n{\n\t"a":1}'],
    ['a carriage return', '---\n{"a":1}\r\n'],
    ['an escape that YAML has not', '---\n{"a":"\\/"}'],
    ['a number that is too large', '---\n{"a":1e999}'],
    ['a negative nought', '---\n{"a":-0}'],
    ['a key that is too long for YAML', `---\n{"${'a'.repeat(1100)}":1}`],
    ['deep nesting', `---\n{"a":${'['.repeat(100)}${']'.repeat(100)}}`],
    ['deeper nesting than JSON.parse takes', `---\n{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['a brace further on, whose line YAML may read otherwise', '---\n {"a":1}'],
  ])('leaves %s to the YAML parser', (_, text) => {
    expect(read(text)).toBeUndefined();
  });
});

type Reading = { readonly value: unknown } | undefined;

/** Whether there is a value; fails where the other parser throws, finds a fault, or gives another one. */
function areOne(text: string, fast: Reading, other: (text: string) => Reading): boolean {
  if (!fast) return false;
  const expected = other(text);
  // The JSON shows the order of keys; deep-strict tells -0 from 0 and looks at prototypes.
  const isSame = expected && JSON.stringify(fast.value) === JSON.stringify(expected.value);
  if (isSame && isDeepStrictEqual(fast.value, expected.value)) return true;
  throw new Error(`JSON and YAML differ on ${JSON.stringify(text)}`);
}

const values = realDocuments.flatMap((text) => {
  const parsed = parseYamlValue(text);
  return parsed.kind === 'value' ? [parsed.value] : [];
});

function pick(random: Random): unknown {
  return values[random(values.length)];
}

const indentations = [undefined, 1, 2, 4, '\t'] as const;

function print(value: unknown, random: Random): string {
  return JSON.stringify(value, undefined, indentations[random(indentations.length)]);
}

/** One sign put in, taken out or doubled somewhere. */
function slip(text: string, random: Random): string {
  const at = random(text.length);
  const signs = [
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    ' ',
    '\n',
    '0',
    '-',
    '.',
    'e',
    'true',
    'null',
    '\u0001',
    '\u2028',
  ];
  const sign = signs[random(signs.length)] ?? '';
  return text.slice(0, at) + (random(2) === 0 ? sign : '') + text.slice(random(2) === 0 ? at : at + 1);
}

function parseYaml(text: string): Reading {
  const parsed = parseYamlValue(text);
  return parsed.kind === 'value' ? parsed : undefined;
}

/** Signs that JSON and YAML could take for different things. */
const doubtful = [
  '\u0085',
  '\u00a0',
  '\u2028',
  '\ufeff',
  '\t',
  '\r',
  '#',
  ' #',
  "'",
  '"<<":',
  '1e5',
  '1E400',
  '-0',
  '\\/',
];

describe('JSON after the start marker of a YAML document has the value that the YAML parser gives', () => {
  test('real documents, with and without slips', () => {
    let accepted = 0;
    for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
      const random = createRandom(seed);
      const json = print(pick(random), random);
      const at = random(json.length);
      const odd = json.slice(0, at) + (doubtful[random(doubtful.length)] ?? '') + json.slice(at);
      const text = `---${random(2) === 0 ? ' ' : '\n'}${[json, odd, slip(json, random), mutate(json, random)][random(4)] ?? ''}`;
      if (areOne(text, readMarkedJson(text, { start: 0, end: text.length }), parseYaml)) accepted++;
    }
    expect(accepted).toBeGreaterThan(runs / 10);
  });
});
