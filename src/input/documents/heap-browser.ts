/** Heap limit in bytes. Browsers do not report it; current ones allow a page at least this much. */
export function heapLimit(): number {
  return 2 ** 31;
}
