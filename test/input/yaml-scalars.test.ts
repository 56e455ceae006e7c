import { expect, test } from 'vitest';
import { parseYamlValue } from '../../src/input/yaml/parse.ts';

// What sigs.k8s.io/yaml 1.6 (go.yaml.in/yaml/v2) makes of plain scalars.
test.each([
  ['yes', true],
  ['Off', false],
  ['y', true],
  ['N', false],
  ['yEs', 'yEs'],
  ['~', null],
  ['Null', null],
  ['010', 8],
  ['0o10', 8],
  ['08', 8],
  ['0x1F', 31],
  ['0b11', 3],
  ['-0b11', -3],
  ['1_000', 1000],
  ['+12', 12],
  ['1e3', 1000],
  ['.5', 0.5],
  ['1.', 1],
  ['1:20', '1:20'],
  ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
  ['10.96.0.1', '10.96.0.1'],
  ['2001-12-14', '2001-12-14'],
  ['1e', '1e'],
  ['.', '.'],
  ['"yes"', 'yes'],
  ["'010'", '010'],
  ['!!str yes', 'yes'],
  ['!!str 010', '010'],
])('%s', (text, value) => {
  expect(parseYamlValue(`a: ${text}\n`)).toEqual({ kind: 'value', value: { a: value } });
});

// As go-yaml's resolve table has them: lower case, one capital, all capitals, and no other spelling.
test.each([
  ...['y', 'yes', 'true', 'on'].map((word) => [word, true] as const),
  ...['n', 'no', 'false', 'off'].map((word) => [word, false] as const),
  ['null', null] as const,
])('%s in each spelling', (word, value) => {
  const [first = '', ...rest] = word;
  for (const spelling of [word, first.toUpperCase() + rest.join(''), word.toUpperCase()])
    expect(parseYamlValue(`a: ${spelling}\n`)).toEqual({ kind: 'value', value: { a: value } });
  const mixed = `${word}${word}`.replace(/^./, (letter) => letter.toUpperCase());
  expect(parseYamlValue(`a: ${mixed}\n`)).toEqual({ kind: 'value', value: { a: mixed } });
});

test('keys are texts', () => {
  expect(parseYamlValue('on: 1\n8080: 2\n')).toEqual({ kind: 'value', value: { true: 1, '8080': 2 } });
});

test('merge keys', () => {
  expect(parseYamlValue('a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}\n')).toEqual({
    kind: 'value',
    value: { a: { x: 1, z: 2 }, b: { x: 1, z: 3 } },
  });
});

test.each([
  ['overrides what stands before it', 'b: {x: 5, <<: *a}', { x: 1, z: 2 }],
  ['and not what stands after it', 'b: {<<: *a, x: 5}', { x: 5, z: 2 }],
  ['of a list, the first of which counts', 'b: {x: 5, <<: [{z: 7}, *a]}', { x: 1, z: 7 }],
  ['of a mapping that merges, too', 'c: &c {<<: *a, w: 4}\nb: {x: 5, w: 6, <<: *c}', { x: 1, z: 2, w: 4 }],
])('a merge %s', (_, text, b) => {
  expect(parseYamlValue(`a: &a {x: 1, z: 2}\n${text}\n`)).toMatchObject({ kind: 'value', value: { b } });
});

test('a mapping that merges itself is no value', () => {
  expect(parseYamlValue('b: &b {x: 5, <<: *b}\n').kind).toBe('faults');
});

test('a carriage return alone ends a line', () => {
  expect(parseYamlValue('a: b\rc: d\r')).toEqual({ kind: 'value', value: { a: 'b', c: 'd' } });
});

test('in quotes, << is a key like any other', () => {
  expect(parseYamlValue('a: {"<<": 1}\nb:\n  \'<<\': {x: 2}\n')).toEqual({
    kind: 'value',
    value: { a: { '<<': 1 }, b: { '<<': { x: 2 } } },
  });
});
