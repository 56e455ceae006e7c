import { formatCount, joinWays } from '../../base/printable.ts';
import type { Cited, Row } from '../../base/findings/rows.ts';

/** The problem, followed by known ways to fix it. Each of the ways is enough. */
export type Words = string | readonly [wrong: string, ...ways: readonly (string | undefined)[]];

/** A finding in words: the problem, and kpc's advice if there is any. */
export interface Said {
  readonly text: string;
  readonly help: string | undefined;
}

/** Rewords a text for a caller. Undefined if the text names an option that the caller does not have. */
export type Speak = (way: string) => string | undefined;

export function didYouMean(near: string | undefined, otherwise?: string): string | undefined {
  return near === undefined ? otherwise : `did you mean ${near}?`;
}

export const listCodes = 'list the codes with "kpc explain"';

/** Puts into words a finding that is among another finding's arguments. */
export type Say = (cited: Cited) => Said;

type Worder<Arguments> = (details: Arguments, say: Say) => Words;

/** Either words, or a function that makes words from the arguments. */
export type Wording<Arguments> = Words | Worder<Arguments>;

/** Words for all codes of a table. */
export type WordsOf<Table> = {
  readonly [Code in keyof Table]: Table[Code] extends Row<infer Arguments> ? Wording<Arguments> : never;
};

/** Makes words for a code with several cases. The argument named `key` tells the cases apart. */
export function byCase<Key extends string, Arguments extends { readonly [K in Key]: string }>(
  key: Key,
  cases: { readonly [C in Arguments[Key]]: Wording<Extract<Arguments, { readonly [K in Key]: C }>> },
): Worder<Arguments> {
  return (details, say) => inWords(cases[details[key]], details as never, say);
}

function inWords<Arguments>(wording: Wording<Arguments>, details: Arguments, say: Say): Words {
  return typeof wording === 'function' ? wording(details, say) : wording;
}

/** Puts a finding into the words of a table, with the findings in its arguments. `speak` rewords each piece of advice for the caller. */
export function sayIn(
  table: Readonly<Record<string, unknown>>,
  { code, arguments: details }: Cited,
  speak: Speak = (way) => way,
): Said {
  const made = inWords(table[code] as Wording<unknown>, details, (cited) => sayIn(table, cited, speak));
  const [text, ...ways] = typeof made === 'string' ? [made] : made;
  return { text: speak(text) ?? text, help: joinWays(ways.flatMap((way) => (way && speak(way)) ?? [])) || undefined };
}

/** Keeps the first lines and says how many more there are. If only one line would be cut, keeps it, because the count takes a line too. */
export function cutLines<Line>(lines: readonly Line[], most: number, more: (words: string) => Line): readonly Line[] {
  if (lines.length <= most + 1) return lines;
  return [...lines.slice(0, most), more(`and ${formatCount(lines.length - most)} more`)];
}

const mostShown = 3;

export function nameSome(names: readonly string[], most: number = mostShown): string {
  const some = names.slice(0, most).join(', ');
  return names.length > most ? `${some} and ${formatCount(names.length - most)} more` : some;
}
