import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createYamlReader, readDocuments, type YamlReader } from '../../src/input/documents/read-documents.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { parseYamlValue } from '../../src/input/yaml/parse.ts';

/**
 * What kubectl 1.36.3 makes of a file: the values that NewYAMLOrJSONDecoder of k8s.io/apimachinery v0.36.3 hands over
 * one after the other (sigs.k8s.io/yaml v1.6.0, go.yaml.in/yaml/v2 v2.4.3), without the null ones that kubectl passes over,
 * or its error. The answers are recorded; each line of the file is one.
 */
type Answer = { readonly text: string } & ({ readonly values: readonly unknown[] } | { readonly error: string });

const answers = gunzipSync(readFileSync(new URL('kubectl-answers.jsonl.gz', import.meta.url)))
  .toString()
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Answer);

/** What kubectl takes and kpc refuses, by what kpc says of it. */
const refused: readonly (readonly [kind: string, message: RegExp])[] = [
  [
    'a key twice in one mapping, of which kubectl takes the last',
    /^this key is in the same mapping twice|^a second object begins here/,
  ],
  ['YAML behind JSON without "---"', /^text follows the JSON|^not valid JSON|^a tab is used/],
  [
    'what the package takes otherwise, or what is written in an odd way',
    /kubectl does not read .* as other programs do/,
  ],
  ['a tag other than !!str', /a tag other than !!str/],
  ['keys that are one in JSON, of which kubectl takes any', /keys that are the same in JSON/],
  ['a key that is a float or no 64-bit number', /a key that is no text/],
  ['"?" before a key', /a key after "\?"/],
  ['U+2028 and U+2029, which end lines to some readers only', /the character U\+202[89]/],
  ['a byte order mark elsewhere than at the start of the file', /the character U\+FEFF/],
  ['a block with its indentation given and spaces in the blank lines at its end', /blank lines at the end of a block/],
  ['a document that is a block of text', /a block of text alone/],
  ['a collection in brackets whose lines are indented no deeper than its key', /must be sufficiently indented/],
  ['a comment that follows a value without a space', /comments must be separated/],
  ['what is behind the end of a document, which kubectl drops', /the end of a document|at node end|in YAML stream/],
  ['quotes whose lines are indented no deeper than their key', /missing closing ['"]quote/],
  ['a dash alone in brackets', /block collections are not allowed within flow collections/],
  ['a key of several lines', /on a single line/],
  ["the escape \\'", /invalid escape sequence/],
  ['lines that the end of a document cuts', /must start at the same column|not allowed in compact mappings/],
  ['a line with "%" behind a value', /cannot start with directive indicator/],
];

/** What kubectl refuses and kpc takes, by what kubectl says of it. None of it has two meanings. */
const taken: readonly (readonly [kind: string, error: RegExp])[] = [
  ['a value on the line of its "---"', /^invalid Yaml document separator/],
  ['nothing but comments and white space', /found character that cannot start any token|control characters/],
  ['"---#" as the first line', /mapping values are not allowed/],
  ['fewer than four bytes of YAML, and YAML behind JSON values', /^json: offset|^invalid character/],
];

const readFully: YamlReader = (text, { start, end }) => parseYamlValue(text.slice(start, end));

/** A text, a list or nothing: kubectl reads it, often with much behind it that it never looks at, and then refuses it. */
function isNoObject(value: unknown): boolean {
  return typeof value !== 'object' || value === null || Array.isArray(value);
}

function check({ text, ...answer }: Answer, readYaml: YamlReader): string | undefined {
  const file = new TextFile('in.yaml', text.replace(/^\uFEFF/, ''));
  const { documents, diagnostics } = readDocuments(file, readYaml);
  const [fault] = diagnostics;
  if ('error' in answer) {
    if (fault || taken.some(([, error]) => error.test(answer.error))) return undefined;
    return `kubectl refuses it (${answer.error}): ${JSON.stringify(text)}`;
  }
  if (fault) {
    if (
      refused.some(([, message]) => message.test([fault.text, fault.help].join(': '))) ||
      answer.values.every(isNoObject)
    )
      return undefined;
    return `kpc refuses it (${fault.text}): ${JSON.stringify(text)}`;
  }
  const values = documents.map(({ value }) => value);
  // Through JSON: kubectl's -0 and numbers beyond 2^53 are doubles, too, once they are read.
  if (isDeepStrictEqual(JSON.parse(JSON.stringify(values)), JSON.parse(JSON.stringify(answer.values))))
    return undefined;
  return `${JSON.stringify(text)} is ${JSON.stringify(answer.values)} to kubectl and ${JSON.stringify(values)} to kpc`;
}

describe("kubectl's answers", () => {
  test('are many, and of both kinds', () => {
    expect(answers.length).toBeGreaterThan(15_000);
    expect(answers.filter((answer) => 'error' in answer).length).toBeGreaterThan(5000);
    expect(answers.filter((answer) => 'values' in answer).length).toBeGreaterThan(5000);
  });

  test.each([
    ['the full parser', () => readFully],
    ['the fast parser, which knows what it has read', createYamlReader],
  ])('are those of %s', (_, make) => {
    const readYaml = make();
    expect(answers.flatMap((answer) => check(answer, readYaml) ?? []).slice(0, 10)).toEqual([]);
  });

  test.each(refused)('kubectl takes, and kpc refuses, %s', (_, message) => {
    const isSuch = (answer: Answer): boolean => {
      const [fault] = readDocuments(new TextFile('in.yaml', answer.text.replace(/^\uFEFF/, '')), readFully).diagnostics;
      return 'values' in answer && fault !== undefined && message.test([fault.text, fault.help].join(': '));
    };
    expect(answers.some(isSuch)).toBe(true);
  });
});
