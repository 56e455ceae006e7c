import { describe, expect, test } from 'vitest';
import { splitDocuments } from '../../src/input/split-documents.ts';

function split(text: string): readonly string[] {
  return splitDocuments(text).map(({ start, end }) => text.slice(start, end));
}

describe('splitting a file into documents', () => {
  test.each([
    ['a: 1\n---\nb: 2\n', ['a: 1\n', '---\nb: 2\n']],
    ['a: 1\r\n---\r\nb: 2\r\n', ['a: 1\r\n', '---\r\nb: 2\r\n']],
    ['a: 1\n...\nb: 2\n', ['a: 1\n', '\nb: 2\n']],
    ['a: 1\n... # end\n--- b', ['a: 1\n', '--- b']],
    ['--- a\n--- b', ['--- a\n', '--- b']],
    ['---', []],
    ['a: 1\n---x\n', ['a: 1\n---x\n']],
  ])('%j', (text, documents) => {
    expect(split(text)).toEqual(documents);
  });

  test('a directive belongs to the document after it, however many comments and starts are between', () => {
    const text = `%YAML 1.2\n${'# comment\n---\n'.repeat(3)}a: 1\n---\nb: 2\n`;
    expect(split(text)).toEqual([text.slice(0, text.indexOf('---\nb')), '---\nb: 2\n']);
    expect(split('%a\n---\n'.repeat(50_000))).toEqual([]);
  });

  test.each(['a: b\r---\rc: d', 'a: b\u2028---\nc: d', 'a: b\u2029--- c'])('no line starts inside %j', (text) => {
    expect(split(text)).toEqual([text]);
  });

  test('an end marker with more behind it ends nothing, for what comes there would begin inside a line', () => {
    expect(split('a: 1\n... b: 2\n')).toEqual(['a: 1\n... b: 2\n']);
  });
});
