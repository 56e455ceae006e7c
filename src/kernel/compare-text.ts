/** Compares strings as Go does. For the ASCII names and addresses here, that is the order of character codes. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export function compareNamed(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareText(a.name, b.name);
}
