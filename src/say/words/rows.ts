import { joinWays } from '../../base/printable.ts';
import type { Cited, Row } from '../../base/findings/rows.ts';

/** The problem, then each way to fix it that kpc knows; one of them is enough. */
export type Words = string | readonly [wrong: string, ...ways: readonly (string | undefined)[]];

/** A finding in words: the problem, and kpc's advice if it has any. */
export interface Said {
  readonly text: string;
  readonly help: string | undefined;
}

/** Rewords a text for a caller; undefined if the caller lacks an option that the text names. */
export type Speak = (way: string) => string | undefined;

export function didYouMean(near: string | undefined, otherwise?: string): string | undefined {
  return near === undefined ? otherwise : `did you mean ${near}?`;
}

export const listCodes = 'list the codes with "kpc explain"';

/** Puts a finding that another finding's arguments cite into words. */
export type Say = (cited: Cited) => Said;

type Worder<Arguments> = (details: Arguments, say: Say) => Words;

/** The words, or how the arguments make them. */
export type Wording<Arguments> = Words | Worder<Arguments>;

/** The words of the codes of a table. */
export type WordsOf<Table> = {
  readonly [Code in keyof Table]: Table[Code] extends Row<infer Arguments> ? Wording<Arguments> : never;
};

/** The words of a code with several cases; its argument `key` is the case. */
export function byCase<Key extends string, Arguments extends { readonly [K in Key]: string }>(
  key: Key,
  cases: { readonly [C in Arguments[Key]]: Wording<Extract<Arguments, { readonly [K in Key]: C }>> },
): Worder<Arguments> {
  return (details, say) => inWords(cases[details[key]], details as never, say);
}

function inWords<Arguments>(wording: Wording<Arguments>, details: Arguments, say: Say): Words {
  return typeof wording === 'function' ? wording(details, say) : wording;
}

/** Puts a finding, and the findings that it cites, into the words of a table. `speak` rewords each piece of advice for the caller. */
export function sayIn(
  table: Readonly<Record<string, unknown>>,
  { code, arguments: details }: Cited,
  speak: Speak = (way) => way,
): Said {
  const made = inWords(table[code] as Wording<unknown>, details, (cited) => sayIn(table, cited, speak));
  const [text, ...ways] = typeof made === 'string' ? [made] : made;
  return { text: speak(text) ?? text, help: joinWays(ways.flatMap((way) => (way && speak(way)) ?? [])) || undefined };
}
