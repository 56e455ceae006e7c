import { readdirSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { locateInYaml } from '../../src/input/yaml/fast-reader.ts';
import { parseWithPlaces } from '../../src/input/yaml/parse.ts';
import { locatorOf } from '../../src/input/yaml/places.ts';

/** All paths of a value. */
function pathsOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...inner.flatMap(([step, each]: [string | number, unknown]) => pathsOf(each, [...path, step]))];
}

/** Asks both readers for the places of all fields. Returns how many there are. */
function comparePlaces(text: string): number {
  const full = parseWithPlaces(text);
  const locate = locateInYaml(text);
  if (!full || full.value === null || !locate) return 0;
  const expected = locatorOf(full.value, full.start, full.places);
  const paths = pathsOf(full.value);
  const differing: unknown[] = [];
  for (const path of paths)
    for (const of of ['key', 'value'] as const) {
      // An item has no key.
      if (of === 'key' && typeof path.at(-1) === 'number') continue;
      const [found, right] = [locate(path, of), expected(path, of)];
      // A document has thousands of fields, and each call of expect takes longer than to look at one.
      if (!isDeepStrictEqual(found, right)) differing.push([path, of, found, right]);
    }
  expect(differing).toEqual([]);
  return paths.length;
}

const odd = `# a comment
spec:   # of the mapping

  text: |
    one
      two: three
  folded: a b
    c d
  "quoted": "a\\tb"
  empty:
  null: ~
  flow: {a: 1, "b": [c, {d: e}], f: []}
  lines: [a,
    {b: c, d: [e,
    f]}]
  list:
  - a
  -
  - - b
    - c: d
      e: {f: g}
  - "h": i
  after: |-
    last
`;

describe('the fields of a document are where the full parser finds them', () => {
  test('in a document with all that is read fast', () => {
    expect(comparePlaces(odd)).toBeGreaterThan(30);
    expect(comparePlaces(`---\n${odd}`)).toBeGreaterThan(30);
  });

  test('with the ends of lines of Windows', () => {
    expect(comparePlaces(odd.replaceAll('\n', '\r\n'))).toBeGreaterThan(30);
  });

  test('in the fixtures', () => {
    const files = readdirSync('fixtures', { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.yaml'),
    );
    const texts = files.flatMap((name) => readFileSync(`fixtures/${name}`, 'utf8').split(/^(?=---)/m));
    expect(texts.reduce((sum, text) => sum + comparePlaces(text), 0)).toBeGreaterThan(10_000);
  });
});
