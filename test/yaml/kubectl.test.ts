import { inOneLine } from '../../src/say/words/words.ts';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createYamlReader, readDocuments, type YamlReader } from '../../src/input/documents/read-documents.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { readLongList } from '../../src/input/yaml/long-list.ts';
import { parseYamlValue } from '../../src/input/yaml/parse.ts';
import { Memory } from '../../src/input/yaml/fast-reader.ts';
import { rounds, triesAll } from '../support/rounds.ts';

/**
 * What kubectl makes of a file: the values that NewYAMLOrJSONDecoder of k8s.io/apimachinery hands over one after the other,
 * without the null ones that kubectl passes over, or its error. Each line of the file is one answer; record.mjs asks for them
 * at the versions in recorder/go.mod.
 */
type Answer = { readonly text: string } & ({ readonly values: readonly unknown[] } | { readonly error: string });

const lines = gunzipSync(readFileSync(new URL('kubectl-answers.jsonl.gz', import.meta.url)))
  .toString()
  .trimEnd()
  .split('\n');
/** Of these many, `npm test` asks each fifteenth. */
const answers = lines.filter((_, i) => triesAll || i % 15 === 0).map((line) => JSON.parse(line) as Answer);

/** What kubectl takes and kpc refuses, by what kpc says of it. */
const refused: readonly (readonly [kind: string, message: RegExp])[] = [
  [
    'a key twice in one mapping, of which kubectl takes the last',
    /^this key is in the same mapping|^a second object starts here/,
  ],
  ['YAML behind JSON without "---"', /^text follows the JSON|^not valid JSON|^a tab is used/],
  [
    'what the package takes otherwise, or what is written in an odd way',
    /kubectl does not read .* as other programs do/,
  ],
  ['the tags !!binary and !!timestamp, and tags with odd signs', /does not read text that begins with !/],
  ['a key that is a float or no 64-bit number', /a key that is not a string/],
  ['"?" before a key', /does not read text that begins with \?/],
  ['U+2028 and U+2029, which end lines to some readers only', /the character U\+202[89]/],
  ['a byte order mark elsewhere than at the start of the file', /the character U\+FEFF/],
  ['a block with its indentation given and spaces in the blank lines at its end', /blank lines at the end of a block/],
  ['a document that is a block of text', /only a block of text/],
  ['a comment that follows a value without a space', /comments must be separated/],
  [
    'what is behind the end of a document, which kubectl drops',
    /the end of a document|at node end|in YAML stream|unexpected flow-\w+-start token/,
  ],
  ['a dash alone in brackets', /block collections are not allowed within flow collections/],
  ['a key that spans several lines', /on a single line/],
  ["the escape \\'", /invalid escape sequence/],
  [
    'lines that the end of a document cuts',
    /must start at the same column|not allowed in compact mappings|must be sufficiently indented|is not closed/,
  ],
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

/** What kpc makes of a text: its values, or the words of its first fault. */
type Reading = { readonly values: readonly unknown[] } | { readonly fault: string };

function read(text: string, readYaml: YamlReader): Reading {
  const { documents, diagnostics } = readDocuments(new TextFile('in.yaml', text), readYaml);
  const [fault] = diagnostics;
  if (fault) return { fault: inOneLine(fault) };
  return { values: documents.map(({ value }) => value) };
}

/** How a reading differs from kubectl's in another way than those that are listed; undefined if it does not. */
function findDifference({ text, ...answer }: Answer, reading: Reading): string | undefined {
  if ('error' in answer) {
    if ('fault' in reading || taken.some(([, error]) => error.test(answer.error))) return undefined;
    return `kubectl refuses it (${answer.error}): ${JSON.stringify(text)}`;
  }
  if ('fault' in reading) {
    if (refused.some(([, message]) => message.test(reading.fault)) || answer.values.every(isNoObject)) return undefined;
    return `kpc refuses it (${reading.fault}): ${JSON.stringify(text)}`;
  }
  // Through JSON: kubectl's -0 and numbers beyond 2^53 are doubles, too, once they are read.
  if (isDeepStrictEqual(JSON.parse(JSON.stringify(reading.values)), JSON.parse(JSON.stringify(answer.values))))
    return undefined;
  return `${JSON.stringify(text)} is ${JSON.stringify(answer.values)} to kubectl and ${JSON.stringify(reading.values)} to kpc`;
}

const fully = answers.map(({ text }) => read(text, readFully));

describe("kubectl's answers", () => {
  test('are many, and of both kinds', () => {
    expect(lines.length).toBeGreaterThan(25_000);
    expect(answers.filter((answer) => 'error' in answer).length).toBeGreaterThan(rounds(5000, 15));
    expect(answers.filter((answer) => 'values' in answer).length).toBeGreaterThan(rounds(5000, 15));
  });

  test('are those of the full parser', () => {
    expect(answers.flatMap((answer, i) => findDifference(answer, fully[i] as Reading) ?? []).slice(0, 10)).toEqual([]);
  });

  test('are those of the fast parser, which knows what it has read', () => {
    const readFast = createYamlReader();
    expect(answers.flatMap((answer) => findDifference(answer, read(answer.text, readFast)) ?? []).slice(0, 10)).toEqual(
      [],
    );
  });

  test('are those of a long list that is read in pieces, an item each', () => {
    const memory = new Memory();
    let inPieces = 0;
    const readInPieces: YamlReader = (text, { start, end }) => {
      const document = text.slice(start, end);
      const list = readLongList(document, memory, 1);
      if (list) inPieces++;
      return list ?? parseYamlValue(document);
    };
    const listed = answers.filter(({ text }) => /^items:/m.test(text));
    const wrapped = answers
      .filter((_, i) => i % 20 === 0)
      .map(({ text }) => {
        const item = text.replaceAll(/^/gm, '  ').replace('  ', '- ');
        return `kind: List\nitems:\n- &first {a: 1}\n${item}\n- *first\nmetadata: {}\n`;
      });
    const differing = [...listed.map((answer) => answer.text), ...wrapped].filter((text) => {
      const [pieces, whole] = [read(text, readInPieces), read(text, readFully)];
      return 'fault' in pieces ? !('fault' in whole) : !isDeepStrictEqual(pieces, whole);
    });
    expect(differing.slice(0, 10)).toEqual([]);
    expect(inPieces).toBeGreaterThan(rounds(1000, 15));
  });

  // Some are rare.
  test.runIf(triesAll).each(refused)('kubectl takes, and kpc refuses, %s', (_, message) => {
    const isSuch = (answer: Answer, i: number): boolean => {
      const reading = fully[i] as Reading;
      return 'values' in answer && 'fault' in reading && message.test(reading.fault);
    };
    expect(answers.some(isSuch)).toBe(true);
  });
});
