import { describe, expect, test } from 'vitest';
import { splitDocuments } from '../../src/input/documents/read-documents.ts';

function split(text: string): readonly string[] {
  const documents: string[] = [];
  splitDocuments(text, 0, ({ start, end }) => documents.push(text.slice(start, end)));
  return documents;
}

describe('splitting a file into documents', () => {
  test.each([
    ['a: 1\n---\nb: 2\n', ['a: 1\n', '---\nb: 2\n']],
    ['a: 1\r\n---\r\nb: 2\r\n', ['a: 1\r\n', '---\r\nb: 2\r\n']],
    ['a: 1\n...\nb: 2\n', ['a: 1\n...\nb: 2\n']],
    ['a: 1\n---#c\nb: 2\n', ['a: 1\n', '#c\nb: 2\n']],
    ['a: 1\n... # end\n--- b', ['a: 1\n... # end\n', '--- b']],
    ['--- a\n--- b', ['--- a\n', '--- b']],
    ['---', ['---']],
    ['---#c\na: 1\n', ['#c\na: 1\n']],
    ['a: 1\n---x\n', ['a: 1\n---x\n']],
  ])('%j', (text, documents) => {
    expect(split(text)).toEqual(documents);
  });

  test.each(['a: b\r---\rc: d', 'a: b\u2028---\nc: d', 'a: b\u2029--- c'])('no line starts inside %j', (text) => {
    expect(split(text)).toEqual([text]);
  });

  test('a comment ends where a line of YAML does, and what comes after it counts', () => {
    for (const end of ['\u0085', '\u2028', '\u2029', '\r']) {
      expect(split(`# c${end}a: 1\n`)).toEqual([`# c${end}a: 1\n`]);
    }
  });
});
