/** The order of Go's strings, which for the names and addresses here is that of their characters' codes. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** By name, in that order. */
export function compareNamed(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareText(a.name, b.name);
}
