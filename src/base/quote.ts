import { escapeCharacter, unprintable } from './printable.ts';

/** A value from the input, in quotes, short, and without anything that could move a terminal's cursor. */
export function quote(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short).replace(unprintable, escapeCharacter);
}

/** As quote, without the quotes. */
export function escapeText(text: string): string {
  return quote(text).slice(1, -1);
}

/** What a person calls a field: its own name, with the index of a list's item. */
export function fieldName(path: readonly (string | number)[]): string {
  const last = path.at(-1);
  if (last === undefined) return 'the document';
  if (typeof last === 'string') return last;
  const parent = path.at(-2);
  return typeof parent === 'string' ? `${parent}[${last}]` : `[${last}]`;
}
