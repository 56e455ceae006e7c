import { expect, test } from 'vitest';
import { formatUnifiedDiff } from '../../src/report/unified.ts';

const many = Array.from({ length: 6000 }, (_, i) => `line ${i}\n`).join('');
const others = Array.from({ length: 6000 }, (_, i) => `other ${i}\n`).join('');

test.for([
  ['a file that was not there', undefined, many, ['--- /dev/null', '+++ b/x', '@@ -0,0 +1,6000 @@', '+line 0']],
  ['a file that is gone', many, undefined, ['--- a/x', '+++ /dev/null', '@@ -1,6000 +0,0 @@', '-line 0']],
  ['another file', many, others, ['--- a/x', '+++ b/x', '@@ -1,6000 +1,6000 @@', '-line 0']],
] as const)('of %s, too different to compare line by line', ([, before, after, head]) => {
  const diff = formatUnifiedDiff('x', before, after).split('\n');
  expect(diff.slice(0, 4)).toEqual(head);
  expect(diff.length).toBe(3 + (before ? 6000 : 0) + (after ? 6000 : 0) + 1);
});

test('a last line without an end is marked, whichever way the diff was made', () => {
  for (const text of ['one', many.slice(0, -1)]) {
    expect(formatUnifiedDiff('x', undefined, text)).toMatch(/\n\\ No newline at end of file\n$/);
  }
});

test('an absolute path is written as git writes it', () => {
  expect(formatUnifiedDiff('/tmp/golden/x', 'a\n', 'b\n')).toBe(
    '--- a/tmp/golden/x\n+++ b/tmp/golden/x\n@@ -1,1 +1,1 @@\n-a\n+b\n',
  );
});
