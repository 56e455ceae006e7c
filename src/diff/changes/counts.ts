import { formatCount } from '../../base/format-count.ts';

/** "1 rule", "2,300 rules". */
export function count(number: number, one: string, more = `${one}s`): string {
  return `${formatCount(number)} ${number === 1 ? one : more}`;
}

/** "+ 2 rules"; nothing where there are none. */
export function signed(sign: string, number: number): readonly string[] {
  return number === 0 ? [] : [`${sign} ${count(number, 'rule')}`];
}

/** Few things by their names, many by their number. */
export function namesOf(sign: string, what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const text = names.length > 3 ? '' : ` ${names.join(', ')}`;
  return [`${sign} ${count(names.length, what)}${text}`];
}
