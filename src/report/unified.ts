import { createTwoFilesPatch, formatPatch } from 'diff';
import { printable, printableLines } from '../base/printable.ts';
import { filePairs } from '../diff/comparable-texts.ts';
import type { Side } from '../diff/compared-side.ts';
import type { CheckResult } from '../sides/check-folder.ts';

/**
 * Finding the least difference of two very different files takes quadratic time: past this many lines, about four
 * seconds' work, it is not sought. A limit in seconds would make the output depend on the machine.
 */
const maxEditLength = 5000;

const headerOptions = { includeIndex: false, includeUnderline: false, includeFileHeaders: true };

/**
 * The unified diff of a file, with the names as diff -u writes them; an absent side is /dev/null. Files too different
 * to compare line by line within the limit are shown as replaced whole. A character that a terminal would act on is a dot.
 */
export function formatUnifiedDiff(name: string, before: string | undefined, after: string | undefined): string {
  // git writes an absolute path as a/tmp/x: patch -p1 then takes it for one below the folder it runs in.
  const path = name.replace(/^\/+/, '');
  const from = before === undefined ? '/dev/null' : `a/${path}`;
  const to = after === undefined ? '/dev/null' : `b/${path}`;
  const patch =
    leastEdits(before ?? '', after ?? '') > maxEditLength
      ? undefined
      : createTwoFilesPatch(from, to, before ?? '', after ?? '', undefined, undefined, {
          context: 3,
          headerOptions,
          maxEditLength,
        });
  return printableLines(patch ?? replaceWhole(from, to, before ?? '', after ?? ''));
}

/** The unified diffs of the files of a folder, and the names of those that no bundle has, as diff -r has it. */
export function formatFileDiffs(
  folder: string,
  { pairs, strangers }: Extract<CheckResult, { readonly kind: 'differs' }>,
): string {
  const diffs = pairs.map(({ name, from, to }) => formatUnifiedDiff(`${folder}/${name}`, from, to));
  const others = strangers.map((name) => `${printable(`Only in ${folder}: ${name}`)}\n`);
  return [...diffs, ...others].join('');
}

/** The unified diffs of what can be compared of two sides. */
export function formatSideDiffs(from: Side, to: Side): string {
  return filePairs(from, to)
    .map((pair) => formatUnifiedDiff(pair.name, pair.from, pair.to))
    .join('');
}

/** The least number of lines that come or go, whatever their order: it finds files that are too different, without computing the difference. */
function leastEdits(before: string, after: string): number {
  const counts = new Map<string, number>();
  for (const line of lines(before)) counts.set(line, (counts.get(line) ?? 0) + 1);
  for (const line of lines(after)) counts.set(line, (counts.get(line) ?? 0) - 1);
  let edits = 0;
  for (const count of counts.values()) edits += Math.abs(count);
  return edits;
}

function replaceWhole(from: string, to: string, before: string, after: string): string {
  const [removed, added] = [lines(before), lines(after)];
  const hunk = {
    oldStart: 1,
    oldLines: removed.length,
    newStart: 1,
    newLines: added.length,
    lines: [...signed('-', removed, before), ...signed('+', added, after)],
  };
  const headers = { oldFileName: from, newFileName: to, oldHeader: undefined, newHeader: undefined };
  return formatPatch({ ...headers, hunks: [hunk] }, headerOptions);
}

function lines(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

function signed(sign: string, all: readonly string[], text: string): readonly string[] {
  const marked = all.map((line) => sign + line);
  return text === '' || text.endsWith('\n') ? marked : [...marked, '\\ No newline at end of file'];
}
