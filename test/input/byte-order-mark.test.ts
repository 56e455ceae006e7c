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
