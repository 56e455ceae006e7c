/** How large the heap may become, in bytes. Browsers do not say; those of today give a page this much and more. */
export function heapLimit(): number {
  return 2 ** 31;
}
