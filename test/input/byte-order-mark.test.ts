import { expect, test } from 'vitest';
import { readDocuments } from '../../src/input/documents/read-documents.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

// To kubectl it is the first character of a text; JavaScript counts it among the white space that may precede JSON.
test.each(['\n\uFEFF{"a":1}', '\n  \uFEFF{"a":1}', ' \uFEFF{"a":1}\n{"b":2}', '{"a":1}\n\uFEFF{"b":2}'])(
  'a byte order mark before JSON, and not at the start of the file, is refused: %j',
  (text) => {
    const { diagnostics } = readDocuments(new TextFile('in.yaml', text));
    expect(diagnostics.map(({ severity }) => severity)).toContain('error');
  },
);

test('several JSON values behind one are refused: to kubectl, they are YAML, of which it reads the first alone', () => {
  for (const text of ['\uFEFF{"a":1}{"b":2}', '\uFEFF{"a":1}\n{"b":2}\n']) {
    const { documents, diagnostics } = readDocuments(new TextFile('in.json', text));
    expect([documents.length, diagnostics.length]).toEqual([0, 1]);
  }
  for (const text of ['\uFEFF{"a":1}\n---\n{"b":2}', '\uFEFF{\n\t"a": 1\n}', '\uFEFFa: 1\n']) {
    const { documents, diagnostics } = readDocuments(new TextFile('in.yaml', text));
    expect(diagnostics).toEqual([]);
    expect(documents[0]?.value).toEqual({ a: 1 });
  }
});

// To kubectl they are YAML, in which "..." ends a document.
test.each([
  '{"a":1}\n...\n---\n',
  '{\n\t"a": 1\n}\r\n...\r\n---\r\n',
  ' {"a":1}\n...\n...\n# c\n---\n',
  '{"a":"\\u0041"}\n...\n---\n',
])('a document behind one may end as one of YAML does: %j', (text) => {
  for (const name of ['in.yaml', 'in.json']) {
    const { documents, diagnostics } = readDocuments(new TextFile(name, `\uFEFF${text}{"b":2}\n`));
    expect(diagnostics).toEqual([]);
    expect(documents.map(({ value }) => value)).toEqual([{ a: text.includes('u0041') ? 'A' : 1 }, { b: 2 }]);
  }
});

test('what is wrong behind one is said of YAML, which it is to kubectl', () => {
  const { diagnostics } = readDocuments(new TextFile('in.json', '\uFEFF{"a":1}{"b":2}'));
  expect(diagnostics.map(({ code }) => code)).toEqual(['bad-yaml']);
});
