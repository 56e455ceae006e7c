import { formatCount } from './format-count.ts';

/** "a, b and c", or with another word before the last. */
export function joinWords(words: readonly string[], conjunction: 'and' | 'or' = 'and'): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${conjunction} ${words.at(-1)}`;
}

/** The first lines, and how many more there are. If only one more follows, it is there, because the count takes a line too. */
export function cutLines<Line>(lines: readonly Line[], most: number, more: (words: string) => Line): readonly Line[] {
  if (lines.length <= most + 1) return lines;
  return [...lines.slice(0, most), more(`and ${formatCount(lines.length - most)} more`)];
}

const mostShown = 3;

/** The first names of a list: "a, b, c and 4 more". */
export function nameSome(names: readonly string[], most: number = mostShown): string {
  const some = names.slice(0, most).join(', ');
  return names.length > most ? `${some} and ${formatCount(names.length - most)} more` : some;
}
