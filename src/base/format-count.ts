/** A whole number with a comma every three digits. Intl does the same, but loading it takes longer than a small run. */
export function formatCount(whole: number): string {
  return String(whole).replace(/\B(?=(?:\d{3}){1,5}$)/g, ',');
}

/** "1 rule", "2,300 rules". */
export function count(number: number, one: string, more = `${one}s`): string {
  return `${formatCount(number)} ${number === 1 ? one : more}`;
}

/** A share between 0 and 1 in words: "33.3%". */
export function percent(share: number): string {
  return `${Number((share * 100).toFixed(1))}%`;
}
