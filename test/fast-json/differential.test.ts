import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { readJsonFast, readMarkedJson } from '../../src/input/fast-json.ts';
import { KnownKeys } from '../../src/input/known-keys.ts';
import { parseYamlValue } from '../../src/input/yaml-parser.ts';
import { rounds } from '../support/rounds.ts';
import { createRandom, mutate, type Random, realDocuments } from '../fast-yaml/documents.ts';

/** FAST_JSON_RUNS=100000 FAST_JSON_SEED=7 npx vitest run test/fast-json looks longer, elsewhere. */
const runs = Number(process.env['FAST_JSON_RUNS'] ?? rounds(4000));
const firstSeed = Number(process.env['FAST_JSON_SEED'] ?? 1);

type Reading = { readonly value: unknown } | undefined;

/** Fails where the fast reader gives a value, and JSON.parse throws or gives another value. */
function checkAgreement(text: string, known?: KnownKeys): boolean {
  return areOne(text, readJsonFast(text, undefined, known), parse);
}

/** Whether there is a value; fails where the other parser throws, finds a fault, or gives another one. */
function areOne(text: string, fast: Reading, other: (text: string) => Reading): boolean {
  if (!fast) return false;
  const expected = other(text);
  // The JSON shows the order of keys; deep-strict tells -0 from 0 and looks at prototypes.
  const isSame = expected && JSON.stringify(fast.value) === JSON.stringify(expected.value);
  if (isSame && isDeepStrictEqual(fast.value, expected.value)) return true;
  throw new Error(`the fast reader and the other parser differ on ${JSON.stringify(text)}`);
}

function parse(text: string): Reading {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
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

/** Other digits, letters and signs in some of a text's strings and numbers. */
function changeScalars(text: string, random: Random): string {
  const signs = ['7', 'x', 'é', ' ', '.', '-', '\\n', '\\u00e9', 'e1'];
  return text.replaceAll(/(?<=: ?"?|^ *"?)[0-9a-z]/gm, (char) =>
    random(4) === 0 ? (signs[random(signs.length)] ?? char) : char,
  );
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

describe('what the fast reader accepts has the value that JSON.parse gives', () => {
  it.each(values.map((value, i) => [i, value] as const))('real document %i, which it accepts', (_, value) => {
    for (const indentation of indentations) {
      expect(checkAgreement(JSON.stringify(value, undefined, indentation))).toBe(true);
    }
  });

  it('real documents with slips in them', () => {
    const known = new KnownKeys();
    let accepted = 0;
    for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
      const random = createRandom(seed);
      const text = print(pick(random), random);
      if (checkAgreement(random(2) === 0 ? slip(text, random) : mutate(text, random), known)) accepted++;
    }
    expect(accepted).toBeGreaterThan(runs / 20);
  });

  it('one document again and again, each time with other slips', () => {
    let accepted = 0;
    for (let seed = firstSeed; seed < firstSeed + runs / 10; seed++) {
      const random = createRandom(seed);
      const original = print(pick(random), random);
      // Fresh each time, so that it has room for how this document is written.
      const known = new KnownKeys();
      for (let i = 0; i < 10; i++) {
        const text = random(3) === 0 ? slip(original, random) : changeScalars(original, random);
        if (checkAgreement(text, known)) accepted++;
      }
    }
    expect(accepted).toBeGreaterThan(runs / 10);
  });
});

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
  it('real documents, with and without slips', () => {
    const known = new KnownKeys();
    let accepted = 0;
    for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
      const random = createRandom(seed);
      const json = print(pick(random), random);
      const at = random(json.length);
      const odd = json.slice(0, at) + (doubtful[random(doubtful.length)] ?? '') + json.slice(at);
      const text = `---${random(2) === 0 ? ' ' : '\n'}${[json, odd, slip(json, random), mutate(json, random)][random(4)] ?? ''}`;
      if (areOne(text, readMarkedJson(text, { start: 0, end: text.length }, known), parseYaml)) accepted++;
    }
    expect(accepted).toBeGreaterThan(runs / 10);
  });
});
