import { compareText } from '../../kernel/compare-text.ts';

/** Orders names as people count: web-2 before web-10. */
export function compareNames(a: string, b: string): number {
  const theirs = b.match(pieces) ?? [];
  for (const [i, piece] of (a.match(pieces) ?? []).entries()) {
    const other = theirs[i] ?? '';
    const difference = isNumber(piece) && isNumber(other) ? compareNumbers(piece, other) : compareText(piece, other);
    if (difference !== 0) return difference;
  }
  return compareText(a, b);
}

/** Numbers, and what is between them. */
const pieces = /\d+|\D+/g;

function isNumber(text: string): boolean {
  return /^\d/.test(text);
}

/** They may be longer than a number can be. */
function compareNumbers(a: string, b: string): number {
  const [one, other] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return one.length - other.length || compareText(one, other);
}
