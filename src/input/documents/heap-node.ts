import { getHeapStatistics } from 'node:v8';

const megabyte = 2 ** 20;

/**
 * How much of the heap what is read may fill, in bytes: V8 ends the process beyond. Its own number counts what it sets aside for new objects,
 * 16 MB thrice or 64 MB thrice by its version, which holds nothing that stays; where a flag sets the limit, that number is the one.
 */
export function heapLimit(): number {
  const flags = [process.env['NODE_OPTIONS'] ?? '', ...process.execArgv].join(' ');
  const given = [...flags.matchAll(/--max[-_]old[-_]space[-_]size[= ](\d+)/g)].at(-1)?.[1];
  const limit = getHeapStatistics().heap_size_limit;
  return given === undefined ? limit : Math.min(limit, Number(given) * megabyte);
}
