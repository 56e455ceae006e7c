/** Changes in two parts: what is to be made first, and what is to go when that is done. */
export interface Split<Change> {
  readonly additions: readonly Change[];
  readonly removals: readonly Change[];
}

/** Parts changes, keeping their order. */
export function partition<Change>(changes: readonly Change[], isRemoval: (change: Change) => boolean): Split<Change> {
  const additions: Change[] = [];
  const removals: Change[] = [];
  for (const change of changes) (isRemoval(change) ? removals : additions).push(change);
  return { additions, removals };
}
