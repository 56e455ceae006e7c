import { isDeepStrictEqual } from 'node:util';
import {
  array,
  assert,
  boolean,
  constant,
  constantFrom,
  dictionary,
  double,
  integer,
  letrec,
  nat,
  oneof,
  property,
  record,
  string,
  type Arbitrary,
} from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { Memory, readYamlFast } from '../../src/input/yaml/fast-reader.ts';
import { parseYamlValue } from '../../src/input/yaml/parse.ts';
import { rounds } from '../support/rounds.ts';
import { createRandom, excerpt, mutate, realDocuments, type Random } from './documents.ts';

/** FAST_YAML_RUNS=200000 FAST_YAML_SEED=7 npx vitest run test/fast-yaml looks longer, elsewhere. */
const runs = Number(process.env['FAST_YAML_RUNS'] ?? rounds(6000, 24));
const firstSeed = Number(process.env['FAST_YAML_SEED'] ?? 1);

/** Fails where the fast reader gives a value, and the full parser finds a fault or gives another value. */
function checkAgreement(text: string, memory?: Memory): void {
  const fast = readYamlFast(text, undefined, memory);
  if (fast?.kind !== 'value') return;
  const full = parseYamlValue(text);
  const expected = full.kind === 'value' ? full.value : full.faults;
  // The JSON shows the order of keys; deep-strict tells -0 from 0 and looks at prototypes.
  const [fastJson, fullJson] = [JSON.stringify(fast.value), JSON.stringify(expected)];
  if (full.kind === 'value' && fastJson === fullJson && isDeepStrictEqual(fast.value, expected)) return;
  throw new Error(`fast reader and full parser differ on ${JSON.stringify(text)}:\n${text}\n${fastJson}\n${fullJson}`);
}

/** Checks a text for each seed; returns how many of them the fast reader accepted. */
function checkMany(makeText: (random: Random) => string): number {
  const memory = new Memory();
  let accepted = 0;
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    const text = makeText(createRandom(seed));
    checkAgreement(text, memory);
    if (readYamlFast(text)) accepted++;
  }
  return accepted;
}

function pick(random: Random): string {
  return realDocuments[random(realDocuments.length)] ?? '';
}

describe('what the fast reader accepts has the value that the full parser gives', () => {
  test.each(realDocuments.map((text, i) => [i, text] as const))('real document %i, which it accepts', (_, text) => {
    expect(readYamlFast(text)).toBeDefined();
    checkAgreement(text);
  });

  test('real documents with slips in them', () => {
    const accepted = checkMany((random) => mutate(pick(random), random));
    expect(accepted).toBeGreaterThan(runs / 10);
  });

  test('parts of documents with slips in them', () => {
    const accepted = checkMany((random) => mutate(excerpt(pick(random), random), random));
    expect(accepted).toBeGreaterThan(runs / 10);
  });

  test('documents with slips in them whose lines end as on Windows', () => {
    const accepted = checkMany((random) => {
      const text = mutate(random(2) === 0 ? pick(random) : excerpt(pick(random), random), random);
      return text.replaceAll('\n', () => (random(40) === 0 ? '\n' : '\r\n'));
    });
    expect(accepted).toBeGreaterThan(runs / 10);
  });

  test('any value, printed in many ways, with and without slips', () => {
    let accepted = 0;
    const check = (value: unknown, style: PrintStyle, seed: number): void => {
      const text = printYaml(value, style);
      if (readYamlFast(text)) accepted++;
      checkAgreement(text);
      checkAgreement(mutate(text, createRandom(seed)));
    };
    const values = oneof(dictionary(anyKey, anyValue), array(anyValue));
    assert(property(values, printStyle, nat(), check), { numRuns: Math.ceil(runs / 10), seed: firstSeed });
    expect(accepted).toBeGreaterThan(runs / 40);
  });
});

const words = [
  'a',
  'app',
  'TCP',
  'yes',
  'null',
  'true',
  '10.0.0.1',
  '8080',
  '-1',
  '1.5',
  'fd00::1',
  'web-1',
  '0x10',
].concat([
  '# no',
  'a: b',
  ' lead',
  'trail ',
  '- x',
  '{',
  "it's",
  '"',
  '\\',
  '\n',
  'two\nlines\n',
  '\n\n x\n',
  'caf\u00e9',
  ':',
  '~',
]);
const word = constantFrom(...words);
const anyText = oneof(
  word,
  array(word, { maxLength: 20 }).map((chosen) => chosen.join(' ')),
  string({ unit: 'binary' }),
);
const anyKey = oneof(
  { weight: 5, arbitrary: constantFrom('name', 'ports', 'spec', 'a/b.c', 'f:x', '.', '1') },
  anyText,
);
const anyScalar = oneof(anyText, boolean(), constant(null), integer(), double());
const { anyValue } = letrec((tie) => ({
  anyValue: oneof(
    { maxDepth: 4, withCrossShrink: true },
    anyScalar,
    array(tie('anyValue'), { maxLength: 4 }),
    dictionary(anyKey, tie('anyValue'), { maxKeys: 4 }),
  ),
}));

const printStyle = record({
  indent: integer({ min: 1, max: 4 }),
  indentSeq: boolean(),
  lineWidth: constantFrom(20, 80, 0),
  singleQuote: constantFrom(true, false, null),
  blockQuote: constantFrom<'literal' | 'folded' | boolean>(true, false, 'folded', 'literal'),
  defaultStringType: constantFrom<ScalarStyle>('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE', 'BLOCK_LITERAL'),
  collectionStyle: constantFrom<'any' | 'block' | 'flow'>('any', 'any', 'any', 'flow'),
});
type ScalarStyle = 'PLAIN' | 'QUOTE_DOUBLE' | 'QUOTE_SINGLE' | 'BLOCK_LITERAL';
type PrintStyle = typeof printStyle extends Arbitrary<infer T> ? T : never;

function printYaml(value: unknown, style: PrintStyle): string {
  return stringify(value, { ...style, version: '1.1', defaultKeyType: 'PLAIN', aliasDuplicateObjects: false });
}
