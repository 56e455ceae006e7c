import { describe, expect, it } from 'vitest';
import { readJsonFast, readMarkedJson } from '../../src/input/fast-json.ts';
import { KnownKeys } from '../../src/input/known-keys.ts';

describe('values', () => {
  it.each([
    '{}',
    '[]',
    ' { "a" : [ 1 , -2.5e3 , 0 , -0 , true , false , null , "" ] , "b" : { } }\n',
    '{"text":"line\\nbreak \\u00e9 \\"quoted\\" \\\\"}',
    '{"10":1,"2":2,"a":3}',
    '"alone"',
    '{"a":"\u2028 and \u007f may stand in a string"}',
  ])('reads %s as JSON.parse does', (text) => {
    const value = JSON.parse(text) as unknown;
    expect(readJsonFast(text)).toEqual({ value });
    expect(JSON.stringify(readJsonFast(text)?.value)).toBe(JSON.stringify(value));
  });

  it('reads a stretch of a text', () => {
    expect(readJsonFast('x{"a":1}y', { start: 1, end: 8 })).toEqual({ value: { a: 1 } });
    expect(readJsonFast('x{"a":1}y', { start: 1, end: 9 })).toBeUndefined();
    expect(readJsonFast('x{"a":1}y', { start: 1, end: 7 })).toBeUndefined();
  });
});

describe('what JSON.parse has to judge', () => {
  it.each([
    ['nothing', ''],
    ['blanks', ' \n'],
    ['two values', '{} {}'],
    ['a comma at the end', '{"a":1,}'],
    ['a comma too many', '[1,,2]'],
    ['a key without quotes', '{a:1}'],
    ['single quotes', "{'a':1}"],
    ['a number with a leading zero', '[01]'],
    ['a number that ends in a dot', '[1.]'],
    ['a plus', '[+1]'],
    ['a word', '[True]'],
    ['a word and more', '[nullx]'],
    ['a text that does not end', '["a'],
    ['an escape that is none', '["\\x"]'],
    ['a line feed in a text', '["a\nb"]'],
    ['a tab in a text', '["a\tb"]'],
    ['a comment', '{} // x'],
    ['another blank', '[1,\u00a02]'],
    ['an object that does not end', '{"a":1'],
    ['a key twice', '{"a":1,"a":2}'],
    ['a prototype', '{"__proto__":{"a":1}}'],
    ['deep nesting', '['.repeat(100) + ']'.repeat(100)],
  ])('leaves %s to it', (_, text) => {
    expect(readJsonFast(text)).toBeUndefined();
  });
});

describe('objects that are written alike', () => {
  // The first two differ in scalars alone, so the reader knows by the third what may differ.
  const first = '{"a": "x", "b": [1], "c": {"d": true}}';
  const second = '{"a": "y", "b": [2], "c": {"d": true}}';

  it.each([
    ['alike', '{"a": "z", "b": [3], "c": {"d": true}}'],
    ['with scalars of other types', '{"a": null, "b": ["3"], "c": {"d": true}}'],
    ['with an escape', '{"a": "z\\t", "b": [3], "c": {"d": true}}'],
    ['with an object for a scalar', '{"a": {"e": 1}, "b": [3], "c": {"d": true}}'],
    ['with a list for a scalar', '{"a": [], "b": [3], "c": {"d": true}}'],
    ['with a longer list', '{"a": "z", "b": [3, 4], "c": {"d": true}}'],
    ['with an empty list', '{"a": "z", "b": [], "c": {"d": true}}'],
    ['with another key', '{"a": "z", "b": [3], "e": {"d": true}}'],
    ['with one key more', '{"a": "z", "b": [3], "c": {"d": true}, "e": 1}'],
    ['with one key less', '{"a": "z", "b": [3]}'],
    ['with what did not differ before', '{"a": "z", "b": [3], "c": {"d": false}}'],
    ['in other blanks', '{"a":"z","b":[3],"c":{"d":true}}'],
  ])('reads one %s as others before it', (_, text) => {
    const known = new KnownKeys();
    for (const before of [first, second]) readJsonFast(before, undefined, known);
    expect(readJsonFast(text, undefined, known)).toEqual({ value: JSON.parse(text) as unknown });
    expect(readJsonFast(first, undefined, known)).toEqual({ value: JSON.parse(first) as unknown });
  });

  it.each([
    ['ends early', '{"a": "z", "b": [3], "c": {"d": true}'],
    ['breaks off in a text', '{"a": "z'],
    ['has a number that is none', '{"a": "z", "b": [03], "c": {"d": true}}'],
  ])('leaves one that %s to JSON.parse', (_, text) => {
    const known = new KnownKeys();
    for (const before of [first, second]) readJsonFast(before, undefined, known);
    expect(readJsonFast(text, undefined, known)).toBeUndefined();
  });

  it('does not let values that share what is written alike change each other', () => {
    const known = new KnownKeys();
    const texts = Array.from({ length: 20 }, (_, i) => `{"a": ${i}, "b": {"c": [${i % 3}, "x"]}, "d": "same"}`);
    const values = texts.map((text) => readJsonFast(text, undefined, known)?.value);
    expect(values).toEqual(texts.map((text) => JSON.parse(text) as unknown));
  });
});

describe('JSON in a stream of YAML documents', () => {
  const read = (text: string) => readMarkedJson(text, { start: 0, end: text.length });

  it.each(['---\n{"a":1}\n', '--- {\n "a": 1\n}\n'])('reads %j', (text) => {
    expect(read(text)).toEqual({ value: { a: 1 } });
  });

  it.each([
    ['no start marker', '{"a":1}'],
    ['a comment', '---\n{"a":1} # one'],
    ['a key twice, which YAML refuses', '---\n{"a":1,"a":2}'],
    ['a tab, which YAML takes only in some places', '---\n{\n\t"a":1}'],
    ['a carriage return', '---\n{"a":1}\r\n'],
    ['a brace further on, whose line YAML may read otherwise', '---\n {"a":1}'],
  ])('leaves %s to the YAML parser', (_, text) => {
    expect(read(text)).toBeUndefined();
  });
});
