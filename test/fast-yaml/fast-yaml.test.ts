import { describe, expect, test } from 'vitest';
import { Memory, readYamlFast as readAny } from '../../src/input/yaml/fast-reader.ts';
import { parseYamlValue } from '../../src/input/yaml/parse.ts';
import { resolvePlainScalar } from '../../src/input/yaml/scalars.ts';

/** The value of a text that is short enough. */
function readYamlFast(...asked: Parameters<typeof readAny>): { readonly value: unknown } | undefined {
  const parsed = readAny(...asked);
  return parsed?.kind === 'value' ? { value: parsed.value } : undefined;
}

function read(...lines: string[]): unknown {
  return readYamlFast(lines.join('\n'))?.value;
}

describe('block collections', () => {
  test('reads mappings in mappings', () => {
    expect(read('metadata:', '  name: web', '  namespace: shop', 'kind: Service')).toEqual({
      metadata: { name: 'web', namespace: 'shop' },
      kind: 'Service',
    });
  });

  test('reads sequences at the column of their key, and deeper', () => {
    expect(read('a:', '- 1', '- 2', 'b:', '    - 3', 'c: 4')).toEqual({ a: [1, 2], b: [3], c: 4 });
  });

  test('reads mappings in sequences, from the line of the dash or the next', () => {
    expect(read('- a: 1', '  b: 2', '-', '  c: 3', '-   d: 4')).toEqual([{ a: 1, b: 2 }, { c: 3 }, { d: 4 }]);
  });

  test('reads sequences in sequences', () => {
    expect(read('- - 1', '  - 2', '- - - 3')).toEqual([[1, 2], [[3]]]);
  });

  test('takes nothing for null', () => {
    expect(read('a:', 'b:', '- ', '-', 'c: # nothing')).toEqual({ a: null, b: [null, null], c: null });
  });

  test('passes blank lines and comments', () => {
    expect(read('# first', '', 'a: 1 # one', '  # deeper', '', 'b: # two', '  - x#y', '# last', '')).toEqual({
      a: 1,
      b: ['x#y'],
    });
  });

  test('reads a document with its start marker, and an empty one as null', () => {
    expect(read('---', 'a: 1')).toEqual({ a: 1 });
    expect(read('--- # comment', 'a: 1')).toEqual({ a: 1 });
    expect(readYamlFast('# only a comment\n')).toEqual({ value: null });
    expect(readYamlFast('---\n')).toEqual({ value: null });
    expect(readYamlFast('')).toEqual({ value: null });
  });
});

describe('scalars', () => {
  test('reads plain ones as Kubernetes does', () => {
    expect(read('- TCP', '- true', '- no', '- ~', '- null', '- 80', '- -1', '- 1.5', '- 010', '- 10.96.0.1')).toEqual([
      'TCP',
      true,
      false,
      null,
      null,
      80,
      -1,
      1.5,
      8,
      '10.96.0.1',
    ]);
  });

  test('keeps text that only looks like a number', () => {
    const texts = [
      '1e',
      '30s',
      '8Gi',
      '10.0.0.0/8',
      '2001:db8::1',
      '::/0',
      '2024-05-01',
      '12345678-9e10-4abc-8def-0123456789ab',
    ];
    expect(read(...texts.map((text) => `- ${text}`))).toEqual(texts);
  });

  test('keeps blanks, colons and signs inside of plain text', () => {
    expect(read('a: x  y z:1 "q" [b] - ?   ')).toEqual({ a: 'x  y z:1 "q" [b] - ?' });
  });

  test('folds plain text over lines', () => {
    expect(read('a: one', '  two', '', '    three', 'b: 1')).toEqual({ a: 'one two\nthree', b: 1 });
  });

  test('reads quoted text', () => {
    expect(read(`a: 'it''s # "x": y'`, String.raw`b: "tab\t\"q\" \\ \x41é\U0001F600"`, `c: ''`)).toEqual({
      a: `it's # "x": y`,
      b: 'tab\t"q" \\ A\u00e9\u{1f600}',
      c: '',
    });
  });

  test('folds quoted text over lines', () => {
    expect(read(`a: 'one  `, `  two`, ``, `  three'`, 'b: "one', '  two\\', '  \\ three', '', '  four"')).toEqual({
      a: 'one two\nthree',
      b: 'one two three\nfour',
    });
  });

  test('reads literal blocks with each chomping', () => {
    expect(read('a: |', '  one', '', '    two', '', 'b: |-', '  one', 'c: |+', '  one', '', 'd: 1')).toEqual({
      a: 'one\n\n  two\n',
      b: 'one',
      c: 'one\n\n',
      d: 1,
    });
  });

  test('reads folded blocks', () => {
    expect(read('a: >', '  one', '  two', '', '  three', 'b: >-', '  x', '  y')).toEqual({
      a: 'one two\nthree\n',
      b: 'x y',
    });
  });
});

describe('flow collections on one line', () => {
  test('reads them nested, with quoted and plain words', () => {
    expect(read('a: {b: [1, x, "y, z"], "c": {}, d: []}  # comment')).toEqual({
      a: { b: [1, 'x', 'y, z'], c: {}, d: [] },
    });
  });

  test('reads JSON in a field', () => {
    expect(read('a: {"b":"c","d":[1,2]}')).toEqual({ a: { b: 'c', d: [1, 2] } });
  });
});

describe('keys', () => {
  test('reads quoted keys and those of managedFields', () => {
    expect(read('"a b": 1', "'80': 2", 'k:{"port":80,"protocol":"TCP"}:', '  .: {}', '  f:port: {}')).toEqual({
      'a b': 1,
      80: 2,
      'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} },
    });
  });

  test('does not take a key for a longer or shorter one it has seen', () => {
    expect(read('- port: 1', '- ports: 2', '- por: 3', '- port:x: 4')).toEqual([
      { port: 1 },
      { ports: 2 },
      { por: 3 },
      { 'port:x': 4 },
    ]);
  });
});

test('words with one hash are kept apart, and each means what it does alone', () => {
  const memory = new Memory();
  // The hash looks at the length, the first and the last character, and two in between.
  const alike = ['+1234567', '+1294567', '+_234567', '+1234_67', '+1234o67', '+1234567'];
  // To the reader, all characters beyond ASCII are one letter.
  const foreign = ['caf\u00e9', 'caf\u00e8', '\u4e16\u754c', '\u754c\u4e16', 'caf\u00e9'];
  for (const word of [...alike, ...foreign, '80', 'on', '08', '80', 'on', 'x', '80', 'node-17', 'node-71', 'node-17'])
    expect(readYamlFast(`- ${word}\n`, undefined, memory)).toEqual({ value: [resolvePlainScalar(word)] });
});

test('a document is read without what is left of the one before', () => {
  const memory = new Memory();
  for (const text of ['a: 1234567 # comment', 'a: 1', 'a:', 'a: b\u00e9', 'a: 12'])
    expect(readYamlFast(text, undefined, memory)).toEqual(readYamlFast(text));
});

describe('a stretch of a text', () => {
  test('reads nothing beyond it', () => {
    const text = 'a: 1\n---\nb: x\n---\n  c: 3\n';
    expect(readYamlFast(text, { start: 5, end: 14 })).toEqual({ value: { b: 'x' } });
    expect(readYamlFast('a: 1234', { start: 0, end: 5 })).toEqual({ value: { a: 12 } });
  });

  test('reads lines that end as on Windows', () => {
    const text = '---\r\na: 1 # one\r\nb: |\r\n  two\r\n  lines\r\n---\r\nc: 2\r\n';
    expect(readYamlFast(text, { start: 0, end: text.lastIndexOf('---') })?.value).toEqual({ a: 1, b: 'two\nlines\n' });
  });
});

describe('values that the full parser reads, within a document', () => {
  test.each([
    ['"__proto__"', 'x: {"__proto__": 1}'],
    ['flow collections over lines', 'a: [1,\n  2]'],
    ['flow keys without values', 'a: {b, c: 1}'],
    ['pairs in flow sequences', 'a: [b: 1]'],
    ['indentation indicators', 'a: |2\n    b'],
    ['a block without lines', 'a: |\nb: 1'],
    ['a comment out of line after a block', 'a: |\n    b\n  # c'],
    ['deeper lines in a folded block', 'a: >\n  b\n    c\n'],
    ['blanks behind the last line of folded text', 'a: b\n  c \nd: 1'],
    ['blanks and a comment behind it', 'a: b\n  c  # d\ne: 1'],
  ])('%s', (_, text) => {
    const document = `kind: List\nitems:\n- ${text.replaceAll('\n', '\n  ')}\nlast: one\n`;
    expect({ kind: 'value', ...readYamlFast(document) }).toEqual(parseYamlValue(document));
  });
});

test('reads texts of any length, and any number of comments', () => {
  const long = 'x y '.repeat(3_000_000);
  expect(readYamlFast(`a: ${long}`)).toEqual({ value: { a: long.trimEnd() } });
  expect(readYamlFast(`a:${'\n# b'.repeat(3_000_000)}\n  c: 1`)).toEqual({ value: { a: { c: 1 } } });
  expect(readYamlFast(`a: "${long}"`)).toEqual({ value: { a: long } });
});

describe('what is left to the full parser', () => {
  test.each([
    ['duplicate keys', 'a: 1\nb: 2\na: 3'],
    ['duplicate keys in flow style', 'x: {a: 1, a: 2}'],
    ['a duplicate among quoted keys', 'a: 1\n"a": 2'],
    ['a duplicate of a key seen before', '- a: 1\n  b: 2\n- a: 1\n  b: 2\n  a: 3'],
    ['__proto__', '__proto__: {a: 1}'],
    ['anchors', 'a: &x 1'],
    ['aliases', 'a: *x'],
    ['aliases in brackets, which multiply in the document as a whole', 'a: [&x 1, *x]'],
    ['brackets too deep below mappings', `a:\n  b: ${'['.repeat(490)}${']'.repeat(490)}`],
    ['tags', 'a: !!str 1'],
    ['merge keys', '<<: {a: 1}'],
    ['explicit keys', '? a\n: 1'],
    ['directives', '%YAML 1.1\n---\na: 1'],
    ['the end marker', 'a: 1\n...\n'],
    ['a second document', 'a: 1\n---\nb: 2'],
    ['tabs', 'a:\tb'],
    ['a carriage return within a line', 'a: 1\rb: 2'],
    ['control characters', 'a: \u0007'],
    ['control characters in quotes', 'a: "\u0007"'],
    ['control characters in single quotes', "a: '\u0007'"],
    ['control characters in a comment', 'a: 1 # \u0007'],
    ['control characters in a comment behind the first line', '--- # \u0007\na: 1'],
    ['control characters in a block', 'a: |\n  b\u0007'],
    ['control characters in a key', '"a\u0007": 1'],
    ['control characters in brackets', 'a: [\u0007]'],
    ['delete, the last of them', 'a: b\u007f'],
    ['control characters beyond ASCII', 'a: \u0085'],
    ['a tab behind a quote', 'a: "b"\t'],
    ['a byte order mark', '\ufeffa: 1'],
    ['other line ends', 'a: b\u2028c'],
    ['keys that are no text', '80: a'],
    ['keys that are words for true and false', 'on: a'],
    ['a mapping on the line of its key', 'a: b: c'],
    ['a sequence on the line of its key', 'a: - b'],
    ['an item that is out of line', 'a:\n  - 1\n - 2'],
    ['a key that is out of line', 'a:\n    b: 1\n  c: 2'],
    ['a comment inside of folded text', 'a: one\n  # two\n  three'],
    ['an unknown escape', String.raw`a: "\z"`],
    ['half a surrogate pair', String.raw`a: "\ud83d"`],
    ['an open quote', "a: 'b\nc: d"],
    ['text after a quote', 'a: "b" c'],
    ['a comment without a blank before it', 'a: "b"# c'],
    ['an open bracket', 'a: [1, 2'],
    ['an open bracket in brackets', 'a: [x, [1 "y"]'],
    ['text behind a quote in brackets', 'a: {b: [1, -2.5"y"}'],
    ['wide blank lines before a block', 'a: |\n     \n  b\n'],
    ['quoted text that goes on too far left', "a:\n  b: 'c\n  d'"],
    ['"<<"', '"<<": {a: 1}'],
    ['text before the end of a mapping', 'a:\n  b: 1\nc'],
    ['a document that is one word', 'word'],
    ['nesting without end', '- '.repeat(1000)],
    ['flow nesting without end', `a: ${'['.repeat(100_000)}`],
  ])('%s', (_, text) => {
    expect(readYamlFast(text)).toBeUndefined();
  });
});

test('reads into plain objects, whatever the keys', () => {
  const value = read('constructor: 1', 'toString: 2', 'hasOwnProperty: 3');
  expect(value).toEqual({ constructor: 1, toString: 2, hasOwnProperty: 3 });
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
});
