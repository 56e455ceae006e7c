import fc from 'fast-check';
import ignore from 'ignore';
import { expect, test } from 'vitest';
import { IgnorePatterns } from '../../src/input/files/list-files.ts';
import { costInMegabytes } from '../support/cpu-time.ts';
import { rounds } from '../support/rounds.ts';

function judgedByPackage(lines: readonly string[], path: string, isFolder: boolean) {
  const { ignored, unignored } = ignore()
    .add([...lines])
    .test(isFolder ? `${path}/` : path);
  if (ignored) return 'ignored';
  return unignored ? 'unignored' : undefined;
}

const name = fc
  .string({ unit: fc.constantFrom('a', 'b', 'c', '.', '-'), minLength: 1, maxLength: 4 })
  .filter((text) => !/^\.+$/.test(text));
const part = fc.oneof(
  fc
    .string({
      unit: fc.constantFrom('a', 'b', 'c', '.', '*', '?', '[ab]', '[a-c]'),
      minLength: 1,
      maxLength: 5,
    })
    .filter((text) => !text.includes('**')),
  fc.constant('**'),
);
const pattern = fc
  .tuple(fc.constantFrom('', '/'), fc.array(part, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '/'))
  .map(([start, parts, end]) => `${start}${parts.join('/')}${end}`)
  .filter((text) => !text.includes('**/**') && !/\*\*\/?$/.test(text));

// Of several, and of ** at the end, the package and git think differently.
test('a pattern means what the package ignore makes of it', () => {
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'));
  fc.assert(
    fc.property(pattern, path, fc.boolean(), (line, at, isFolder) => {
      expect(new IgnorePatterns([line]).test(at, isFolder)).toBe(judgedByPackage([line], at, isFolder));
    }),
    { numRuns: rounds(2000) },
  );
});

test.each([
  ['# a comment', '# a comment', undefined],
  ['\\#a', '#a', 'ignored'],
  ['\\!a', '!a', 'ignored'],
  ['a  ', 'a', 'ignored'],
  ['a\\ ', 'a ', 'ignored'],
  ['', 'a', undefined],
  ['SVC.yaml', 'svc.YAML', 'ignored'],
  ['charts/', 'x/charts/y/z.yaml', 'ignored'],
  ['/charts', 'x/charts', undefined],
  ['a/**', 'a', undefined],
  ['a/**/b', 'a/b', 'ignored'],
  ['a/**/b', 'a/x/y/b', 'ignored'],
  ['[]a]b', ']b', 'ignored'],
  ['[!a]', 'b', 'ignored'],
  ['[^a]', 'a', undefined],
  ['[a', '[a', 'ignored'],
] as const)('%j of %j: %s', (line, path, verdict) => {
  expect(new IgnorePatterns([line]).test(path, false)).toBe(verdict);
});

test('many wildcards take steps in proportion to pattern and name', async () => {
  const lines = Array.from({ length: rounds(1000, 4) }, (_, i) => `${'*a'.repeat(20)}*${i}b`);
  const patterns = new IgnorePatterns(lines);
  const cost = await costInMegabytes(() => {
    for (let i = 0; i < 20; i++) expect(patterns.test(`${'a'.repeat(244)}${i}.yaml`, false)).toBeUndefined();
  });
  expect(cost).toBeLessThan(rounds(6, 4));
});
