import { getHeapStatistics } from 'node:v8';

/** How large the heap may become, in bytes: V8 ends the process beyond. */
export function heapLimit(): number {
  return getHeapStatistics().heap_size_limit;
}
