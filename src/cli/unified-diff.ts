import { createTwoFilesPatch } from 'diff';

/**
 * Finding the least difference of two very different files takes quadratic time: past this many lines, about four
 * seconds' work, it is not sought. A limit in seconds would make the output depend on the machine.
 */
const maxEditLength = 5000;

/**
 * The unified diff of a file, with the names as diff -u writes them; an absent side is /dev/null. Files too different
 * to compare line by line within the limit are shown as replaced whole.
 */
export function formatUnifiedDiff(name: string, before: string | undefined, after: string | undefined): string {
  const from = before === undefined ? '/dev/null' : `a/${name}`;
  const to = after === undefined ? '/dev/null' : `b/${name}`;
  const options = {
    context: 3,
    headerOptions: { includeIndex: false, includeUnderline: false, includeFileHeaders: true },
  };
  const patch = createTwoFilesPatch(from, to, before ?? '', after ?? '', undefined, undefined, {
    ...options,
    maxEditLength,
  });
  return patch ?? replaceWhole(from, to, before ?? '', after ?? '');
}

function replaceWhole(from: string, to: string, before: string, after: string): string {
  const removed = lines(before);
  const added = lines(after);
  return [
    `--- ${from}`,
    `+++ ${to}`,
    `@@ -1,${removed.length} +1,${added.length} @@`,
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    '',
  ].join('\n');
}

function lines(text: string): readonly string[] {
  return text.replace(/\n$/, '').split('\n');
}
