import { escapeCharacter, unprintable } from './printable.ts';

/** A value from the input, in quotes, short, and without anything that could move a terminal's cursor. */
export function quote(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short).replace(unprintable, escapeCharacter);
}
