/** A whole number with a comma every three digits. Intl would do it too, but takes longer to wake than a small run takes. */
export function formatCount(whole: number): string {
  return String(whole).replace(/\B(?=(?:\d{3}){1,5}$)/g, ',');
}

/** "1 rule", "2,300 rules". */
export function count(number: number, one: string, more = `${one}s`): string {
  return `${formatCount(number)} ${number === 1 ? one : more}`;
}
