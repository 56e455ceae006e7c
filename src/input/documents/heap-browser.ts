/** Returns the heap limit in bytes. Browsers do not report one; current browsers allow a page at least this much. */
export function heapLimit(): number {
  return 2 ** 31;
}
