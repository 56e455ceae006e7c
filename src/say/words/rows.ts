import type { Cited, Row } from '../../base/findings/rows.ts';

/** What is wrong, then what to do about it, if kpc knows. */
export type Words = string | readonly [wrong: string, help?: string | undefined];

/** A finding in words: what is wrong, and what to do about it, if kpc has advice. */
export interface Said {
  readonly text: string;
  readonly help: string | undefined;
}

/** `say` puts a finding into words that the arguments cite. */
type Worder<Arguments> = (details: Arguments, say: (cited: Cited) => Said) => Words;

/** The words, or how the arguments make them. */
export type Wording<Arguments> = Words | Worder<Arguments>;

/** The words of the codes of a table. */
export type WordsOf<Table> = {
  readonly [Code in keyof Table]: Table[Code] extends Row<infer Arguments> ? Wording<Arguments> : never;
};

/** The words of a code that covers several cases, which its argument `key` tells apart. */
export function byCase<Key extends string, Arguments extends { readonly [K in Key]: string }>(
  key: Key,
  cases: { readonly [C in Arguments[Key]]: Wording<Extract<Arguments, { readonly [K in Key]: C }>> },
): Worder<Arguments> {
  return (details, say) => inWords(cases[details[key]], details as never, say);
}

export function inWords<Arguments>(
  wording: Wording<Arguments>,
  details: Arguments,
  say: (cited: Cited) => Said,
): Words {
  return typeof wording === 'function' ? wording(details, say) : wording;
}
