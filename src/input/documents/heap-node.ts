import { getHeapStatistics } from 'node:v8';

const megabyte = 2 ** 20;

/**
 * Returns the usable heap in bytes; V8 aborts beyond it. V8's own limit includes the space for new objects (three times 16 or 64 MB, by
 * version), where nothing stays for long. A limit set by a flag excludes that space.
 */
export function heapLimit(): number {
  const flags = [process.env['NODE_OPTIONS'] ?? '', ...process.execArgv].join(' ');
  const given = [...flags.matchAll(/--max[-_]old[-_]space[-_]size[= ](\d+)/g)].at(-1)?.[1];
  const limit = getHeapStatistics().heap_size_limit;
  return given === undefined ? limit : Math.min(limit, Number(given) * megabyte);
}
