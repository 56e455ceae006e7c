import type { BaseChain } from './table.ts';

/** The names that nft prints for some priorities. */
const priorities: Readonly<Record<string, number>> = {
  raw: -300,
  mangle: -150,
  dstnat: -100,
  filter: 0,
  security: 50,
  srcnat: 100,
};

/** `type T hook H priority P`, as words; undefined for anything else. */
export function readBaseChain(words: readonly string[]): BaseChain | undefined {
  const [, type, hookWord, hook, priorityWord, ...rest] = words;
  if (type === undefined || hook === undefined || hookWord !== 'hook' || priorityWord !== 'priority') return undefined;
  const priority = readPriority(rest);
  return priority === undefined ? undefined : { type, hook, priority };
}

/** `-110`, `filter`, `dstnat - 10`. */
function readPriority(words: readonly string[]): number | undefined {
  const [, name, offset] = /^([a-z]+)?([+-]?\d{1,9})?$/.exec(words.join('')) ?? [];
  if (name === undefined) return offset === undefined ? undefined : Number(offset);
  const base = priorities[name];
  return base === undefined ? undefined : base + Number(offset ?? 0);
}

/** A time as nft prints it, in seconds: `3h`, `1d2h3m4s`, `10800s`, `10800`; undefined for anything else. */
export function readSeconds(text: string): number | undefined {
  const [all, days, hours, minutes, seconds] =
    /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,10})s?)?(?:\d{1,9}ms)?$/.exec(text) ?? [];
  if (all === undefined || all === '') return undefined;
  return Number(days ?? 0) * 86400 + Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0);
}
