// Gives an answer that is too long in parts, and says so.
import { z } from 'zod';
import { diagnose } from '../../src/base/findings/finding.ts';
import type { CommandAnswer } from '../../src/say/formats/json.ts';
import { sayFinding } from '../../src/say/words/said.ts';
import { refuseUse } from './refusals.ts';

/** Limit on the characters of an answer, because an agent reads the whole answer. */
const longestAnswer = 200_000;

export type ToolAnswer = Pick<CommandAnswer<unknown>, 'result'> &
  Required<Pick<CommandAnswer<unknown>, 'findings' | 'snapshots'>>;

export interface MayBeLong {
  /** The lists of the result that may be long. */
  readonly lists: readonly string[];
  /** What to do if an answer is too long even so. */
  readonly narrower: string;
}

type Said = ToolAnswer['findings'][number];

const natural = z.number().int().min(0);

export const partParameters = {
  limit: natural.min(1).optional().describe('the most items in each list of the answer (default: as many as fit)'),
  skip: natural.optional().describe('how many items to leave out at the start of each list'),
};

export interface Part {
  readonly limit?: number | undefined;
  readonly skip?: number | undefined;
}

/** Formats an answer. If it is too long, shortens its lists until it fits, and adds a note that says what to ask next. */
export function formatPart(
  { lists, narrower }: MayBeLong,
  answer: ToolAnswer,
  { limit = Infinity, skip = 0 }: Part,
  format: (answer: ToolAnswer) => string,
): string {
  const longest = Math.max(answer.findings.length, ...listsIn(answer, lists).map(([, list]) => list.length)) - skip;
  for (let most = limit; most >= 1;) {
    const text = format(cutLists(answer, lists, skip, most));
    if (text.length <= longestAnswer) return text;
    most = Math.floor((Math.min(most, longest) * longestAnswer * 0.9) / text.length);
  }
  return refuseUse(`the answer is longer than ${longestAnswer} characters`, `${narrower}, or run kpc itself`);
}

function listsIn({ result }: ToolAnswer, lists: readonly string[]): readonly (readonly [string, readonly unknown[]])[] {
  return Object.entries(Object(result) as object).filter(
    (entry): entry is [string, readonly unknown[]] => lists.includes(entry[0]) && Array.isArray(entry[1]),
  );
}

function cutLists(answer: ToolAnswer, lists: readonly string[], skip: number, limit: number): ToolAnswer {
  const { findings: all, result, snapshots } = answer;
  const notes: Said[] = [];
  const cut = <Item>(list: string, items: readonly Item[], from = skip): readonly Item[] => {
    const some = items.slice(from, from + limit);
    const counts = { skip: from, shown: some.length, all: items.length };
    if (some.length < items.length) notes.push(sayFinding(diagnose('reading', { problem: 'part', list, ...counts })));
    return some;
  };
  const errors = all.filter(isError);
  // An answer without a result must have an error.
  const from = result === undefined ? Math.max(0, Math.min(skip, errors.length - 1)) : skip;
  const findings = cut('findings', [...errors, ...all.filter((each) => !isError(each))], from);
  const parts = Object.fromEntries(listsIn(answer, lists).map(([name, items]) => [name, cut(name, items)]));
  if (notes.length === 0) return answer;
  return { snapshots, findings: [...notes, ...findings], result: result && { ...result, ...parts } };
}

function isError({ severity }: Said): boolean {
  return severity === 'error';
}
