/** The order of Go's strings, which for the names and addresses here is that of their characters' codes. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
