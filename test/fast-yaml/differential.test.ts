import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { KnownKeys, readYamlFast } from '../../src/input/fast-yaml.ts';
import { parseYamlValue } from '../../src/input/yaml-parser.ts';
import { createRandom, excerpt, mutate, type Random, realDocuments } from './documents.ts';

/** FAST_YAML_RUNS=200000 FAST_YAML_SEED=7 npx vitest run test/fast-yaml looks longer, elsewhere. */
const runs = Number(process.env['FAST_YAML_RUNS'] ?? 6000);
const firstSeed = Number(process.env['FAST_YAML_SEED'] ?? 1);

/** Undefined where the fast reader asks for the full parser, and where both agree; else what differs. */
function disagreement(text: string, known?: KnownKeys): string | undefined {
  const fast = readYamlFast(text, 0, text.length, known);
  if (!fast) return undefined;
  const full = parseYamlValue(text);
  if (full.kind === 'faults') return `accepted, but: ${full.faults.map((fault) => fault.text).join('; ')}`;
  // deep-strict tells -0 from 0 and looks at prototypes; the JSON shows the order of keys.
  const [fastJson, fullJson] = [JSON.stringify(fast.value), JSON.stringify(full.value)];
  return isDeepStrictEqual(fast.value, full.value) && fastJson === fullJson
    ? undefined
    : `${fastJson}\nis not\n${fullJson}`;
}

function countAccepted(makeText: (random: Random) => string): number {
  const known = new KnownKeys();
  let accepted = 0;
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    const text = makeText(createRandom(seed));
    const difference = disagreement(text, seed % 2 === 0 ? known : undefined);
    if (difference !== undefined) expect.fail(`seed ${seed}:\n${JSON.stringify(text)}\n${text}\n${difference}`);
    if (readYamlFast(text)) accepted++;
  }
  return accepted;
}

function pick(random: Random): string {
  return realDocuments[random(realDocuments.length)] ?? '';
}

describe('what the fast reader accepts has the value that the full parser gives', () => {
  it.each(realDocuments.map((text, i) => [i, text] as const))('real document %i, which it accepts', (_, text) => {
    expect(readYamlFast(text)).toBeDefined();
    expect(disagreement(text)).toBeUndefined();
  });

  it('real documents with slips in them', () => {
    const accepted = countAccepted((random) => mutate(pick(random), random));
    expect(accepted).toBeGreaterThan(runs / 10);
  });

  it('parts of documents with slips in them', () => {
    const accepted = countAccepted((random) => mutate(excerpt(pick(random), random), random));
    expect(accepted).toBeGreaterThan(runs / 10);
  });

  it('any value, printed in many ways, with and without slips', () => {
    let accepted = 0;
    const check = (value: unknown, style: PrintStyle, seed: number): void => {
      const text = printYaml(value, style);
      if (readYamlFast(text)) accepted++;
      for (const candidate of [text, mutate(text, createRandom(seed))]) {
        const difference = disagreement(candidate);
        if (difference !== undefined) expect.fail(`${candidate}\n${difference}`);
      }
    };
    const values = fc.oneof(fc.dictionary(anyKey, anyValue), fc.array(anyValue));
    fc.assert(fc.property(values, printStyle, fc.nat(), check), { numRuns: Math.ceil(runs / 10), seed: firstSeed });
    expect(accepted).toBeGreaterThan(runs / 40);
  });
});

const word = fc.constantFrom(
  ...['a', 'app', 'TCP', 'yes', 'null', 'true', '10.0.0.1', '8080', '-1', '1.5', 'fd00::1', 'web-1', 'http', '0x10'],
  ...[
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
  ],
);
const anyText = fc.oneof(
  word,
  fc.array(word, { maxLength: 20 }).map((words) => words.join(' ')),
  fc.string({ unit: 'binary' }),
);
const anyKey = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('name', 'ports', 'spec', 'a/b.c', 'f:x', '.', '1') },
  anyText,
);
const anyScalar = fc.oneof(anyText, fc.boolean(), fc.constant(null), fc.integer(), fc.double());
const { anyValue } = fc.letrec((tie) => ({
  anyValue: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    anyScalar,
    fc.array(tie('anyValue'), { maxLength: 4 }),
    fc.dictionary(anyKey, tie('anyValue'), { maxKeys: 4 }),
  ),
}));

const printStyle = fc.record({
  indent: fc.integer({ min: 1, max: 4 }),
  indentSeq: fc.boolean(),
  lineWidth: fc.constantFrom(20, 80, 0),
  singleQuote: fc.constantFrom(true, false, null),
  blockQuote: fc.constantFrom<'literal' | 'folded' | boolean>(true, false, 'folded', 'literal'),
  defaultStringType: fc.constantFrom<ScalarStyle>('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE', 'BLOCK_LITERAL'),
  collectionStyle: fc.constantFrom<'any' | 'block' | 'flow'>('any', 'any', 'any', 'flow'),
});
type ScalarStyle = 'PLAIN' | 'QUOTE_DOUBLE' | 'QUOTE_SINGLE' | 'BLOCK_LITERAL';
type PrintStyle = typeof printStyle extends fc.Arbitrary<infer T> ? T : never;

function printYaml(value: unknown, style: PrintStyle): string {
  return stringify(value, { ...style, version: '1.1', defaultKeyType: 'PLAIN', aliasDuplicateObjects: false });
}
